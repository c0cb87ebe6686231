"""Which segment an object belongs to: written into both objects, so that neither is read beside another's."""

import json
from dataclasses import asdict, dataclass
from typing import Final

from sparklog.model.errors import CorruptBatch

VERSION: Final = 1
_SCHEMA_VERSION: Final = "schema_version"


@dataclass(frozen=True, slots=True)
class SegmentIdentity:
    """A remote segment. ``segment_id`` is 32 hexadecimal digits, new for every copy of a segment.

    ``schema_version`` is that of the topic's columns in ``.arrow``; 0 of an untyped topic.
    """

    segment_id: str
    topic: str
    topic_id: str
    partition: int
    base_offset: int
    leader_epoch: int
    schema_version: int = 0

    def __post_init__(self) -> None:
        if len(bytes.fromhex(self.segment_id)) != 16:
            raise ValueError(f"a segment's id has 32 hexadecimal digits, and {self.segment_id!r} has not")


def pack_identity(identity: SegmentIdentity, head_crc: int) -> str:
    """JSON for the metadata of an ``.arrow`` object's footer."""
    fields = asdict(identity)
    if not identity.schema_version:
        del fields[_SCHEMA_VERSION]
    return json.dumps({"version": VERSION, **fields, "head_crc": head_crc}, separators=(",", ":"))


def parse_identity(text: str) -> tuple[SegmentIdentity, int]:
    """The identity, and the CRC of what stands before the first record batch."""
    try:
        fields = json.loads(text)
        version = fields.pop("version")
        check_version(version, ".arrow")
        head_crc = int(fields.pop("head_crc"))
        fields.setdefault(_SCHEMA_VERSION, 0)
        names = SegmentIdentity.__dataclass_fields__
        return SegmentIdentity(**{name: fields[name] for name in names}), head_crc
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptBatch(f"an .arrow object does not say which segment it is: {error!r}") from None


def check_version(version: object, suffix: str) -> None:
    if version != VERSION:
        raise CorruptBatch(
            f"a {suffix} object of version {version!r} is unknown to this release; a newer one may read it"
        )
