"""What a fetch gets of batches that are in memory, and which of them stay there."""

import uuid
from dataclasses import replace

import pytest

from sparklog.broker.partition.answers import HistoryRange
from sparklog.broker.remote_log.reading.runs import Run, RunCache
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import TopicPartition

TOPIC_ID = uuid.UUID(int=7)
LOG = (TOPIC_ID, 0)
RUN = Run(10, b"a" * 5 + b"b" * 7 + b"c" * 3, (14, 19, 24), (5, 12, 15), (3, 3, 4))
"""Three batches: offsets 10 to 14, 15 to 19, 20 to 24; the last one is of leader epoch 4."""


def wanted(offset, max_bytes=100, *, end=100, at_least_one=True, read_committed=False) -> HistoryRange:
    return HistoryRange(
        TOPIC_ID, TopicPartition("quakes", 0), offset, end, max_bytes, at_least_one, read_committed
    )


def cut(*args, run=RUN, **options) -> tuple[bytes, int]:
    read = run.cut(wanted(*args, **options))
    assert read.size_bytes == sum(map(len, read.parts))
    return b"".join(map(bytes, read.parts)), read.next_offset


@pytest.mark.parametrize(
    ("offset", "max_bytes", "data", "next_offset"),
    [
        pytest.param(10, 100, b"aaaaabbbbbbbccc", 25, id="all"),
        pytest.param(17, 100, b"bbbbbbbccc", 25, id="from the batch that holds the offset"),
        pytest.param(10, 12, b"aaaaabbbbbbb", 20, id="two that fit to the byte"),
        pytest.param(10, 11, b"aaaaa", 15, id="no part of a batch"),
        pytest.param(15, 1, b"bbbbbbb", 20, id="one at least"),
    ],
)
def test_a_fetch_gets_whole_batches_within_its_limit(offset, max_bytes, data, next_offset) -> None:
    assert cut(offset, max_bytes) == (data, next_offset)


def test_nothing_is_given_that_does_not_fit_unless_nothing_else_is() -> None:
    assert cut(10, 4, at_least_one=False) == (b"", 10)


@pytest.mark.parametrize(("end", "data"), [(25, b"ccc"), (24, b""), (20, b"")])
def test_nothing_is_given_that_reaches_the_local_start(end, data) -> None:
    assert cut(20, end=end)[0] == data


@pytest.mark.parametrize(
    ("epochs", "offset", "data"),
    [
        pytest.param([(3, 0), (4, 20)], 10, b"aaaaabbbbbbbccc", id="all of it is of this log"),
        pytest.param([(3, 0), (5, 20)], 10, b"aaaaabbbbbbb", id="an unclean election has lost its end"),
        pytest.param([(3, 0), (5, 15)], 10, b"aaaaa", id="and more than its last epoch"),
        pytest.param([(3, 0), (5, 20)], 20, b"", id="it begins with what was lost"),
        pytest.param([], 10, b"aaaaabbbbbbbccc", id="the epochs are not known"),
    ],
)
def test_batches_of_a_log_that_was_lost_are_not_given(epochs, offset, data) -> None:
    entries = tuple(EpochHistory.of(epochs).entries)
    of_log = wanted(offset)._replace(epochs=entries)
    assert b"".join(map(bytes, RUN.cut(of_log).parts)) == data
    assert RUN.is_of(of_log, offset) == bool(data)


def test_a_read_committed_fetch_gets_the_aborted_transactions_of_its_batches_alone() -> None:
    early, late = AbortedTransaction(5, 3, 16, 3), AbortedTransaction(6, 20, 30, 20)
    run = replace(RUN, aborted=(early, late))
    assert run.cut(wanted(10, 12, read_committed=True)).aborted == (early,)
    assert run.cut(wanted(20, read_committed=True)).aborted == (late,)
    assert run.cut(wanted(10)).aborted == ()


def run_at(offset: int, size: int) -> Run:
    return Run(offset, b"x" * size, (offset + 9,), (size,), (1,))


def test_a_run_is_found_by_each_of_its_offsets_and_by_no_other() -> None:
    cache = RunCache(10_000)
    cache.add(LOG, RUN)
    cache.add(LOG, run_at(40, 10))
    found = [cache.find(LOG, offset) for offset in (9, 10, 24, 25, 39, 40, 49, 50)]
    assert [run and run.first_offset for run in found] == [None, 10, 10, None, None, 40, 40, None]
    assert cache.find((TOPIC_ID, 1), 10) is None


def test_what_was_used_longest_ago_goes_first_and_the_bound_is_kept() -> None:
    cache = RunCache(3 * 1_100)
    for offset in (0, 10, 20):
        cache.add(LOG, run_at(offset, 1_000))
    assert cache.memory_bytes == 3_300
    assert cache.find(LOG, 0) is not None
    cache.add(LOG, run_at(30, 1_000))
    assert [cache.find(LOG, offset) is not None for offset in (0, 10, 20, 30)] == [True, False, True, True]
    assert cache.memory_bytes == 3_300


def test_the_same_place_read_twice_counts_once_and_what_is_too_large_not_at_all() -> None:
    cache = RunCache(2_000)
    cache.add(LOG, run_at(0, 1_000))
    cache.add(LOG, run_at(0, 500))
    cache.add(LOG, run_at(10, 5_000))
    assert (cache.memory_bytes, cache.find(LOG, 10)) == (600, None)
