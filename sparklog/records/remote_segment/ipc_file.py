"""Metadata of Arrow IPC messages and the footer of Arrow IPC files, as flatbuffers that are written here.

pyarrow's writer lays out and compresses a body anew; a remote segment keeps bodies as they are, with further
buffers after them. So the metadata is ours. Field numbers of RecordBatch and Message are in
``arrow.layout``; those of the footer are

    Footer:   0 version i16 (4 is V5), 1 schema, 2 dictionaries, 3 record batches [Block],
              4 metadata [KeyValue]
    Block:    offset i64, metadata length i32, 4 bytes of padding, body length i64
    KeyValue: 0 key, 1 value
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.layout import PREFIX, FlatTable, Node, Region
from sparklog.records.envelope import Bytes

MAGIC: Final = b"ARROW1"
HEAD: Final = MAGIC + b"\0\0"
END_OF_STREAM: Final = b"\xff\xff\xff\xff\0\0\0\0"
TAIL: Final = struct.Struct("<i6s")
"""Length of the footer, and the magic: the last bytes of a file."""

_CONTINUATION: Final = 0xFFFF_FFFF
_V5: Final = 4
_RECORD_BATCH: Final = 3
_COUNT: Final = struct.Struct("<I")
_BLOCK: Final = struct.Struct("<qi4xq")

_MESSAGE: Final = struct.Struct("<I 6H iIqhBx 6H iIqII")
"""Root; vtable and table of the Message; vtable and table of the RecordBatch: 72 bytes."""
_COMPRESSION: Final = struct.Struct("<4H iBB2x")
_FOOTER: Final = struct.Struct("<I 7H2x ih2xIIII 4x")
_KEY_VALUE: Final = struct.Struct("<4H iII")
assert (_MESSAGE.size, _COMPRESSION.size, _FOOTER.size) == (72, 16, 48)


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
    compression = b"" if codec is None else _COMPRESSION.pack(8, 8, 4, 5, 8, codec, 0)
    nodes_at = _MESSAGE.size + len(compression) + 4
    buffers_at = nodes_at + _COUNT.size + 16 * len(nodes) + 4
    fixed = _MESSAGE.pack(
        16,
        *(12, 20, 16, 18, 4, 8),
        *(12, 48 - 20, body_length, _V5, _RECORD_BATCH),
        *(12, 24, 8, 4, 16, 20 if compression else 0),
        *(12, nodes_at - 52, row_count, buffers_at - 64, 80 - 68 if compression else 0),
    )
    pieces = [fixed, compression, bytes(4), _pairs(nodes), bytes(4), _pairs(buffers)]
    metadata = b"".join(pieces)
    return PREFIX.pack(_CONTINUATION, len(metadata)) + metadata


def _pairs(pairs: Sequence[tuple[int, int]]) -> bytes:
    numbers = [number for pair in pairs for number in pair]
    return struct.pack(f"<I{len(numbers)}q", len(pairs), *numbers)


def build_footer(schema_message: Bytes, blocks: Sequence[Block], metadata: Mapping[str, str]) -> bytes:
    """The footer of a file, without ``TAIL``. ``schema_message`` is the one at the file's start."""
    schema = bytes(memoryview(schema_message)[PREFIX.size :])
    schema += padding(len(schema))
    schema_at = _FOOTER.size + FlatTable(memoryview(schema), _COUNT.unpack_from(schema)[0]).target(2)
    blocks_at = _FOOTER.size + len(schema) + 4
    metadata_at = blocks_at + _COUNT.size + _BLOCK.size * len(blocks)
    fixed = _FOOTER.pack(
        20,
        *(14, 24, 4, 8, 0, 16, 20),
        *(16, _V5, schema_at - 28, 0, blocks_at - 36, metadata_at - 40),
    )
    counted = [bytes(4), _COUNT.pack(len(blocks)), *(_BLOCK.pack(*block) for block in blocks)]
    return b"".join([fixed, schema, *counted, _key_values(metadata)])


def _key_values(metadata: Mapping[str, str]) -> bytes:
    """A vector of tables; what it points to follows it."""
    head = _COUNT.size * (1 + len(metadata))
    offsets, tables = [_COUNT.pack(len(metadata))], bytearray()
    for nth, pair in enumerate(metadata.items(), start=1):
        table_at = head + len(tables) + 8
        offsets.append(_COUNT.pack(table_at - _COUNT.size * nth))
        key, value = map(_text, pair)
        tables += _KEY_VALUE.pack(8, 12, 4, 8, 8, 8, 4 + len(key)) + key + value
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
        return Footer(_blocks(view, table.target(3)), _metadata(view, table.target(4)))
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
        key, value = (_string(view, pair.target(field)) for field in (0, 1))
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
