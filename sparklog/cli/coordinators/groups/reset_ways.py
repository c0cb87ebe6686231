"""The arithmetic of ``reset-offsets``: from a way to reset and a partition's facts to the new offset.

PURE. The ways are those of Kafka's tool. A wanted offset outside of the log becomes the nearest one inside,
because a consumer would not find a record there, and would begin where its own setting says.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The log start offset."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """The end of the log: the next record that is written."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """The committed offset, or the end of the log without one: the state as it is, to be exported."""


@dataclass(frozen=True, slots=True)
class ToOffset:
    offset: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many records further; back, if ``distance`` is negative."""

    distance: int


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record at or after a time, or the end of the log if every record is earlier."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class FromPlan:
    """The offsets of a plan, by partition."""

    offsets: Mapping[TopicPartition, int]


Way = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToTime | FromPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """A partition before the reset. ``[log_start, log_end)`` can be read.

    ``committed`` is None without a committed offset; ``at_time`` is None if no record is at or after the time
    of a ``ToTime``.
    """

    topic_partition: TopicPartition
    log_start: int
    log_end: int
    committed: int | None = None
    at_time: int | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """The new offset of a partition, with a note where it is not the one that was asked for."""

    offset: int
    note: str = ""


def reset_one(way: Way, facts: PartitionFacts) -> Reset:
    """The new offset of one partition; SparklogError if ``way`` says nothing about it."""
    match way:
        case ToEarliest():
            return Reset(facts.log_start)
        case ToLatest():
            return Reset(facts.log_end)
        case ToCurrent():
            if facts.committed is None:
                return Reset(
                    facts.log_end, f"{facts.topic_partition} has no committed offset: its end is taken"
                )
            return Reset(facts.committed)
        case ToTime():
            return Reset(facts.log_end if facts.at_time is None else facts.at_time)
        case ToOffset(offset):
            return _inside(offset, facts)
        case FromPlan(offsets):
            return _inside(offsets[facts.topic_partition], facts)
        case ShiftBy(distance):
            if facts.committed is None:
                raise SparklogError(
                    f"--shift-by {distance}: the group has no committed offset for {facts.topic_partition}; "
                    "reset that partition in another way, or leave it out"
                )
            return _inside(facts.committed + distance, facts)


def _inside(offset: int, facts: PartitionFacts) -> Reset:
    """The nearest offset that the log has."""
    nearest = min(max(offset, facts.log_start), facts.log_end)
    if nearest == offset:
        return Reset(offset)
    where = "before the first record" if offset < nearest else "beyond the end"
    return Reset(nearest, f"offset {offset} of {facts.topic_partition} is {where}: {nearest} is taken")
