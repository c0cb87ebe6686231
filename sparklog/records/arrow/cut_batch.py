"""Batches of typed topics with only the columns that a reader asked for.

    envelope | stored header | Arrow metadata | the wanted regions, in the directory's order

The envelope is the stored one but for three fields: its length is that of what follows, its attributes have
the bit *cut*, and its CRC covers bytes 0 to 16 and 21 to the header's end. Metadata and regions have CRCs of
their own, in the header's directory, which the reader compares.

A new CRC over damaged bytes would hide the damage. So the replica compares two CRCs first that were made when
the batch was written: the header's own, and that of the stored envelope's bytes 21 to 60.
"""

import struct
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.cut_metadata import metadata_of_some, moved_together
from sparklog.records.arrow.envelope_crc import envelope_crc
from sparklog.records.arrow.header import FIXED, ArrowHeader, ColumnEntry, parse_arrow_header
from sparklog.records.envelope import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    CUT_BIT,
    ENVELOPE,
    ENVELOPE_BYTES,
    LENGTH_OVERHEAD,
    BatchHeader,
    Bytes,
)
from sparklog.records.payload_kinds import TYPED_ARROW_VERSION

HEAD_BYTES_MIN: Final = ENVELOPE_BYTES + FIXED.size
"""From so many bytes of a batch follows how long its head is."""

_HEADER_LENGTH: Final = struct.Struct("<I")
_HEADER_LENGTH_POSITION: Final = ENVELOPE_BYTES + 4
_METADATA_LENGTH_POSITION: Final = ENVELOPE_BYTES + 32


class Stretch(NamedTuple):
    """Neighbouring bytes of a stored batch."""

    position: int
    """From the batch's start."""
    length: int


class CutBatch(NamedTuple):
    """What a reader is given of a batch: ``head``, then these stretches of the stored batch."""

    head: bytes
    stretches: Sequence[Stretch]

    @property
    def size_bytes(self) -> int:
        return len(self.head) + sum(stretch.length for stretch in self.stretches)


def can_be_cut(start: Bytes, header: BatchHeader) -> bool:
    """Whether the batch that begins with ``start``, of at least ``HEAD_BYTES_MIN`` bytes if it has as many,
    has columns that can be checked one by one.
    """
    return (
        header.is_arrow and len(start) >= HEAD_BYTES_MIN and start[ENVELOPE_BYTES + 1] == TYPED_ARROW_VERSION
    )


def head_bytes(start: Bytes, header: BatchHeader) -> int:
    """The bytes of envelope, header and Arrow metadata; CorruptBatch if the batch is shorter."""
    length: int = ENVELOPE_BYTES + _header_length(start)
    length += _HEADER_LENGTH.unpack_from(start, _METADATA_LENGTH_POSITION)[0]
    if length > header.size_bytes:
        raise CorruptBatch(f"a batch of {header.size_bytes} bytes claims that its columns begin at {length}")
    return length


def _header_length(start: Bytes) -> int:
    return int(_HEADER_LENGTH.unpack_from(start, _HEADER_LENGTH_POSITION)[0])


def checked_header(start: Bytes, header: BatchHeader) -> ArrowHeader:
    """The header of the batch that begins with ``start``, of at least ``head_bytes``; CorruptBatch if it or
    the envelope are damaged.
    """
    ours = parse_arrow_header(memoryview(start)[ENVELOPE_BYTES:], is_partial=True)
    if ours.envelope_crc != envelope_crc(start):
        raise CorruptBatch(f"the CRC {ours.envelope_crc:#010x} of the envelope's fields does not match")
    body_position = ENVELOPE_BYTES + ours.header_length + ours.metadata_length
    if body_position + ours.body_length != header.size_bytes:
        raise CorruptBatch(
            f"a batch of {header.size_bytes} bytes has {ours.body_length} of columns at {body_position}"
        )
    return ours


def cut_batch(
    start: Bytes, header: BatchHeader, wanted: Collection[int], checked: ArrowHeader | None = None
) -> CutBatch:
    """The batch that begins with ``start``, of at least ``head_bytes``, with the columns ``wanted`` alone.

    ``checked`` is its header, if that was checked already; else CorruptBatch as ``checked_header``. Ids that
    the batch lacks are left out.
    """
    ours = checked or checked_header(start, header)
    body_position = ENVELOPE_BYTES + ours.header_length + ours.metadata_length
    stretches = _joined(ours.columns, wanted, body_position)
    size_bytes = body_position + sum(stretch.length for stretch in stretches)
    head = bytearray(memoryview(start)[:body_position])
    fields = header._replace(
        length=size_bytes - LENGTH_OVERHEAD, crc=0, attributes=header.attributes | CUT_BIT
    )
    ENVELOPE.pack_into(head, 0, *fields)
    crc = _crc(head, ENVELOPE_BYTES + ours.header_length)
    ENVELOPE.pack_into(head, 0, *fields._replace(crc=crc))
    return CutBatch(bytes(head), stretches)


def _joined(columns: Sequence[ColumnEntry], wanted: Collection[int], body_position: int) -> list[Stretch]:
    stretches: list[Stretch] = []
    for entry in columns:
        if entry.column_id not in wanted or not entry.length:
            continue
        position = body_position + entry.offset
        if stretches and sum(stretches[-1]) == position:
            stretches[-1] = stretches[-1]._replace(length=stretches[-1].length + entry.length)
        else:
            stretches.append(Stretch(position, entry.length))
    return stretches


def _crc(batch: Bytes, header_end: int) -> int:
    """The CRC of a cut batch's envelope and header."""
    view = memoryview(batch)
    return crc32c(view[ATTRIBUTES_POSITION:header_end], crc32c(view[:CRC_POSITION]))


def cut_crc_matches(batch: Bytes, header: BatchHeader) -> bool:
    """Whether envelope and header of a cut batch are there as they were sent."""
    if not HEAD_BYTES_MIN <= header.size_bytes <= len(batch):
        return False
    header_end = ENVELOPE_BYTES + _header_length(batch)
    return header_end <= header.size_bytes and _crc(batch, header_end) == header.crc


def message_of_cut(message: Bytes, ours: ArrowHeader, wanted: Collection[int]) -> tuple[Bytes, ArrowHeader]:
    """The message of a cut batch, which has the regions of ``wanted``, as a message of these columns alone,
    and the header that goes with it. CorruptBatch if the metadata are damaged, or other regions are there.

    The regions' CRCs are in the header, and not compared yet.
    """
    view = memoryview(message)
    metadata, body = view[: ours.metadata_length], view[ours.metadata_length :]
    if crc32c(metadata) != ours.metadata_crc:
        raise CorruptBatch(f"the CRC {ours.metadata_crc:#010x} of the Arrow metadata does not match")
    stored = [entry for entry in ours.columns if entry.column_id in wanted]
    entries = moved_together(stored)
    body_length = sum(entry.length for entry in entries)
    if len(body) != body_length:
        raise CorruptBatch(
            f"a batch with columns {[entry.column_id for entry in entries]} has {len(body)} bytes of them, "
            f"not {body_length}"
        )
    own = metadata_of_some(metadata, list(zip(stored, entries, strict=True)), body_length)
    found = replace(ours, columns=tuple(entries), body_length=body_length, metadata_crc=crc32c(own))
    return own + body, found
