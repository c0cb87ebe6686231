"""Metadata of Arrow IPC messages and the footer of Arrow IPC files, as flatbuffers that are written here.

pyarrow's writer lays out and compresses a body anew; a remote segment keeps bodies as they are, with further
buffers after them. So the metadata is ours. Field numbers of RecordBatch and Message are in
``arrow.layout``, which also says what tables and vtables are; those of the footer are here. A Block is no
table: offset i64, metadata length i32, 4 bytes of padding, body length i64.

Each table is always written at the same place, with its vtable in front of it: ``_Table`` says where.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.layout import (
    METADATA_V5,
    PREFIX,
    RECORD_BATCH,
    CompressionField,
    FlatTable,
    MessageField,
    Node,
    RecordBatchField,
    Region,
)
from sparklog.records.envelope import Bytes

MAGIC: Final = b"ARROW1"
HEAD: Final = MAGIC + b"\0\0"
END_OF_STREAM: Final = b"\xff\xff\xff\xff\0\0\0\0"
TAIL: Final = struct.Struct("<i6s")
"""Length of the footer, and the magic: the last bytes of a file."""

_CONTINUATION: Final = 0xFFFF_FFFF
_COUNT: Final = struct.Struct("<I")
_BLOCK: Final = struct.Struct("<qi4xq")


class FooterField:
    """Field numbers of a Footer."""

    VERSION: Final = 0
    """i16: ``METADATA_V5``"""
    SCHEMA: Final = 1
    DICTIONARIES: Final = 2
    RECORD_BATCHES: Final = 3
    """A vector of blocks."""
    METADATA: Final = 4
    """A vector of KeyValues."""


class KeyValueField:
    """Field numbers of a KeyValue."""

    KEY: Final = 0
    VALUE: Final = 1


@dataclass(frozen=True, slots=True)
class _Table:
    """A table and its vtable at their places in the bytes that are written."""

    vtable_at: int
    at: int
    length: int
    fields: Mapping[int, int]
    """The place of each field in the table, by its number; the table begins with four bytes of ``back``."""

    @property
    def back(self) -> int:
        """The distance from the table back to its vtable."""
        return self.at - self.vtable_at

    def vtable(self, *absent: int) -> tuple[int, ...]:
        """Both lengths, and the place of each field: 0 if it is ``absent``."""
        places = [0 if number in absent else self.fields[number] for number in range(len(self.fields))]
        return (4 + 2 * len(places), self.length, *places)

    def to(self, target: int, field: int) -> int:
        """What a field says that points to ``target``: the distance from the field."""
        return target - self.at - self.fields[field]


_MESSAGE: Final = struct.Struct("<I 6H iIqhBx 6H iIqII")
"""Root; vtable and table of the Message; vtable and table of the RecordBatch."""

_MESSAGE_TABLE: Final = _Table(
    vtable_at=4,
    at=16,
    length=20,
    fields={
        MessageField.HEADER: 4,
        MessageField.BODY_LENGTH: 8,
        MessageField.VERSION: 16,
        MessageField.HEADER_TYPE: 18,
    },
)
_BATCH_TABLE: Final = _Table(
    vtable_at=36,
    at=48,
    length=24,
    fields={
        RecordBatchField.NODES: 4,
        RecordBatchField.ROW_COUNT: 8,
        RecordBatchField.BUFFERS: 16,
        RecordBatchField.COMPRESSION: 20,
    },
)

_COMPRESSION: Final = struct.Struct("<4H iBB2x")
_COMPRESSION_TABLE: Final = _Table(
    vtable_at=_MESSAGE.size,
    at=_MESSAGE.size + 8,
    length=8,
    fields={CompressionField.CODEC: 4, CompressionField.METHOD: 5},
)
_EACH_BUFFER: Final = 0
"""The method of compression: each buffer by itself."""

_FOOTER: Final = struct.Struct("<I 7H2x ih2xIIII 4x")
"""Root; vtable and table of the Footer."""
_FOOTER_TABLE: Final = _Table(
    vtable_at=4,
    at=20,
    length=24,
    fields={
        FooterField.VERSION: 4,
        FooterField.SCHEMA: 8,
        FooterField.DICTIONARIES: 12,
        FooterField.RECORD_BATCHES: 16,
        FooterField.METADATA: 20,
    },
)

_KEY_VALUE: Final = struct.Struct("<4H iII")
_KEY_VALUE_TABLE: Final = _Table(
    vtable_at=0, at=8, length=12, fields={KeyValueField.KEY: 4, KeyValueField.VALUE: 8}
)


class Block(NamedTuple):
    """One record batch of a file: where its message begins, and how long it is."""

    offset: int
    metadata_length: int
    body_length: int

    @property
    def end(self) -> int:
        return self.offset + self.metadata_length + self.body_length


@dataclass(frozen=True, slots=True)
class Footer:
    blocks: tuple[Block, ...]
    metadata: Mapping[str, str]


def padding(length: int) -> bytes:
    """What fills ``length`` up to a multiple of 8."""
    return bytes(-length % 8)


def record_batch_metadata(
    row_count: int,
    nodes: Sequence[Node],
    buffers: Sequence[Region],
    *,
    codec: int | None,
    body_length: int,
) -> bytes:
    """What stands before a body: the 8-byte prefix and the metadata, padded to 8 bytes.

    Buffers may be in any order, overlap, and leave bytes of the body out.
    """
    compression = b"" if codec is None else _compression(codec)
    nodes_at = _MESSAGE.size + len(compression) + 4
    buffers_at = nodes_at + _COUNT.size + 16 * len(nodes) + 4
    message, batch = _MESSAGE_TABLE, _BATCH_TABLE
    fixed = _MESSAGE.pack(
        message.at,
        *message.vtable(),
        message.back,
        message.to(batch.at, MessageField.HEADER),
        body_length,
        METADATA_V5,
        RECORD_BATCH,
        *(batch.vtable() if compression else batch.vtable(RecordBatchField.COMPRESSION)),
        batch.back,
        batch.to(nodes_at, RecordBatchField.NODES),
        row_count,
        batch.to(buffers_at, RecordBatchField.BUFFERS),
        batch.to(_COMPRESSION_TABLE.at, RecordBatchField.COMPRESSION) if compression else 0,
    )
    pieces = [fixed, compression, bytes(4), _pairs(nodes), bytes(4), _pairs(buffers)]
    metadata = b"".join(pieces)
    return PREFIX.pack(_CONTINUATION, len(metadata)) + metadata


def _compression(codec: int) -> bytes:
    table = _COMPRESSION_TABLE
    return _COMPRESSION.pack(*table.vtable(), table.back, codec, _EACH_BUFFER)


def _pairs(pairs: Sequence[tuple[int, int]]) -> bytes:
    numbers = [number for pair in pairs for number in pair]
    return struct.pack(f"<I{len(numbers)}q", len(pairs), *numbers)


def build_footer(schema_message: Bytes, blocks: Sequence[Block], metadata: Mapping[str, str]) -> bytes:
    """The footer of a file, without ``TAIL``. ``schema_message`` is the one at the file's start."""
    schema = bytes(memoryview(schema_message)[PREFIX.size :])
    schema += padding(len(schema))
    message = FlatTable(memoryview(schema), _COUNT.unpack_from(schema)[0])
    schema_at = _FOOTER.size + message.target(MessageField.HEADER)
    blocks_at = _FOOTER.size + len(schema) + 4
    metadata_at = blocks_at + _COUNT.size + _BLOCK.size * len(blocks)
    table = _FOOTER_TABLE
    fixed = _FOOTER.pack(
        table.at,
        *table.vtable(FooterField.DICTIONARIES),
        table.back,
        METADATA_V5,
        table.to(schema_at, FooterField.SCHEMA),
        0,  # no dictionaries
        table.to(blocks_at, FooterField.RECORD_BATCHES),
        table.to(metadata_at, FooterField.METADATA),
    )
    counted = [bytes(4), _COUNT.pack(len(blocks)), *(_BLOCK.pack(*block) for block in blocks)]
    return b"".join([fixed, schema, *counted, _key_values(metadata)])


def _key_values(metadata: Mapping[str, str]) -> bytes:
    """A vector of tables; what it points to follows it."""
    head = _COUNT.size * (1 + len(metadata))
    offsets, tables, table = [_COUNT.pack(len(metadata))], bytearray(), _KEY_VALUE_TABLE
    for nth, pair in enumerate(metadata.items(), start=1):
        offsets.append(_COUNT.pack(head + len(tables) + table.at - _COUNT.size * nth))
        key, value = map(_text, pair)
        key_at = _KEY_VALUE.size
        to_key = table.to(key_at, KeyValueField.KEY)
        to_value = table.to(key_at + len(key), KeyValueField.VALUE)
        tables += _KEY_VALUE.pack(*table.vtable(), table.back, to_key, to_value) + key + value
    return b"".join(offsets) + bytes(tables)


def _text(text: str) -> bytes:
    data = text.encode()
    return _COUNT.pack(len(data)) + data + bytes(4 - len(data) % 4)


def parse_footer(footer: Bytes) -> Footer:
    """The blocks and the metadata of a file's footer; CorruptBatch if it is malformed.

    Nothing larger than the footer is allocated, whatever it says.
    """
    view = memoryview(footer)
    try:
        table = FlatTable(view, _COUNT.unpack_from(view)[0])
        return Footer(
            _blocks(view, table.target(FooterField.RECORD_BATCHES)),
            _metadata(view, table.target(FooterField.METADATA)),
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptBatch(f"an Arrow footer of {len(view)} bytes is malformed: {error}") from None


def _blocks(view: memoryview, position: int) -> tuple[Block, ...]:
    count = _count(view, position, _BLOCK.size)
    start = position + _COUNT.size
    return tuple(Block(*_BLOCK.unpack_from(view, start + _BLOCK.size * nth)) for nth in range(count))


def _metadata(view: memoryview, position: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for nth in range(_count(view, position, _COUNT.size)):
        at = position + _COUNT.size * (nth + 1)
        pair = FlatTable(view, at + _COUNT.unpack_from(view, at)[0])
        key, value = (_string(view, pair.target(field)) for field in (KeyValueField.KEY, KeyValueField.VALUE))
        found[key] = value
    return found


def _count(view: memoryview, position: int, item_bytes: int) -> int:
    count = int(_COUNT.unpack_from(view, position)[0]) if position else 0
    if count * item_bytes > len(view) - position - _COUNT.size:
        raise CorruptBatch(f"an Arrow footer of {len(view)} bytes claims {count} items of {item_bytes} bytes")
    return count


def _string(view: memoryview, position: int) -> str:
    length = _count(view, position, 1)
    return bytes(view[position + _COUNT.size : position + _COUNT.size + length]).decode()
