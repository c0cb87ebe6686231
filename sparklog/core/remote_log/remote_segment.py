"""A segment of a remote log, and the names of its objects.

A segment has up to three objects: its batches in ``.arrow`` and ``.rest`` (in ``.rest`` alone if it is
*raw*), and ``.state`` with producers, leader epochs and aborted transactions. No name is given twice, because
it has the topic's id, the leader epoch of the copy, the base offset and an id of its own. A repeated copy, a
fenced leader's copy and the copy of a recreated topic all have other names.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from sparklog.core.remote_log.reach import SealedSegment
from sparklog.model.ids import TopicId

Suffix = Literal["arrow", "rest", "state"]

ID_BYTES: Final = 16
"""The length of the ids of segments and pages; 32 hexadecimal digits in text."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RemoteSegment(SealedSegment):
    """A segment with the sizes of its objects; ``size_bytes`` is that of its batches, as retention counts it.

    Readers take the sizes of objects from here and ask no store for them. ``arrow_bytes`` is 0 without an
    ``.arrow``. ``state_crc`` is the CRC-32C of the whole ``.state``; the other objects carry their own CRCs.
    """

    segment_id: str
    leader_epoch: int
    arrow_bytes: int
    rest_bytes: int
    state_bytes: int
    state_crc: int

    def __post_init__(self) -> None:
        check_id(self.segment_id)
        if not 0 <= self.base_offset < self.end_offset:
            raise ValueError(f"a segment of offsets {self.base_offset} to {self.end_offset} has none")
        if min(self.size_bytes, self.rest_bytes) <= 0 or min(self.arrow_bytes, self.state_bytes) < 0:
            raise ValueError(f"segment {self.segment_id} has sizes that no segment has: {self}")

    @property
    def suffixes(self) -> tuple[Suffix, ...]:
        """The suffixes of its objects, in the order in which they are written."""
        return ("arrow", "rest", "state") if self.arrow_bytes else ("rest", "state")


@dataclass(frozen=True, slots=True)
class RemotePartition:
    """The partition whose objects are named. Names are relative to the store's URL."""

    topic: str
    topic_id: TopicId
    partition: int

    @property
    def folder(self) -> str:
        """The folder of this topic and of earlier ones of its name; an object's name has the topic's id."""
        return f"topic={self.topic}/partition={self.partition}"

    def object_name(self, segment: RemoteSegment, suffix: Suffix) -> str:
        """The name of an object. The date in front is that of the greatest timestamp, for people only."""
        parts = (
            _date(segment.max_timestamp_ms),
            f"{segment.base_offset:020d}",
            str(segment.leader_epoch),
            self.topic_id.hex,
            segment.segment_id,
        )
        return f"{self.folder}/{'-'.join(parts)}.{suffix}"

    def object_names(self, segment: RemoteSegment) -> list[str]:
        return [self.object_name(segment, suffix) for suffix in segment.suffixes]

    def page_name(self, base_offset: int, page_id: str) -> str:
        return f"{self.folder}/manifest/{base_offset:020d}-{self.topic_id.hex}-{page_id}.page"

    def is_ours(self, name: str) -> bool:
        """Whether an object of this name is of this topic, not of an earlier one of the same name."""
        return name.startswith(f"{self.folder}/") and f"-{self.topic_id.hex}-" in name.rpartition("/")[2]


def check_id(text: str) -> None:
    """ValueError unless this is the id of a segment or of a page."""
    if len(text) != 2 * ID_BYTES or text != text.lower() or len(bytes.fromhex(text)) != ID_BYTES:
        raise ValueError(f"{text!r} is no id: that has 32 hexadecimal digits in lower case")


def _date(timestamp_ms: int) -> str:
    """``20240131``; ``undated`` for a time that no calendar has. Producers may send such times."""
    try:
        return f"{_EPOCH + timedelta(milliseconds=timestamp_ms):%Y%m%d}"
    except OverflowError:
        return "undated"
