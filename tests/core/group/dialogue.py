"""Dialogues with the coordinator of one partition: clients ask, time passes, the log is written or is not.

    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    bob.leaves()
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress

The log takes every write at once, unless ``coordinator.is_log_slow``. After every step the machine's
invariants are checked, and that a machine which replays the log has the same applied state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

from sparklog.core.coordinator.actions import (
    Action,
    InDoubt,
    Producer,
    Refused,
    Reply,
    StateRecord,
    Token,
    Write,
    WriteOutcome,
    Written,
)
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.group.group_machine import GroupMachine
from sparklog.core.group.requests import (
    Assignment,
    DescribeGroup,
    GroupRequest,
    Heartbeat,
    JoinGroup,
    JoinProtocol,
    LeaveGroup,
    LeavingMember,
    ListGroups,
    OffsetCommit,
    OffsetFetch,
    OffsetToCommit,
    SyncGroup,
    TransactionalOffsetCommit,
)
from sparklog.core.group.responses import (
    DescribeGroupAnswer,
    FetchedOffset,
    JoinGroupAnswer,
    LeaveGroupAnswer,
    SyncGroupAnswer,
    TransactionalCommitAnswer,
)
from sparklog.core.group.settings import GroupSettings
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, NamedTopic, TopicPartition
from sparklog.model.time import MonotonicMs, WallMs

GROUP = "readers"
WALL_START_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
INITIAL_DELAY_MS = 3_000
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


def topics_of(metadata: bytes) -> frozenset[str] | None:
    """A subscription of these tests: names of topics, with spaces between; b"?" is malformed."""
    return None if metadata == b"?" else frozenset(metadata.decode().split())


def at(monotonic_ms: int) -> Now:
    """A moment of these tests, in which both clocks run alike."""
    return Now(MonotonicMs(monotonic_ms), WallMs(WALL_START_MS + monotonic_ms))


class TransactionEnded(NamedTuple):
    """A marker in the log."""

    producer_id: int
    is_commit: bool


@dataclass(slots=True)
class Asked:
    """A request, and its answer once there is one."""

    request: GroupRequest
    answer: Any = None

    @property
    def is_waiting(self) -> bool:
        return self.answer is None

    @property
    def error(self) -> ErrorCode:
        assert self.answer is not None, f"no answer yet to {self.request}"
        error = self.answer.error
        assert isinstance(error, ErrorCode)
        return error


@dataclass(slots=True)
class Coordinator:
    settings: GroupSettings = field(
        default_factory=lambda: GroupSettings(initial_rebalance_delay_ms=INITIAL_DELAY_MS)
    )
    history: list[tuple[StateRecord, Producer | None] | TransactionEnded] = field(default_factory=list)
    """The log below the high watermark: records with the producer of their transaction, and markers."""
    is_log_slow: bool = False
    open_writes: list[Write] = field(default_factory=list)
    asked: dict[Token, Asked] = field(default_factory=dict)
    now_ms: int = 0
    shard: GroupMachine = field(init=False)
    uuids: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, **settings: int) -> None:
        """Another broker takes over: it loads the log below the high watermark."""
        if settings:
            self.settings = GroupSettings(**{"initial_rebalance_delay_ms": INITIAL_DELAY_MS, **settings})
        self.open_writes.clear()
        self.shard = GroupMachine.of(self.settings, topics_of)
        self._replay(self.shard)
        self._carry_out(self.shard.on_loaded(self.now))

    def _replay(self, shard: GroupMachine) -> None:
        for entry in self.history:
            match entry:
                case TransactionEnded(producer_id, is_commit):
                    shard.replay_end(producer_id, is_commit)
                case (record, None):
                    shard.replay(record)
                case (record, producer):
                    shard.replay_pending(record, producer.producer_id)

    @property
    def log(self) -> list[StateRecord]:
        """The records below the high watermark that are in no transaction."""
        entries = [entry for entry in self.history if not isinstance(entry, TransactionEnded)]
        return [record for record, producer in entries if producer is None]

    def write_down(self, write: Write) -> None:
        self.history += [(record, write.producer) for record in write.records]

    @property
    def now(self) -> Now:
        return at(self.now_ms)

    # ------------------------------------------------------------------------------- asking

    def ask(self, request: GroupRequest) -> Asked:
        token = Token(len(self.asked))
        self.asked[token] = Asked(request, request.invalid())
        if self.asked[token].is_waiting:
            self._carry_out(self.shard.on_request(token, request, self.now))
        return self.asked[token]

    def committed(self, *places: TopicPartition, group_id: str = GROUP) -> dict[TopicPartition, int]:
        """The committed offsets of ``places``, or of all; -1 for none."""
        answer = self.fetched(*places, group_id=group_id)
        return {one.topic_partition: one.offset for one in answer}

    def fetched(
        self, *places: TopicPartition, group_id: str = GROUP, require_stable: bool = False
    ) -> tuple[FetchedOffset, ...]:
        request = OffsetFetch(group_id, topic_partitions=places or None, require_stable=require_stable)
        answer = self.ask(request).answer
        assert answer.error is ErrorCode.none
        return tuple(answer.offsets)

    def described(self, group_id: str = GROUP) -> DescribeGroupAnswer:
        answer = self.ask(DescribeGroup(group_id)).answer
        assert isinstance(answer, DescribeGroupAnswer)
        return answer

    def state(self, group_id: str = GROUP) -> str:
        """The group's state, also while its requests wait in the shard."""
        listed = self.ask(ListGroups()).answer.groups
        return next((group.state for group in listed if group.group_id == group_id), "Dead")

    # --------------------------------------------------------------------------- time and log

    def passes(self, span_ms: int) -> None:
        """Let time pass, and wake the machine whenever it wants to be woken."""
        end_ms = self.now_ms + span_ms
        for _ in range(10_000):
            deadline_ms = self.shard.next_deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, deadline_ms)
            self._carry_out(self.shard.on_time(self.now))
        raise AssertionError("the machine wants to be woken without end")

    def log_answers(self, outcome: WriteOutcome, write: Write | None = None) -> None:
        """The oldest open write, or ``write``, has this outcome."""
        write = write or self.open_writes[0]
        if not isinstance(outcome, InDoubt):
            self.open_writes.remove(write)
        if isinstance(outcome, Written):
            self.write_down(write)
        self._carry_out(self.shard.on_written(write.write_id, outcome, self.now))

    def log_writes(self) -> None:
        """All open writes are below the high watermark now, in order."""
        while self.open_writes:
            self.log_answers(Written())

    def log_refuses(self, error: ErrorCode) -> None:
        self.log_answers(Refused(error))

    def log_times_out(self) -> None:
        self.log_answers(InDoubt(ErrorCode.request_timed_out))

    def ends(self, producer_id: int, *, is_commit: bool) -> None:
        """The marker of a producer's transaction is below the high watermark."""
        self.history.append(TransactionEnded(producer_id, is_commit))
        self._carry_out(self.shard.on_end(producer_id, is_commit, self.now))

    def deletes_topics(self, *names: str) -> None:
        self._carry_out(
            self.shard.on_topics_deleted([NamedTopic(one, NO_TOPIC_ID) for one in names], self.now)
        )

    def resigns(self) -> None:
        self._carry_out(list(self.shard.on_resigned()))

    def _carry_out(self, actions: list[Action]) -> None:
        self.check()
        for action in actions:
            if isinstance(action, Reply):
                asked = self.asked[action.token]
                assert asked.is_waiting, f"answered twice: {asked.request}"
                asked.answer = action.response
            else:
                assert isinstance(action, Write)
                self.open_writes.append(action)
        if not self.is_log_slow:
            self.log_writes()

    def check(self) -> None:
        self.shard.check_invariants()
        replayed = GroupMachine.of(self.settings, topics_of)
        self._replay(replayed)
        assert replayed.applied_state() == self.shard.applied_state()
        assert replayed.state.applied.pending == self.shard.state.applied.pending

    # ---------------------------------------------------------------------------------- scenes

    def client(self, name: str, **changes: Any) -> "Client":
        return Client(self, name, **changes)

    def stable_group(self, *names: str, **changes: Any) -> tuple["Client", ...]:
        """Clients with these names that share a generation; each is assigned its own name."""
        clients = tuple(self.client(name, **changes) for name in names)
        self._start(*clients)
        return clients

    def static_group(self, *names: str, **changes: Any) -> tuple["Client", ...]:
        """The same with static members, whose instance ids are their names."""
        clients = tuple(self.client(name, instance=name, **changes) for name in names)
        self._start(*clients)
        return clients

    def _start(self, *clients: "Client") -> None:
        for client in clients:
            client.joins()
        self.passes(INITIAL_DELAY_MS * (len(clients) + 1))
        self.assigns(*clients)

    def assigns(self, *clients: "Client") -> None:
        """All clients ask for their assignment; the leader brings it: its name to each."""
        names = {client.join_answer.member_id: client.name.encode() for client in clients}
        for client in clients:
            client.syncs(names if client.is_leader else {})
        for client in clients:
            assert client.assignment == client.name.encode(), client


@dataclass(slots=True)
class Client:
    """A consumer as its library behaves, unless a test wants it otherwise."""

    coordinator: Coordinator = field(repr=False)
    name: str
    instance: str | None = None
    protocols: tuple[tuple[str, bytes], ...] = (("range", b"orders"),)
    protocol_type: str = "consumer"
    session_ms: int = SESSION_MS
    rebalance_ms: int = REBALANCE_MS
    version: int = 9
    """Of JoinGroup: from 4 on the client gets a member id first, from 9 on a leader may be told to skip."""
    group_id: str = GROUP
    member_id: str = ""
    joined: Asked | None = None
    synced: Asked | None = None

    def join_request(self, **changes: Any) -> JoinGroup:
        fields: dict[str, Any] = {
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "client_id": self.name,
            "client_host": "/10.0.0.1",
            "protocol_type": self.protocol_type,
            "protocols": tuple(JoinProtocol(*one) for one in self.protocols),
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms,
            "requires_member_id": self.version >= 4,
            "supports_skip_assignment": self.version >= 9,
            "member_id_suffix": f"uuid{next(self.coordinator.uuids)}",
        }
        return JoinGroup(self.group_id, **{**fields, **changes})

    def joins(self, **changes: Any) -> Asked:
        """Join, once more if the coordinator gives out a member id first."""
        self.joined = self.coordinator.ask(self.join_request(**changes))
        answer = self.joined.answer
        if answer is not None and answer.error is ErrorCode.member_id_required:
            self.member_id = answer.member_id
            self.joined = self.coordinator.ask(self.join_request(**changes))
        return self.joined

    @property
    def join_answer(self) -> JoinGroupAnswer:
        assert self.joined is not None
        answer = self.joined.answer
        assert isinstance(answer, JoinGroupAnswer), f"{self.name} still waits for a generation"
        if answer.error is ErrorCode.none:
            self.member_id = answer.member_id
        return answer

    @property
    def generation(self) -> int:
        return self.join_answer.generation_id

    @property
    def is_leader(self) -> bool:
        return self.join_answer.leader == self.join_answer.member_id

    def syncs(self, assignments: Mapping[str, bytes] | None = None, **changes: Any) -> Asked:
        fields: dict[str, Any] = {
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": self.protocol_type,
            "protocol": self.join_answer.protocol,
            "assignments": tuple(Assignment(*one) for one in (assignments or {}).items()),
        }
        self.synced = self.coordinator.ask(SyncGroup(self.group_id, **{**fields, **changes}))
        return self.synced

    @property
    def assignment(self) -> bytes:
        assert self.synced is not None
        answer = self.synced.answer
        assert isinstance(answer, SyncGroupAnswer), f"{self.name} still waits for an assignment"
        assert answer.error is ErrorCode.none, answer
        return answer.assignment

    def heartbeat(self, **changes: Any) -> ErrorCode:
        return self.heartbeat_asked(**changes).error

    def heartbeat_asked(self, **changes: Any) -> Asked:
        fields: dict[str, Any] = {
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
        }
        return self.coordinator.ask(Heartbeat(self.group_id, **{**fields, **changes}))

    def leaves(self) -> ErrorCode:
        answer = self.leave_asked().answer
        assert isinstance(answer, LeaveGroupAnswer)
        return answer.members[0].error

    def leave_asked(self) -> Asked:
        leaving = LeavingMember(self.member_id, self.instance)
        return self.coordinator.ask(LeaveGroup(self.group_id, members=(leaving,)))

    def commits(self, offsets: Mapping[TopicPartition, int], **changes: Any) -> Asked:
        is_member = self.joined is not None and not self.joined.is_waiting
        fields: dict[str, Any] = {
            "generation_id": self.generation if is_member else -1,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "offsets": tuple(OffsetToCommit(place, offset) for place, offset in offsets.items()),
        }
        return self.coordinator.ask(OffsetCommit(self.group_id, **{**fields, **changes}))

    def commits_in_transaction(
        self, producer: Producer, offsets: Mapping[TopicPartition, int], **changes: Any
    ) -> Asked:
        """TxnOffsetCommit; where the coordinator wants the transaction verified, it is, at once."""
        is_member = self.joined is not None and not self.joined.is_waiting
        fields: dict[str, Any] = {
            "producer": producer,
            "generation_id": self.generation if is_member else -1,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "offsets": tuple(OffsetToCommit(place, offset) for place, offset in offsets.items()),
        }
        request = TransactionalOffsetCommit(self.group_id, **{**fields, **changes})
        asked = self.coordinator.ask(request)
        if not isinstance(asked.answer, TransactionalCommitAnswer) or asked.answer.guard is None:
            return asked
        return self.coordinator.ask(replace(request, guard=asked.answer.guard))


def errors_of(asked: Asked) -> set[ErrorCode]:
    """The distinct errors of a commit's partitions."""
    return {error for _, error in asked.answer.errors}
