"""Partitions at rest in a follower's session, by the handler of fetches and a leader's real logs."""

import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.handlers import fetch
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.waiting.session_partitions import REST_MAX_MS, rest_max_ms
from sparklog.core.replication.isr import committed_isr
from sparklog.core.replication.leader import IsrReply
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.model.settings.config import BrokerConfig
from sparklog.records.envelope import split
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.broker.conftest import TOPIC_ID

PARTITIONS = 4
BATCH_BYTES = 81
"""Of one record."""
FOLLOWER = 2


class Follower:
    """A follower's fetches of four partitions of a leader, each answered now or later."""

    replica_id = FOLLOWER
    session_partitions = range(PARTITIONS)

    def __init__(self, leader) -> None:
        self.leader = leader
        self.epoch, self.session_id = 0, 0
        self.broker_epoch = 20
        self.offsets = dict.fromkeys(range(PARTITIONS), 0)
        self.answers = []
        self.read = []
        self._watch()

    def _watch(self) -> None:
        for partition in self.leader.replicas.partitions():
            partition.reads.read = self._watched(partition, partition.reads.read)

    def _watched(self, partition, read):
        def watched(request, **named):
            self.read.append((partition.topic_partition.partition, named.get("is_retry", False)))
            return read(request, **named)

        return watched

    def fetch(self, *moved, forget=(), wait_max_ms=500):
        """Ask for all at first, later for what has ``moved``; which partitions the handler has read."""
        self.read.clear()
        named = self.session_partitions if self.epoch == 0 else moved
        topic = FetchTopic(topic_id=TOPIC_ID, partitions=[self._asked(number) for number in named])
        request = FetchRequest(
            replica_id=self.replica_id,
            replica_epoch=self.broker_epoch,
            max_wait_ms=wait_max_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[topic] if topic.partitions else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=TOPIC_ID, partitions=[*forget])] if forget else [],
        )
        self.epoch += 1
        fetch.handle(self._call(), request)
        return [number for number, _ in self.read]

    def _asked(self, number):
        return FetchPartition(
            partition=number, current_leader_epoch=1, fetch_offset=self.offsets[number],
            last_fetched_epoch=1 if self.offsets[number] else -1, log_start_offset=0,
            partition_max_bytes=1 << 20,
        )  # fmt: skip

    def _call(self):
        replicas = self.leader.replicas
        return SimpleNamespace(
            version=15,
            meter=None,
            broker=SimpleNamespace(
                replicas=replicas,
                config=BrokerConfig(),
                fetches=self.leader.parts.waits.fetches,
                fetch_sessions=self.leader.parts.waits.fetch_sessions,
                fetches_in_progress=self.leader.parts.waits.fetches_in_progress,
                conversions=ConversionStatistics(threading.Lock()),
            ),
            context=SimpleNamespace(received_ms=self.leader.clock.monotonic_ms()),
            partition=replicas.find,
            carefully=lambda work: work(),
            access=None,
            allows=lambda *_: True,
            reply=self._take,
        )

    def _take(self, response) -> None:
        assert response.error_code is ErrorCode.none
        self.session_id = response.session_id
        self.answers.append(
            {data.partition_index: data for topic in response.responses for data in topic.partitions}
        )

    def news(self):
        """What the last answer says: number to (error, bytes, high watermark)."""
        return {
            number: (data.error_code, len(read_parts(data.records)), data.high_watermark)
            for number, data in self.answers[-1].items()
        }


def become(leader, epoch=1, isr=(1, FOLLOWER)) -> None:
    for number in range(PARTITIONS):
        state = PartitionState(
            leader=BrokerId(1), leader_epoch=LeaderEpoch(epoch), isr=tuple(map(BrokerId, isr)),
            replicas=tuple(map(BrokerId, sorted({1, FOLLOWER, *isr}))),
        )  # fmt: skip
        leader.parts.roles.become(TopicPartition("quakes", number), TOPIC_ID, state, {}, is_new=True)


def partition(leader, number):
    return leader.replicas.get(TopicPartition("quakes", number))


def append(leader, number, records) -> None:
    result = partition(leader, number).leader_append.append(AppendRequest(records, split(records), 1), 0)
    assert result.error is ErrorCode.none


def waits(leader, number) -> int:
    """How many fetches wait in a partition."""
    return len(partition(leader, number)._replica.leader.fetches)


@pytest.fixture
def leader(members):
    become(members[1])
    return members[1]


@pytest.fixture
def follower(leader, batch):
    """A follower at the end of all partitions, of which all but 0 rest."""
    made = Follower(leader)
    made.fetch(wait_max_ms=0)
    made.fetch()
    append(leader, 0, batch())
    made.offsets[0] = 1
    return made


def test_a_fetch_reads_what_has_moved_and_nothing_that_rests(follower) -> None:
    assert follower.fetch(0) == [0]


def test_records_in_a_partition_at_rest_answer_the_fetch_that_waits(leader, follower, batch) -> None:
    follower.fetch(0)
    append(leader, 3, batch())
    assert follower.news() == {0: (ErrorCode.none, 0, 1), 3: (ErrorCode.none, 81, 0)}
    follower.offsets[3] = 1
    assert follower.fetch(3) == [3]


def test_records_while_no_fetch_waits_are_read_by_the_next(leader, follower, batch) -> None:
    append(leader, 2, batch())
    assert follower.fetch(0) == [0, 2]
    assert follower.news()[2] == (ErrorCode.none, 81, 0)


def test_records_between_a_fetchs_reads_and_its_wait_answer_it(leader, follower, batch) -> None:
    first = partition(leader, 0).reads
    read = first.read

    def read_and_append(request, **named):
        first.read = read
        result = read(request, **named)
        append(leader, 1, batch())
        return result

    first.read = read_and_append
    follower.fetch(0)
    assert follower.news()[1] == (ErrorCode.none, 81, 0)


def test_a_change_that_meets_an_answer_on_its_way_is_not_lost(leader, follower, batch) -> None:
    """The token is taken by a wake that finds its fetch answered, before the partition is put to rest."""
    follower.fetch(0)
    sessions = leader.parts.waits.fetch_sessions
    (session,) = sessions._sessions.values()
    rest = session.partitions.rest

    def append_first(resting):
        session.partitions.rest = rest
        append(leader, 0, batch())
        return rest(resting)

    session.partitions.rest = append_first
    append(leader, 3, batch())
    assert sorted(follower.fetch()) == [0, 3]


def test_when_its_time_is_up_a_fetch_reads_all(leader, follower, batch) -> None:
    follower.fetch(0)
    follower.read.clear()
    leader.timer.fire()
    assert sorted(follower.read) == [(number, True) for number in range(PARTITIONS)]


def test_all_are_read_once_the_longest_rest_is_over(leader, follower, clock) -> None:
    assert follower.fetch(0) == [0]
    leader.timer.fire()
    clock.now_ms += REST_MAX_MS
    assert sorted(follower.fetch()) == [*range(PARTITIONS)]


def test_a_partition_rests_for_a_quarter_of_the_lag_at_which_a_follower_leaves() -> None:
    assert (rest_max_ms(30_000), rest_max_ms(1_000)) == (500, 250)


def test_an_idle_partition_that_wakes_keeps_its_follower_in_sync(leader, follower, batch, clock) -> None:
    for end in range(2, 102):
        clock.now_ms += REST_MAX_MS
        follower.fetch(0)
        append(leader, 0, batch())
        follower.offsets[0] = end
    append(leader, 1, batch())
    partition(leader, 1).on_tick()
    assert committed_isr(partition(leader, 1)._replica.leader.isr).members == {1, FOLLOWER}
    assert leader.proposals == []


def test_an_idle_partition_that_wakes_loses_a_follower_that_is_gone(leader, follower, batch, clock):
    follower.fetch(0)
    append(leader, 1, batch())
    follower.offsets[1] = 1
    partition(leader, 1).on_tick()
    clock.now_ms += 20_000
    partition(leader, 1).on_tick()
    clock.now_ms += 20_000
    partition(leader, 1).on_tick()
    assert [members for proposal in leader.proposals for members in proposal.members] == [(1, 10)]


def test_a_partition_whose_leader_resigns_wakes_with_the_reason(leader, follower) -> None:
    follower.fetch(0)
    stopped = partition(leader, 2)
    stopped.stop("a test")
    stopped.log_guard.deliver()
    assert follower.news()[2][0] is ErrorCode.not_leader_or_follower


def test_a_follower_that_is_not_in_sync_has_its_partition_read_by_each_fetch(members, batch) -> None:
    become(members[1], isr=(1,))
    follower = Follower(members[1])
    follower.fetch(wait_max_ms=0)
    for number, proposal in enumerate(members[1].proposals):
        refusal = IsrReply(ErrorCode.ineligible_replica)
        partition(members[1], number).on_isr_reply(1, proposal.proposal, refusal)
    follower.fetch()
    append(members[1], 0, batch())
    assert sorted(follower.fetch()) == [*range(PARTITIONS)]


def test_the_answer_brings_a_high_watermark_that_has_risen_since_the_last(leader, batch) -> None:
    follower = at_the_end_of_1(leader, batch)
    append(leader, 3, batch())
    assert follower.news() == {1: (ErrorCode.none, 0, 1), 3: (ErrorCode.none, 81, 0)}


def test_a_partition_stays_awake_while_another_follower_holds_its_high_watermark_back(members, batch) -> None:
    become(members[1], isr=(1, FOLLOWER, 3))
    follower = at_the_end_of_1(members[1], batch)
    append(members[1], 3, batch())
    assert follower.news() == {3: (ErrorCode.none, 81, 0)}
    assert sorted(follower.fetch()) == [1, 3]


def at_the_end_of_1(leader, batch) -> Follower:
    """A follower that has fetched a record of partition 1, and waits for more."""
    follower = Follower(leader)
    follower.fetch(wait_max_ms=0)
    append(leader, 1, batch())
    follower.fetch()
    follower.offsets[1] = 1
    follower.fetch(1)
    return follower


def test_a_partition_that_the_session_forgets_has_no_wait_of_it(leader, follower) -> None:
    assert waits(leader, 1) == 1
    follower.fetch(0, forget=(1,))
    assert waits(leader, 1) == 0


def test_a_partition_that_is_named_again_waits_once(leader, follower) -> None:
    assert follower.fetch(0, 1) == [0, 1]
    assert waits(leader, 1) == 1


def test_the_end_of_a_session_leaves_no_wait_behind(leader, follower) -> None:
    assert [waits(leader, number) for number in range(PARTITIONS)] == [0, 1, 1, 1]
    follower.epoch = -1
    follower.fetch(wait_max_ms=0)
    assert [waits(leader, number) for number in range(PARTITIONS)] == [0, 0, 0, 0]
    assert leader.parts.waits.fetch_sessions.by_token == {}


def test_a_fetch_that_outlives_its_session_puts_nothing_to_rest(leader, follower, batch) -> None:
    follower.fetch(0, 1)
    waiting = follower.epoch
    follower.epoch = -1
    follower.fetch(wait_max_ms=0)
    follower.epoch = waiting
    append(leader, 0, batch())
    assert [waits(leader, number) for number in range(PARTITIONS)] == [0, 0, 0, 0]


def test_a_follower_that_registers_anew_has_all_its_partitions_read(follower) -> None:
    follower.broker_epoch += 1
    assert sorted(follower.fetch(0)) == [*range(PARTITIONS)]


def test_a_second_fetch_while_another_waits_reads_all(follower) -> None:
    follower.fetch(0)
    assert sorted(follower.fetch()) == [*range(PARTITIONS)]


def test_no_record_is_overlooked_between_threads(leader, batch) -> None:
    """No timer fires, and the clock stands still: whatever a change fails to wake, waits for ever."""
    follower, answered = Follower(leader), threading.Event()
    take = follower._take

    def take_and_tell(response) -> None:
        take(response)
        answered.set()

    follower._take = take_and_tell
    follower.fetch(wait_max_ms=0)
    ends = dict.fromkeys(range(PARTITIONS), 0)

    def write(numbers) -> None:
        for number in numbers:
            append(leader, number, batch())

    spread = [0, 1, 0, 2, 0, 3, 1, 0, 2, 1, 3, 0]
    writers = [threading.Thread(target=write, args=(part * 40,)) for part in (spread, spread[::-1])]
    expected = {number: 2 * 40 * spread.count(number) for number in range(PARTITIONS)}
    for writer in writers:
        writer.start()
    moved: list[int] = []
    while ends != expected:
        answered.clear()
        follower.fetch(*moved)
        assert answered.wait(60), f"{ends} of {expected}, and a fetch that nothing wakes"
        moved = [number for number, (_, size, _) in follower.news().items() if size]
        for number in moved:
            ends[number] += follower.news()[number][1] // BATCH_BYTES
            follower.offsets[number] = ends[number]
    for writer in writers:
        writer.join()
