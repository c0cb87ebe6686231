"""The start and the end of a read as its options give them, before any broker is asked.

A *place* is a point in one partition: an offset, the earliest, the latest, or the first record at or after a
timestamp. A *bound* gives each partition its place. A batch read resolves places in its tasks,
so that "latest" means the latest when the query runs (``batch_reader``).
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
    """The first record at or after a timestamp. ``or_latest``: what to do where every record is earlier."""

    timestamp_ms: int
    or_latest: bool


Place = AtOffset | AtTime

EARLIEST: Final = AtOffset(EARLIEST_OFFSET)
LATEST: Final = AtOffset(LATEST_OFFSET)


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same place in every partition."""

    place: Place

    def places(self, topic_partitions: Collection[TopicPartition]) -> dict[TopicPartition, Place]:
        return dict.fromkeys(topic_partitions, self.place)


@dataclass(frozen=True, slots=True)
class Each:
    """A place per partition; exactly the partitions that are read. ``option`` named them."""

    by_partition: Mapping[TopicPartition, Place]
    option: str

    def places(self, topic_partitions: Collection[TopicPartition]) -> dict[TopicPartition, Place]:
        if set(topic_partitions) != set(self.by_partition):
            raise ConfigError(
                f"option {self.option} must name all the partitions that are read and no others (-1 means "
                f"latest, -2 earliest). Specified: {_names(self.by_partition)}. "
                f"Assigned: {_names(topic_partitions)}"
            )
        return dict(self.by_partition)


Bound = Everywhere | Each


def refuse_different_partitions(start: Bound, end: Bound) -> None:
    """ConfigError unless both ends of a batch read name the same partitions, if both name any."""
    if isinstance(start, Each) and isinstance(end, Each) and set(start.by_partition) != set(end.by_partition):
        raise ConfigError(
            f"{start.option} and {end.option} must name the same topic-partitions: different topic "
            f"partitions for starting offsets ({_names(start.by_partition)}) and ending offsets "
            f"({_names(end.by_partition)})"
        )


def _names(topic_partitions: Collection[TopicPartition]) -> str:
    return ", ".join(str(topic_partition) for topic_partition in sorted(topic_partitions)) or "none"
