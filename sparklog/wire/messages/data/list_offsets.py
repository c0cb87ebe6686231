"""ListOffsets (key 2): the offset that belongs to a timestamp, or a log's two ends."""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparklog.model.errors import ErrorCode

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
"""Ask for the offset of the record with the greatest timestamp (KIP-734, version 7 on)."""
EARLIEST_LOCAL_TIMESTAMP: Final = -4
"""Ask for the first offset that is not only in the remote tier (KIP-405, version 8 on)."""


@dataclass(slots=True, kw_only=True)
class ListOffsetsPartition:
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"current_leader_epoch", "max_num_offsets"})

    partition_index: int
    current_leader_epoch: int = -1
    timestamp: int
    max_num_offsets: int = 1


@dataclass(slots=True, kw_only=True)
class ListOffsetsTopic:
    name: str
    partitions: list[ListOffsetsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListOffsetsRequest:
    """``isolation_level`` 1 (read committed) makes "latest" mean the last stable offset."""

    API_KEY: ClassVar[int] = 2

    replica_id: int = -1
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListOffsetsPartitionResponse:
    """Version 0 has only ``old_style_offsets``: at most ``max_num_offsets`` from the latest down.

    Three extensions of ours, to a follower that asks where the log begins on disk. ``producers``: a snapshot
    of the producer states before that. If a remote store has what is before that: ``log_start_offset``, where
    it begins, and ``epochs``, each with the offset at which it begins, one after the other.

    Two more to a consumer that asks where the log begins on disk, of a topic in a remote store.
    ``remote_share``: start, end and bytes of what the store has, and segments and bytes that wait for their
    copy; -1 is unknown. ``remote_trouble``: what is wrong with it.
    """

    IGNORABLE: ClassVar[frozenset[str]] = frozenset(
        {"producers", "log_start_offset", "epochs", "remote_share", "remote_trouble"}
    )

    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    old_style_offsets: list[int] = field(default_factory=list)
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1
    producers: bytes | memoryview = b""
    log_start_offset: int = -1
    epochs: tuple[int, ...] = ()
    remote_share: tuple[int, ...] = ()
    remote_trouble: str = ""


@dataclass(slots=True, kw_only=True)
class ListOffsetsTopicResponse:
    name: str
    partitions: list[ListOffsetsPartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListOffsetsResponse:
    API_KEY: ClassVar[int] = 2

    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = field(default_factory=list)
