"""Fetches of records that only a remote store has: parked, answered once, by the store or their time."""

from types import SimpleNamespace

import pytest

from sparklog.broker.handlers.list_offsets import handle as handle_list_offsets
from sparklog.broker.partition.answers import HistoryFound, HistoryRead, HistoryTime, ReadRequest
from sparklog.broker.waiting.fetch_purgatory import FetchLimits
from sparklog.broker.waiting.history_fetches import HistoryFetches
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.conftest import TOPIC_ID

TP, OTHER = TopicPartition("quakes", 0), TopicPartition("other", 0)


class Store:
    """A remote store that answers when a test says so."""

    def __init__(self) -> None:
        self.asked = []

    def read(self, wanted, answer) -> None:
        self.asked.append((wanted, answer))

    find = read

    def answer(self, size=50, *, error=ErrorCode.none, aborted=()) -> None:
        """Answer the oldest question with ``size`` bytes."""
        wanted, answer = self.asked.pop(0)
        parts = (b"x" * size,) if error is ErrorCode.none else ()
        answer(HistoryRead(error, parts, len(b"".join(parts)), wanted.fetch_offset + 5, aborted))


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def leader(members, batch, store):
    """It leads a log of 40 records, of which 30 are not on its disk any more."""
    leader = members[1]
    leader.become(1, 1, isr=(1,), replicas=(1, 2), min_isr=1)
    for _ in range(4):
        leader.produce(batch(10))
        leader.partition.log.roll()
    assert leader.partition.delete_local_segments(30, leader.partition.log.generation) == 3
    leader.parts.waits.fetches.history = HistoryFetches(leader.ports, store, 700)
    return leader


def fetch(leader, offset, *, wait_max_ms=500, bytes_max=1 << 20, **request):
    """Answers appear in the returned list."""
    answers = []
    wanted = [(TP, leader.partition, ReadRequest(offset, 1 << 20, **request))]
    leader.parts.waits.fetches.fetch(wanted, FetchLimits(wait_max_ms, 1, bytes_max), answers.append)
    return answers


def told(answers):
    return [(answer[TP].error, answer[TP].size_bytes) for answer in answers]


def test_a_fetch_below_the_local_start_is_parked_until_the_store_answers(leader, store) -> None:
    answers = fetch(leader, 12, bytes_max=1_000)
    assert answers == []
    wanted = store.asked[0][0]
    assert (wanted.topic_id, wanted.topic_partition, wanted.fetch_offset) == (TOPIC_ID, TP, 12)
    assert (wanted.end_offset, wanted.max_bytes, wanted.at_least_one_batch) == (30, 1_000, True)
    store.answer()
    assert told(answers) == [(ErrorCode.none, 50)]
    assert (answers[0][TP].high_watermark, answers[0][TP].log_start_offset) == (40, 0)
    assert leader.timer.waiting == []


def test_a_fetch_of_what_is_on_disk_asks_no_store(leader, store) -> None:
    assert told(fetch(leader, 30)) == [(ErrorCode.none, 81)]
    assert store.asked == []


@pytest.mark.parametrize("wait_max_ms", [0, 10, 30_000])
def test_it_waits_for_the_time_of_remote_reads_whatever_the_fetch_says(leader, store, wait_max_ms) -> None:
    """A client that would not wait would otherwise never get anything."""
    answers = fetch(leader, 12, wait_max_ms=wait_max_ms)
    assert [entry.delay_ms for entry in leader.timer.waiting] == [700]
    leader.timer.fire()
    assert told(answers) == [(ErrorCode.none, 0)]


def test_a_store_that_answers_too_late_answers_nobody_twice(leader, store) -> None:
    answers = fetch(leader, 12)
    leader.timer.fire()
    store.answer()
    assert told(answers) == [(ErrorCode.none, 0)]


def test_what_is_in_memory_is_answered_at_once(leader, store) -> None:
    store.read = lambda wanted, answer: answer(HistoryRead(ErrorCode.none, (b"abc",), 3, 13))
    assert told(fetch(leader, 12)) == [(ErrorCode.none, 3)]
    assert leader.timer.waiting == []


def test_a_store_that_fails_answers_for_that_range_alone(leader, store) -> None:
    answers, others = fetch(leader, 12), fetch(leader, 25)
    store.answer(error=ErrorCode.kafka_storage_error)
    store.answer()
    assert told(answers) == [(ErrorCode.kafka_storage_error, 0)]
    assert told(others) == [(ErrorCode.none, 50)]


def in_a_hole(wanted, answer):
    """As a store answers whose log has nothing before its disk begins."""
    answer(HistoryRead(ErrorCode.none, next_offset=wanted.end_offset))


def test_behind_what_elections_lost_a_fetch_gets_what_the_disk_begins_with(leader, store) -> None:
    store.read = in_a_hole
    assert told(fetch(leader, 12, last_fetched_epoch=1)) == [(ErrorCode.none, 81)]
    assert leader.timer.waiting == []


def test_what_left_the_disk_while_a_hole_was_looked_for_is_not_passed_over(leader, store, batch) -> None:
    """The next fetch finds it in the store."""
    answers = fetch(leader, 12, wait_max_ms=0)
    leader.produce(batch(10))
    leader.partition.log.roll()
    leader.partition.delete_local_segments(40, leader.partition.log.generation)
    in_a_hole(*store.asked.pop())
    leader.timer.fire()
    assert told(answers) == [(ErrorCode.none, 0)]


def test_a_fetch_behind_which_nothing_is_readable_yet_is_answered_when_its_time_is_over(
    leader, store
) -> None:
    """Else its reader would ask again at once, and again."""
    leader.partition.delete_local_segments(40, leader.partition.log.generation)
    store.read = in_a_hole
    answers = fetch(leader, 12)
    assert answers == []
    assert [entry.delay_ms for entry in leader.timer.waiting] == [500]
    leader.timer.fire()
    assert told(answers) == [(ErrorCode.none, 0)]


def test_a_leader_that_is_deposed_while_a_hole_is_looked_for_says_so(leader, store) -> None:
    answers = fetch(leader, 12)
    leader.become(2, 2)
    in_a_hole(*store.asked.pop())
    assert told(answers) == [(ErrorCode.not_leader_or_follower, 0)]


def test_a_leader_that_is_deposed_meanwhile_says_so(leader, store) -> None:
    answers = fetch(leader, 12)
    leader.become(2, 2)
    store.answer()
    assert told(answers) == [(ErrorCode.not_leader_or_follower, 0)]


def test_records_that_are_deleted_meanwhile_are_not_given(leader, store) -> None:
    answers = fetch(leader, 12)
    leader.partition.delete_records(20, (), 1)
    store.answer()
    assert told(answers) == [(ErrorCode.offset_out_of_range, 0)]


def test_a_follower_near_the_consumer_reads_the_store_too(leader, members, store) -> None:
    follower = members[2]
    follower.become(1, 1, isr=(1,), min_isr=1)
    for _ in range(4):
        follower.fetch_once()
    follower.parts.waits.fetches.history = HistoryFetches(follower.ports, store, 700)
    answers = fetch(follower, 12, from_any_replica=True)
    store.answer()
    assert told(answers) == [(ErrorCode.none, 50)]


def test_a_follower_is_sent_to_the_local_start_and_not_to_the_store(leader, store) -> None:
    answers = fetch(leader, 12, follower=2, follower_epoch=20)
    assert told(answers) == [(ErrorCode.offset_moved_to_tiered_storage, 0)]
    assert store.asked == []


def test_a_read_committed_reader_gets_the_aborted_transactions(leader, store) -> None:
    aborted = AbortedTransaction(5, 12, 14, 12)
    answers = fetch(leader, 12, read_committed=True)
    assert store.asked[0][0].leaves_out_aborted
    store.answer(aborted=(aborted,))
    assert answers[0][TP].aborted == (aborted,)


def fetch_two(leader, offsets, bytes_max):
    """One fetch of two partitions, which are the same one at two places."""
    answers = []
    wanted = [
        (name, leader.partition, ReadRequest(offset, 1 << 20))
        for name, offset in zip((OTHER, TP), offsets, strict=True)
    ]
    leader.parts.waits.fetches.fetch(wanted, FetchLimits(500, 1, bytes_max), answers.append)
    return answers


def test_a_fetch_of_several_places_is_answered_with_the_last_of_them(leader, store) -> None:
    answers = fetch_two(leader, (2, 12), 4 << 20)
    store.answer(60)
    assert answers == []
    store.answer(70)
    assert told(answers) == [(ErrorCode.none, 70)]


def test_the_store_is_asked_within_what_the_disk_leaves_of_the_limit(leader, store) -> None:
    answers = fetch_two(leader, (30, 12), 200)
    assert [(one.max_bytes, one.at_least_one_batch) for one, _ in store.asked] == [(119, False)]
    store.answer(100)
    assert told(answers) == [(ErrorCode.none, 100)]
    fetch_two(leader, (30, 12), 81)
    assert store.asked == []


def test_what_has_no_room_any_more_is_left_for_the_next_fetch(leader, store, batch) -> None:
    answers = fetch_two(leader, (40, 12), 81)
    leader.produce(batch(10))
    store.answer(70)
    assert told(answers) == [(ErrorCode.none, 0)]


def list_offsets(leader, *timestamps, replica_id=-1):
    """Answers appear in the returned list: error, offset and timestamp of each partition."""
    answers = []
    asked = [ListOffsetsPartition(partition_index=0, timestamp=timestamp) for timestamp in timestamps]
    request = ListOffsetsRequest(
        replica_id=replica_id, topics=[ListOffsetsTopic(name="quakes", partitions=asked)]
    )

    def reply(response) -> None:
        answers.append([(one.error_code, one.offset, one.timestamp) for one in response.topics[0].partitions])

    call = SimpleNamespace(
        version=8,
        partition=leader.replicas.find,
        broker=SimpleNamespace(fetches=leader.parts.waits.fetches),
        reply=reply,
        carefully=lambda act: act(),
    )
    handle_list_offsets(call, request)
    return answers


def test_a_search_by_time_waits_for_the_store_if_that_has_the_earlier_records(leader, store) -> None:
    answers = list_offsets(leader, 5_000, -1)
    assert answers == []
    wanted, answer = store.asked.pop()
    assert wanted == HistoryTime(TOPIC_ID, TP, 5_000, 0, 30)
    answer(HistoryFound(ErrorCode.none, 12, 6_000))
    assert answers == [[(ErrorCode.none, 12, 6_000), (ErrorCode.none, 40, -1)]]
    assert leader.timer.waiting == []


def test_what_neither_the_store_nor_the_disk_has_is_not_found(leader, store) -> None:
    answers = list_offsets(leader, 10_000)
    store.asked.pop()[1](HistoryFound(ErrorCode.none))
    assert answers == [[(ErrorCode.none, -1, -1)]]


def test_a_search_that_the_store_does_not_answer_is_answered_with_an_error(leader, store) -> None:
    """The first record on disk would be a wrong answer."""
    slow, failed = list_offsets(leader, 5_000), list_offsets(leader, 5_000)
    store.asked[1][1](HistoryFound(ErrorCode.kafka_storage_error))
    assert failed == [[(ErrorCode.kafka_storage_error, -1, -1)]]
    leader.timer.fire()
    assert slow == [[(ErrorCode.request_timed_out, -1, -1)]]
    store.asked[0][1](HistoryFound(ErrorCode.none, 12, 6_000))
    assert len(slow) == 1


def test_a_search_by_time_asks_no_store_if_all_is_on_disk(leader, store) -> None:
    leader.partition.delete_records(30, (), 1)
    assert list_offsets(leader, 5_000, -2, -4) == [
        [(ErrorCode.none, -1, -1), (ErrorCode.none, 30, -1), (ErrorCode.none, 30, -1)]
    ]
    assert store.asked == []


def test_a_broker_without_a_store_answers_empty_and_asks_nobody(leader, store) -> None:
    leader.parts.waits.fetches.history = None
    answers = fetch(leader, 12, wait_max_ms=0)
    assert told(answers) == [(ErrorCode.none, 0)]
