"""Two clusters to which the same happens. Followers of one fetch by Fetch alone, of the other as shipped.

Each cluster is two brokers with real logs, and some partitions that either may lead. Messages go through the
codec and the shipped handlers. An answer that waits comes when something wakes it, or by the timer.
"""

import random
import threading
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.following.fetcher import Fetcher
from sparklog.broker.handlers import fetch, lean_fetch, list_offsets
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.waiting.joint_wait import Share
from sparklog.core.replication.leader import IsrReply
from sparklog.model.cluster_facts import Node, PartitionState
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.loops import go_on
from sparklog.model.parts import read_parts
from sparklog.model.settings.config import BrokerConfig
from sparklog.records.envelope import split
from sparklog.wire.codec import decode_request, decode_response, encode_request, encode_response
from sparklog.wire.messages.data.fetch import FetchRequest
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest
from sparklog.wire.messages.data.list_offsets import ListOffsetsRequest
from sparklog.wire.versions import KNOWN_VERSIONS
from tests.broker.conftest import TOPIC_ID, ManualClock, Member
from tests.broker.partition_harness import batch

TOPIC = "twins"
HANDLERS = {
    FetchRequest: fetch.handle,
    LeanFetchRequest: lean_fetch.handle,
    ListOffsetsRequest: list_offsets.handle,
}
WAIT_MS = 500
"""The longest wait of a fetch."""
LIMITS = (
    {},
    {"replica.fetch.max.bytes": "100", "replica.fetch.response.max.bytes": "250"},
    {"replica.fetch.response.max.bytes": "100"},
    {"replica.fetch.min.bytes": "200"},
)
"""Settings of the brokers: a batch has some 80 bytes a record."""


class Twin(Member):
    """One broker of a cluster, with a fetcher for each leader."""

    def __init__(self, number, folder, clock, config, *, has_lean) -> None:
        super().__init__(number, folder, clock)
        self.config, self.has_lean = config, has_lean
        self.fetchers = {}
        self.errors = []
        self.forms = []
        """The kind of each request that was sent."""

    def start(self, partition, leader) -> None:
        known = self.fetchers.get(leader)
        if known is None:
            known = self.fetchers[leader] = Fetcher(
                broker_id=self.id, broker_epoch=lambda: self.epoch, leader=leader,
                find_node=lambda number: Node(number, "nowhere", 1), config=self.config, clock=self.clock,
                guard=threading.Lock(), doubts=DoubtedLeaders(self.clock),
                throttle=self.parts.throttles.follower,
            )  # fmt: skip
        self.stop(partition)
        known.add(partition)

    def stop(self, partition) -> None:
        for known in self.fetchers.values():
            known.remove(partition)

    def ask_leader_offsets(self, partition) -> None:
        for known in self.fetchers.values():
            known.ask_leader_offsets(partition)

    def back_off(self, partition, error) -> None:
        self.errors.append((partition.topic_partition.partition, error))
        for known in self.fetchers.values():
            known.back_off(partition)

    def propose(self, topic_partition, proposal) -> None:
        self.proposals.append((topic_partition, proposal))

    def at(self, number):
        return self.replicas.get(TopicPartition(TOPIC, number))

    def serve(self, request, reply) -> None:
        """Hand a request to the shipped handler; ``reply`` gets the response now or later."""
        waits = self.parts.waits
        broker = SimpleNamespace(
            replicas=self.replicas, config=self.config, fetches=waits.fetches,
            fetch_sessions=waits.fetch_sessions, fetches_in_progress=waits.fetches_in_progress,
            metadata=SimpleNamespace(topic_name=lambda topic_id: None),
            conversions=ConversionStatistics(threading.Lock()),
        )  # fmt: skip
        call = SimpleNamespace(
            version=KNOWN_VERSIONS[request.API_KEY].max, meter=None, broker=broker,
            partition=self.replicas.find,
            context=SimpleNamespace(received_ms=self.clock.monotonic_ms(), client_host="a twin"),
            carefully=lambda work: work(), reply=lambda response, **named: reply(response),
            access=None, allows=lambda *_: True,
        )  # fmt: skip
        HANDLERS[type(request)](call, request)


class Round:
    """One round of a fetcher, from its request to its end."""

    def __init__(self, follower: Twin, leader: Twin) -> None:
        self.follower, self.leader = follower, leader
        self.answers = []
        self.question = None
        self.running = self._loop()
        self._take(go_on(self.running))

    def _loop(self):
        yield from self.follower.fetchers[self.leader.id].round()

    @property
    def is_over(self) -> bool:
        return self.question is None

    def _take(self, question) -> None:
        """Send the request of ``question``; one of the lean form is refused by a cluster that has none."""
        while isinstance(question and question.message, LeanFetchRequest) and not self.follower.has_lean:
            question = go_on(self.running, error=KafkaError(ErrorCode.unsupported_version))
        self.question = question
        if question is None:
            return
        message = question.message
        self.follower.forms.append(type(message))
        version = KNOWN_VERSIONS[message.API_KEY].max
        frame = memoryview(bytearray(encode_request(message, version, 1, "twin")))[4:]
        self.leader.serve(decode_request(frame).body, self._answered(version))

    def _answered(self, version):
        answers = self.answers = []

        def answered(response) -> None:
            frame = memoryview(read_parts(encode_response(response, version, 1)))[4:]
            answers.append(decode_response(response.API_KEY, version, frame)[1])

        return answered

    def finish(self, *, is_lost: bool = False) -> None:
        """Let the answers come, by the timer where nothing else woke them; or lose the last one."""
        while not self.is_over:
            while not self.answers:
                self.leader.clock.now_ms += WAIT_MS
                self.leader.timer.fire()
            (answer,) = self.answers
            if is_lost:
                self._take(go_on(self.running, error=ConnectionError("lost")))
                continue
            self._take(go_on(self.running, answer))


class Cluster:
    """One of the twins, and what may happen to it."""

    def __init__(self, folder, partitions: int, settings, *, has_lean: bool) -> None:
        self.clock = ManualClock()
        config = BrokerConfig.parse(settings)
        self.members = {}
        for number in (1, 2):
            (folder / str(number)).mkdir(parents=True)
            self.members[number] = Twin(number, folder / str(number), self.clock, config, has_lean=has_lean)
        for member in self.members.values():
            member.members = self.members
        self.partitions = range(partitions)
        self.epochs = dict.fromkeys(self.partitions, 0)
        self.leaders = dict.fromkeys(self.partitions, 1)
        self.produced = []
        for number in self.partitions:
            self.elect(number, 1, (1, 2))

    # Events

    def elect(self, number: int, leader: int, told) -> None:
        """A new leader, of which only the brokers ``told`` hear now; the others with the next one."""
        self.epochs[number] += 1
        self.leaders[number] = leader
        state = PartitionState(
            leader=BrokerId(leader), leader_epoch=LeaderEpoch(self.epochs[number]),
            isr=(BrokerId(1), BrokerId(2)), replicas=(BrokerId(1), BrokerId(2)), min_insync_replicas=1,
        )  # fmt: skip
        for broker in told:
            self.members[broker].parts.roles.become(
                TopicPartition(TOPIC, number), TOPIC_ID, state, {"min.insync.replicas": "1"}, is_new=False
            )

    def append(self, number: int, broker: int, records: int, acks: int) -> None:
        """Its outcome appears in ``produced``, once it has one."""
        member, outcome = self.members[broker], []
        made, partition = batch(records), self.members[broker].at(number)
        append = partial(partition.leader_append.append, AppendRequest(made, split(made), acks))
        share = Share(partition.topic_partition, append, partition.leader_append.forget)
        member.parts.waits.appends.run([share], 1_000, outcome.append)
        self.produced.append(outcome)

    def delete_records(self, number: int, broker: int, offset: int) -> None:
        result = self.members[broker].at(number).delete_records(offset, [BrokerId(1), BrokerId(2)], 0)
        self.produced.append(result.error)

    def throttle(self, side: str, broker: int, rate: int | None, numbers) -> None:
        throttle = getattr(self.members[broker].parts.throttles, side)
        throttle.set_rate(2**62 if rate is None else rate)
        throttle.set_topic(TOPIC, [f"{number}:{broker}" for number in numbers], BrokerId(broker))

    def pass_time(self, ms: int) -> None:
        self.clock.now_ms += ms
        for member in self.members.values():
            for partition in member.replicas.partitions():
                partition.on_tick(None, member.parts.waits.fetches_in_progress.arrivals(self.clock.now_ms))

    def answer_proposals(self, error: ErrorCode) -> None:
        """The controller's answer to what leaders have proposed of their ISRs."""
        for member in self.members.values():
            proposals, member.proposals = member.proposals, []
            for topic_partition, proposal in proposals:
                partition = member.replicas.get(topic_partition)
                reply = IsrReply(error) if error else accepted(partition, proposal)
                if reply is not None:
                    partition.on_isr_reply(partition.leader_epoch, proposal.proposal, reply)

    def fetch(self, follower: int, *, is_lost: bool, meanwhile) -> None:
        """A round; ``meanwhile`` happens after its request was served. Where the leader asks, the round is by
        Fetch, as if the lean fetch had not been.
        """
        leader = 3 - follower
        if BrokerId(leader) not in self.members[follower].fetchers:
            return
        this = Round(self.members[follower], self.members[leader])
        if any(getattr(answer, "asks_by_fetch", False) for answer in this.answers):
            this.finish()
            this = Round(self.members[follower], self.members[leader])
        if meanwhile is not None:
            meanwhile(self)
        this.finish(is_lost=is_lost)

    # What has become of it

    def state(self):
        return [self._state(member) for member in self.members.values()], self.produced

    def _state(self, member):
        of_partitions = {}
        for partition in member.replicas.partitions():
            leader, follower = partition._replica.leader, partition._replica.follower
            of_partitions[partition.topic_partition.partition] = (
                partition.log_start_offset, partition.high_watermark, partition.log_end_offset,
                partition.leader_epoch, [tuple(entry) for entry in partition.log.epochs.entries],
                leader and (leader.isr, self._progress(leader)), follower and follower.fetch_position(),
            )  # fmt: skip
        return of_partitions, member.errors, member.proposals

    def _progress(self, leader):
        """What the leader knows of each follower, but for repetitions: to come again by Fetch is one."""
        return {number: str(replace(known, same_again=0)) for number, known in leader.followers.items()}

    def contents(self):
        """All bytes of all logs."""
        return [
            (partition.topic_partition, read_parts(partition.log.read(
                partition.log_start_offset, 1 << 30, partition.log_end_offset, at_least_one_batch=True,
            ).parts))
            for member in self.members.values() for partition in member.replicas.partitions()
        ]  # fmt: skip


def accepted(partition, proposal):
    leader = partition._replica.leader
    if leader is None:
        return None
    members = tuple(member for member, _ in proposal.members)
    return IsrReply(ErrorCode.none, members, proposal.leader_epoch, proposal.partition_epoch + 1)


def draw_event(dice: random.Random, partitions: int):
    """One thing that happens to both clusters alike."""
    number, broker = dice.randrange(partitions), dice.choice((1, 2))
    draw = dice.random()
    if draw < 0.45:
        is_lost, meanwhile = dice.random() < 0.05, None
        if dice.random() < 0.4:
            meanwhile = draw_event(dice, partitions)
            while meanwhile.__name__ == "fetches":
                meanwhile = draw_event(dice, partitions)

        def fetches(cluster) -> None:
            cluster.fetch(broker, is_lost=is_lost, meanwhile=meanwhile)

        return fetches
    if draw < 0.75:
        records, acks = dice.randint(1, 4), dice.choice((1, -1))
        return lambda cluster: cluster.append(number, cluster.leaders[number], records, acks)
    if draw < 0.81:
        told = dice.choice(((1, 2), (1, 2), (1,), (2,)))
        return lambda cluster: cluster.elect(number, broker, told)
    if draw < 0.85:
        back = dice.randint(0, 3)
        return lambda cluster: cluster.delete_records(
            number, broker, max(0, cluster.members[broker].at(number).high_watermark - back)
        )
    if draw < 0.88:
        side, rate = dice.choice(("leader", "follower")), dice.choice((None, None, 1, 200))
        named = dice.sample(range(partitions), dice.randint(0, partitions))
        return lambda cluster: cluster.throttle(side, broker, rate, named)
    if draw < 0.93:
        error = dice.choice((ErrorCode.none, ErrorCode.none, ErrorCode.ineligible_replica))
        return lambda cluster: cluster.answer_proposals(error)
    ms = dice.choice((0, 5, 30, 600, 40_000))
    return lambda cluster: cluster.pass_time(ms)
