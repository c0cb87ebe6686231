"""The start and the end of a read as its options name them, before a broker is asked.

A *bound* is a point in one partition: an offset, the earliest, the latest, or the first record at or after a
timestamp. *Bounds* give each partition one. A batch read resolves bounds in its tasks, so that "latest" means
the latest when the query runs (``batch_reader``).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicPartition

EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class AtOffset:
    """An offset, or one of the two sentinels."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after a timestamp; the latest offset if all are earlier and ``or_latest`` is
    set.
    """

    timestamp_ms: int
    or_latest: bool


Bound = AtOffset | AtTime

EARLIEST: Final = AtOffset(EARLIEST_OFFSET)
LATEST: Final = AtOffset(LATEST_OFFSET)


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same bound in every partition."""

    bound: Bound

    def each(self, topic_partitions: Collection[TopicPartition]) -> dict[TopicPartition, Bound]:
        return dict.fromkeys(topic_partitions, self.bound)


@dataclass(frozen=True, slots=True)
class Each:
    """A bound for each partition that is read, and for no other. ``option`` named them."""

    by_partition: Mapping[TopicPartition, Bound]
    option: str

    def each(self, topic_partitions: Collection[TopicPartition]) -> dict[TopicPartition, Bound]:
        if set(topic_partitions) != set(self.by_partition):
            raise ConfigError(
                f"option {self.option} must name all the partitions that are read and no others (-1 means "
                f"latest, -2 earliest). Specified: {_names(self.by_partition)}. "
                f"Assigned: {_names(topic_partitions)}"
            )
        return dict(self.by_partition)


Bounds = Everywhere | Each


def refuse_different_partitions(start: Bounds, end: Bounds) -> None:
    """ConfigError unless both ends of a batch read name the same partitions, if both name any."""
    if isinstance(start, Each) and isinstance(end, Each) and set(start.by_partition) != set(end.by_partition):
        raise ConfigError(
            f"{start.option} and {end.option} must name the same topic-partitions: different topic "
            f"partitions for starting offsets ({_names(start.by_partition)}) and ending offsets "
            f"({_names(end.by_partition)})"
        )


def _names(topic_partitions: Collection[TopicPartition]) -> str:
    return ", ".join(str(topic_partition) for topic_partition in sorted(topic_partitions)) or "none"
