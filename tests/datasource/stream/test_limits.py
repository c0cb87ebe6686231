"""How much a micro-batch takes."""

from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.ids import TopicPartition
from sparklog.model.time import MonotonicMs
from sparklog_datasource.stream.limits import MinimumGate, limited


def tps(offsets: dict[int, int]) -> dict[TopicPartition, int]:
    return {TopicPartition("t", number): offset for number, offset in offsets.items()}


def test_the_limit_is_shared_in_proportion_to_the_backlogs() -> None:
    assert limited(10, tps({0: 0, 1: 100}), tps({0: 300, 1: 200})) == tps({0: 7, 1: 102})


def test_a_small_partition_is_not_starved() -> None:
    assert limited(10, tps({0: 0, 1: 0}), tps({0: 10_000, 1: 1})) == tps({0: 9, 1: 1})


def test_a_limit_above_the_backlog_takes_everything() -> None:
    assert limited(2**63 - 1, tps({0: 5, 1: 6}), tps({0: 50, 1: 60})) == tps({0: 50, 1: 60})


def test_partitions_without_a_backlog_keep_their_ends() -> None:
    assert limited(1, tps({0: 5, 1: 9}), tps({0: 5, 1: 7})) == tps({0: 5, 1: 7})
    assert limited(1, {}, {}) == {}


@given(
    st.integers(1, 2**63 - 1),
    st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)), min_size=1),
)
def test_no_end_is_passed_and_a_backlog_always_shrinks(limit: int, spans: dict[int, tuple[int, int]]) -> None:
    starts = tps({number: start for number, (start, _) in spans.items()})
    ends = tps({number: start + size for number, (start, size) in spans.items()})
    nearer = limited(limit, starts, ends)
    assert all(starts[tp] <= nearer[tp] <= ends[tp] for tp in ends)
    assert all(nearer[tp] > starts[tp] for tp in ends if ends[tp] > starts[tp])
    assert sum(nearer[tp] - starts[tp] for tp in ends) <= limit + len(ends)


def test_the_first_micro_batch_does_not_wait_for_the_minimum() -> None:
    assert not MinimumGate(100, 1_000).holds_back(tps({0: 0}), tps({0: 1}), MonotonicMs(5))


def test_later_ones_wait_for_the_minimum_or_the_longest_delay() -> None:
    gate = MinimumGate(100, 1_000)
    gate.holds_back(tps({0: 0}), tps({0: 1}), MonotonicMs(0))
    assert gate.holds_back(tps({0: 1}), tps({0: 100}), MonotonicMs(999))
    assert not gate.holds_back(tps({0: 1}), tps({0: 101}), MonotonicMs(999))
    assert gate.holds_back(tps({0: 101}), tps({0: 102}), MonotonicMs(1_998))
    assert not gate.holds_back(tps({0: 101}), tps({0: 102}), MonotonicMs(1_999))
