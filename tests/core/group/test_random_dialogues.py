"""Random dialogues: clients join, stall, leave and return, the log is slow, refuses or is in doubt, and
coordinators change. After every step the invariants hold, and a replay of the log gives the applied state.

Besides, no two members own the same in one generation, and groups come to rest when the trouble ends.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sparklog.core.coordinator.actions import InDoubt, Producer, Refused, Token, Write, WriteId, Written
from sparklog.core.group.records import GroupKey
from sparklog.core.group.requests import DeleteGroup, GroupRequest, OffsetDelete
from sparklog.core.group.settings import GroupSettings
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import GROUP, MINUTE_MS, Asked, Client, Coordinator

PLACES = (TopicPartition("orders", 0), TopicPartition("payments", 0))
REFUSALS = (ErrorCode.not_enough_replicas, ErrorCode.message_too_large)
DOUBTS = (ErrorCode.request_timed_out, ErrorCode.not_enough_replicas_after_append)
PRODUCERS = (Producer(7, 0), Producer(8, 4))
SETTINGS = GroupSettings(
    initial_rebalance_delay_ms=3_000,
    size_max=4,
    offsets_retention_ms=3 * MINUTE_MS,
    offsets_retention_check_interval_ms=MINUTE_MS,
)


@dataclass(slots=True)
class Shard(Coordinator):
    """A coordinator whose requests wait while their group is held, as a real shard lets them."""

    doubted: set[WriteId] = field(default_factory=set)
    queue: list[Token] = field(default_factory=list)

    def ask(self, request: GroupRequest) -> Asked:
        token = Token(len(self.asked))
        self.asked[token] = Asked(request)
        self.queue.append(token)
        self.drain()
        return self.asked[token]

    def is_held(self) -> bool:
        return any(write.holds_key or write.write_id in self.doubted for write in self.open_writes)

    def drain(self) -> None:
        while self.queue and not self.is_held():
            token = self.queue.pop(0)
            self._carry_out(self.shard.on_request(token, self.asked[token].request, self.now))

    def undoubted(self) -> list[Write]:
        return [write for write in self.open_writes if write.write_id not in self.doubted]

    def fails_over(self, survivors: int) -> None:
        """Another coordinator loads: of the open writes, the first ``survivors`` are in its log."""
        self.resigns()
        for token in self.queue:
            request = self.asked[token].request
            self.asked[token].answer = request.refused(ErrorCode.not_coordinator)
        self.queue.clear()
        for write in self.open_writes[:survivors]:
            self.write_down(write)
        self.doubted.clear()
        self.restart()


class Dialogue(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Shard(settings=SETTINGS, is_log_slow=True)
        self.owners: dict[tuple[int, int, bytes], str] = {}
        self.shares = 0
        self.clients = [
            self.coordinator.client("alice", protocols=(("range", b"orders"), ("sticky", b"orders"))),
            self.coordinator.client("bob", version=3, protocols=(("sticky", b"payments"), ("range", b"?"))),
            self.coordinator.client("carol", rebalance_ms=8_000),
            self.coordinator.client("dave", instance="kitchen"),
            self.coordinator.client("erin", instance="kitchen", version=8),
            self.coordinator.client("frank", instance="cellar", session_ms=30_000, rebalance_ms=8_000),
        ]

    # ------------------------------------------------------------------------------- clients

    any_client = st.integers(0, 5)

    @rule(number=any_client)
    def a_client_does_what_is_next(self, number: int) -> None:
        self.go_on(self.clients[number])

    def go_on(self, client: Client) -> None:
        if client.joined is None:
            self.start_over(client)
        elif client.joined.is_waiting or (client.synced is not None and client.synced.is_waiting):
            return
        elif client.joined.error is not ErrorCode.none:
            self.join_after(client, client.joined.error)
        elif client.synced is None:
            self.sync(client)
        elif client.synced.error is not ErrorCode.none:
            self.join_after(client, client.synced.error)
        else:
            self.beat(client)

    def start_over(self, client: Client) -> None:
        client.member_id, client.synced = "", None
        client.joins()

    def join_after(self, client: Client, error: ErrorCode) -> None:
        client.synced = None
        if error in (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id):
            client.member_id = ""
        assert client.joined is not None
        if client.joined.answer.error is ErrorCode.member_id_required:
            client.member_id = client.joined.answer.member_id
        elif client.joined.answer.error is ErrorCode.none and client.member_id:
            client.member_id = client.join_answer.member_id
        client.joins()

    def sync(self, client: Client) -> None:
        answer = client.join_answer
        assignments = {}
        for member in answer.members if client.is_leader else ():
            self.shares += 1
            assignments[member.member_id] = f"share {self.shares}".encode()
        client.syncs(assignments)

    def beat(self, client: Client) -> None:
        assert client.synced is not None
        self.note_owner(client)
        asked = client.heartbeat_asked()
        if asked.answer is not None and asked.error is not ErrorCode.none:
            self.join_after(client, asked.error)

    def note_owner(self, client: Client) -> None:
        """In one generation of one life of the group, nobody else was given the client's share."""
        share = client.synced.answer.assignment if client.synced is not None else b""
        if not share:
            return
        life = sum(record.key == GroupKey(GROUP) and record.value is None for record in self.coordinator.log)
        owner = client.instance or client.name
        assert self.owners.setdefault((life, client.generation, share), owner) == owner

    @rule(number=any_client)
    def a_client_starts_again(self, number: int) -> None:
        self.start_over(self.clients[number])

    @rule(number=any_client)
    def a_client_changes_its_topics(self, number: int) -> None:
        client = self.clients[number]
        client.protocols = tuple((name, metadata + b" more") for name, metadata in client.protocols)
        if client.joined is not None:
            client.synced = None
            client.joins()

    @rule(number=any_client)
    def a_client_leaves(self, number: int) -> None:
        client = self.clients[number]
        if client.member_id:
            client.leave_asked()
        client.joined = client.synced = None
        client.member_id = ""

    @rule(number=any_client, place=st.sampled_from(PLACES), offset=st.integers(0, 9))
    def a_client_commits(self, number: int, place: TopicPartition, offset: int) -> None:
        self.clients[number].commits({place: offset})

    # -------------------------------------------------------------------------- transactions

    @rule(
        number=any_client,
        producer=st.sampled_from(PRODUCERS),
        place=st.sampled_from(PLACES),
        offset=st.integers(0, 9),
    )
    def a_client_commits_in_a_transaction(
        self, number: int, producer: Producer, place: TopicPartition, offset: int
    ) -> None:
        self.clients[number].commits_in_transaction(producer, {place: offset})

    @rule(producer=st.sampled_from(PRODUCERS), is_commit=st.booleans())
    def a_transaction_ends(self, producer: Producer, is_commit: bool) -> None:
        """A real shard holds the end back while a write of that transaction is under way."""
        if not any(write.producer == producer for write in self.coordinator.open_writes):
            self.coordinator.ends(producer.producer_id, is_commit=is_commit)

    # ------------------------------------------------------------------ administrators and time

    @rule(request=st.sampled_from([DeleteGroup(GROUP), OffsetDelete(GROUP, topic_partitions=PLACES)]))
    def an_administrator_removes(self, request: GroupRequest) -> None:
        self.coordinator.ask(request)

    @rule()
    def a_topic_is_deleted(self) -> None:
        self.coordinator.deletes_topics("orders")

    @rule(span_ms=st.sampled_from([100, 3_000, 9_000, 60_000, 4 * MINUTE_MS]))
    def time_passes(self, span_ms: int) -> None:
        self.coordinator.passes(span_ms)

    # ------------------------------------------------------------------------------- the log

    @precondition(lambda self: self.coordinator.open_writes)
    @rule()
    def the_log_has_the_next_write(self) -> None:
        write = self.coordinator.open_writes[0]
        self.coordinator.doubted.discard(write.write_id)
        self.coordinator.log_answers(Written(), write)
        self.coordinator.drain()

    @precondition(lambda self: self.coordinator.undoubted())
    @rule(error=st.sampled_from(REFUSALS))
    def the_log_refuses_the_next_write(self, error: ErrorCode) -> None:
        self.coordinator.log_answers(Refused(error), self.coordinator.undoubted()[0])
        self.coordinator.drain()

    @precondition(lambda self: self.coordinator.undoubted())
    @rule(error=st.sampled_from(DOUBTS))
    def the_next_write_is_in_doubt(self, error: ErrorCode) -> None:
        write = self.coordinator.undoubted()[0]
        self.coordinator.doubted.add(write.write_id)
        self.coordinator.log_answers(InDoubt(error), write)

    @rule(survivors=st.integers(0, 3))
    def the_coordinator_changes(self, survivors: int) -> None:
        self.coordinator.fails_over(survivors)

    # -------------------------------------------------------------------------------- judged

    @invariant()
    def what_always_holds(self) -> None:
        self.coordinator.check()

    def teardown(self) -> None:
        """The trouble ends: the log is fast, and each instance id has one client. All share a generation."""
        living = [client for client in self.clients if client.name != "erin"]
        living = living[: SETTINGS.size_max]
        self.coordinator.is_log_slow = False
        self.coordinator.doubted.clear()
        self.coordinator.log_writes()
        self.coordinator.drain()
        for _ in range(150):
            for client in living:
                self.go_on(client)
            self.coordinator.passes(1_000)
        self.coordinator.check()
        assert self.coordinator.state() == "Stable"
        assert len({client.generation for client in living}) == 1
        assert all(client.synced is not None and not client.synced.is_waiting for client in living)
        assert not [asked for asked in self.coordinator.asked.values() if asked.is_waiting]


TestDialogues = Dialogue.TestCase
TestDialogues.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
