"""The new offset of a partition, for every way to reset it."""

import pytest

from sparklog.cli.coordinators.groups.reset_ways import (
    FromPlan,
    PartitionFacts,
    Reset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    Way,
    reset_one,
)
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition

T0 = TopicPartition("t", 0)


def reset(way: Way, committed: int | None = 50, at_time: int | None = None) -> Reset:
    """Of a partition whose log is [10, 100)."""
    facts = PartitionFacts(
        topic_partition=T0, log_start=10, log_end=100, committed=committed, at_time=at_time
    )
    return reset_one(way, facts)


@pytest.mark.parametrize(
    ("way", "offset"),
    [
        (ToEarliest(), 10),
        (ToLatest(), 100),
        (ToCurrent(), 50),
        (ToOffset(10), 10),
        (ToOffset(100), 100),
        (ShiftBy(-40), 10),
        (ShiftBy(50), 100),
        (ShiftBy(0), 50),
        (FromPlan({T0: 33}), 33),
    ],
)
def test_each_way_gives_its_offset_without_a_note(way: Way, offset: int) -> None:
    assert reset(way) == Reset(offset)


@pytest.mark.parametrize("way", [ToOffset(9), ShiftBy(-41), FromPlan({T0: 0})])
def test_an_offset_before_the_log_becomes_its_start_with_a_note(way: Way) -> None:
    found = reset(way)
    assert found.offset == 10
    assert "of t-0 is before the first record: 10 is taken" in found.note


@pytest.mark.parametrize("way", [ToOffset(101), ShiftBy(51), FromPlan({T0: 2**40})])
def test_an_offset_beyond_the_log_becomes_its_end_with_a_note(way: Way) -> None:
    found = reset(way)
    assert found.offset == 100
    assert "of t-0 is beyond the end: 100 is taken" in found.note


def test_a_time_gives_the_first_record_from_then_on_or_the_end() -> None:
    assert reset(ToTime(1_000), at_time=42) == Reset(42)
    assert reset(ToTime(1_000), at_time=None) == Reset(100)


def test_without_a_committed_offset_nothing_can_be_shifted_and_the_end_is_current() -> None:
    with pytest.raises(SparklogError, match="no committed offset for t-0"):
        reset(ShiftBy(1), committed=None)
    assert reset(ToCurrent(), committed=None) == Reset(100, "t-0 has no committed offset: its end is taken")
