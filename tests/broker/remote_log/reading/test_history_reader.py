"""Reads of a store that answers when the test lets it."""

import threading
import uuid

import pytest

from sparklog.broker.partition.answers import HistoryFound, HistoryRange, HistoryTime
from sparklog.broker.remote_log.reading.history_reader import HistoryReader
from sparklog.broker.remote_log.reading.runs import Run, RunCache
from sparklog.core.replication.epoch_history import EpochEntry
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import LeaderEpoch, Offset, TopicPartition

TP = TopicPartition("quakes", 0)


class Work:
    """Threads that work when they are told to."""

    def __init__(self) -> None:
        self.waiting = []

    def submit(self, work) -> None:
        self.waiting.append(work)

    def do_all(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


class Source:
    """Each offset is a batch of 10 bytes; a run has ten of them. ``broken`` offsets cannot be read."""

    def __init__(self) -> None:
        self.asked = []
        self.broken = set()
        self.hole = range(0)
        self.epoch = 1

    def run_from(self, wanted, offset, size) -> Run | None:
        self.asked.append(offset)
        if offset in self.broken:
            raise SparklogError(f"object 7 is rotten at {offset}")
        if offset in self.hole:
            return None
        places = range(offset, offset + 10)
        return Run(offset, bytes(100), tuple(places), tuple(range(10, 101, 10)), (self.epoch,) * 10)


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def work():
    return Work()


SUSPECTED = []


@pytest.fixture
def reader(source, work):
    SUSPECTED.clear()
    return HistoryReader(source, work, threading.Lock(), RunCache(10_000), 3, SUSPECTED.append)


def ask(reader, offset, max_bytes=30, *, end=1_000, topic=7, epochs=()):
    """Answers appear in the returned list."""
    answers = []
    wanted = HistoryRange(uuid.UUID(int=topic), TP, offset, end, max_bytes, True, False, epochs)
    reader.read(wanted, lambda read: answers.append((read.error, read.next_offset)))
    return answers


def test_a_read_is_answered_when_the_store_has_answered(reader, work, source) -> None:
    answers = ask(reader, 5)
    assert answers == []
    work.do_all()
    assert answers == [(ErrorCode.none, 8)]
    assert source.asked == [5]


def test_what_was_read_beyond_the_limit_serves_the_next_fetch_at_once(reader, work, source) -> None:
    ask(reader, 0)
    work.do_all()
    assert ask(reader, 3, 10) == [(ErrorCode.none, 4)]
    assert (source.asked, work.waiting) == ([0], [])


def test_a_run_from_before_an_unclean_election_is_forgotten_and_read_anew(reader, work, source) -> None:
    ask(reader, 0)
    work.do_all()
    source.epoch = 2
    answers = ask(reader, 3, epochs=(EpochEntry(LeaderEpoch(2), Offset(3)),))
    assert answers == []
    work.do_all()
    assert (answers, source.asked) == ([(ErrorCode.none, 6)], [0, 3])


def test_two_fetches_of_the_same_place_ask_the_store_once(reader, work, source) -> None:
    first, second = ask(reader, 5), ask(reader, 5, 10)
    work.do_all()
    assert (first, second, source.asked) == ([(ErrorCode.none, 8)], [(ErrorCode.none, 6)], [5])


def test_a_reader_that_has_got_half_of_a_run_finds_the_next_one_there(reader, work, source) -> None:
    ask(reader, 0)
    work.do_all()
    ask(reader, 3)
    assert len(work.waiting) == 1
    ask(reader, 3)
    assert len(work.waiting) == 1, "it is read ahead once"
    work.do_all()
    assert source.asked == [0, 10]
    assert ask(reader, 10) == [(ErrorCode.none, 13)]


def test_nothing_is_read_ahead_that_is_on_disk(reader, work, source) -> None:
    ask(reader, 0, end=10)
    work.do_all()
    ask(reader, 3, 100, end=10)
    assert (work.waiting, source.asked) == ([], [0])


def test_a_range_that_cannot_be_read_is_refused_and_others_are_served(reader, work, source, caplog) -> None:
    source.broken.add(5)
    broken, whole = ask(reader, 5), ask(reader, 20)
    work.do_all()
    assert broken == [(ErrorCode.kafka_storage_error, -1)]
    assert SUSPECTED == [TP], "the copier looks whether something is missing"
    assert whole == [(ErrorCode.none, 23)]
    assert (reader.counts.requests, reader.counts.errors) == (2, 1)
    assert "object 7 is rotten" in caplog.text
    source.broken.clear()
    again = ask(reader, 5)
    work.do_all()
    assert again == [(ErrorCode.none, 8)], "an error is not remembered"


def test_where_the_log_has_nothing_the_answer_is_where_the_disk_begins(reader, work, source) -> None:
    source.hole = range(5, 20)
    first, second = ask(reader, 5, end=20), ask(reader, 5, end=20)
    work.do_all()
    assert first == second == [(ErrorCode.none, 20)]
    assert (source.asked, reader.counts.errors, reader.counts.requests) == ([5], 0, 1)


def test_a_bug_in_the_source_answers_those_who_wait(reader, work, source) -> None:
    source.run_from = lambda *_: 1 // 0
    answers = ask(reader, 5)
    with pytest.raises(ZeroDivisionError):
        work.do_all()
    assert answers == [(ErrorCode.kafka_storage_error, -1)]


def test_with_too_many_reads_under_way_a_new_one_is_not_begun(reader, work, source) -> None:
    answers = [ask(reader, offset) for offset in (0, 100, 200, 300)]
    assert (len(work.waiting), reader.counts.refused) == (3, 1)
    work.do_all()
    assert [len(one) for one in answers] == [1, 1, 1, 0]


def find(reader, timestamp_ms):
    """Answers appear in the returned list."""
    answers = []
    reader.find(HistoryTime(uuid.UUID(int=7), TP, timestamp_ms, 0, 1_000), answers.append)
    return answers


def test_a_search_by_time_is_answered_when_the_store_has_answered(reader, work, source) -> None:
    known = {5: (50, 6), 9: None}
    source.first_of_time = lambda wanted: known[wanted.timestamp_ms]
    early, late = find(reader, 5), find(reader, 9)
    assert early == []
    work.do_all()
    assert early == [HistoryFound(ErrorCode.none, 50, 6)]
    assert late == [HistoryFound(ErrorCode.none, -1, -1)]


def test_a_search_that_fails_is_told_and_one_too_many_is_not_begun(reader, work, source, caplog) -> None:
    def fail(_wanted):
        raise SparklogError("object 7 is rotten")

    source.first_of_time = fail
    answers = [find(reader, nth) for nth in range(4)]
    work.do_all()
    assert answers == [[HistoryFound(ErrorCode.kafka_storage_error)]] * 3 + [[]]
    assert "object 7 is rotten" in caplog.text
    assert find(reader, 5) == []
    work.do_all()
    assert (reader.counts.requests, reader.counts.errors, reader.counts.refused) == (4, 4, 1)


def test_a_topic_of_another_id_shares_nothing(reader, work, source) -> None:
    ask(reader, 0)
    work.do_all()
    assert ask(reader, 0, topic=8) == []
