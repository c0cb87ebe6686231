"""Reading the layout of an Arrow IPC record-batch message from an untrusted sender.

pyarrow does not report the positions of each column's bytes, which the column directory needs; and pyarrow
allocates the memory that a compressed buffer claims, which must be bounded first. Therefore this module
parses the message's metadata, a flatbuffer:

    0xFFFFFFFF | metadata length i32 | metadata, padded | body

The fields of its tables are ``MessageField``, ``RecordBatchField`` and ``CompressionField``.

A flatbuffer table starts with the distance back to its vtable. The vtable holds its own length, the table's
length, and a u16 per field: the field's position in the table, 0 if it is absent. A compressed buffer begins
with its uncompressed length, i64, or -1 if it is not compressed. All numbers are little-endian.
"""

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import Bytes

PREFIX: Final = struct.Struct("<Ii")
_CONTINUATION: Final = 0xFFFF_FFFF
METADATA_V5: Final = 4
RECORD_BATCH: Final = 3
_ALIGNMENT: Final = 8

_U8: Final = struct.Struct("<B")
_U16: Final = struct.Struct("<H")
_I16: Final = struct.Struct("<h")
_I32: Final = struct.Struct("<i")
U32: Final = struct.Struct("<I")
_I64: Final = struct.Struct("<q")
PAIR: Final = struct.Struct("<qq")
_PAIRS_MAX: Final = 65_535
"""The greatest number of nodes or buffers of a batch; the column directory counts them in 16 bits."""


class MessageField:
    """Field numbers of a Message."""

    VERSION: Final = 0
    """i16: ``METADATA_V5``"""
    HEADER_TYPE: Final = 1
    """u8: ``RECORD_BATCH``"""
    HEADER: Final = 2
    BODY_LENGTH: Final = 3
    """i64"""


class RecordBatchField:
    """Field numbers of a RecordBatch."""

    ROW_COUNT: Final = 0
    """i64"""
    NODES: Final = 1
    """Pairs of row count i64 and null count i64."""
    BUFFERS: Final = 2
    """Pairs of offset i64 and length i64."""
    COMPRESSION: Final = 3
    VARIADIC_COUNTS: Final = 4


class CompressionField:
    """Field numbers of a BodyCompression."""

    CODEC: Final = 0
    """i8: 0 LZ4 frame, 1 ZSTD"""
    METHOD: Final = 1
    """i8: 0, each buffer by itself"""


class Node(NamedTuple):
    """One array of the batch, nested ones included, in depth-first order."""

    row_count: int
    null_count: int


class Region(NamedTuple):
    """A range of bytes in the body."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class IpcLayout:
    """The positions of a message's pieces; ``metadata_length`` includes the 8 bytes before the metadata."""

    metadata_length: int
    body_length: int
    row_count: int
    nodes: tuple[Node, ...]
    buffers: tuple[Region, ...]
    codec: int | None = None
    """0 LZ4 frame, 1 ZSTD; None: uncompressed."""

    @property
    def is_compressed(self) -> bool:
        return self.codec is not None

    @property
    def size_bytes(self) -> int:
        return self.metadata_length + self.body_length


def parse_layout(message: Bytes) -> IpcLayout:
    """The layout of the message at the start of ``message``; CorruptBatch if it is malformed."""
    try:
        return _parse(memoryview(message))
    except struct.error as error:
        raise CorruptBatch(f"an Arrow message of {len(message)} bytes is malformed: {error}") from None


def uncompressed_bytes(body: Bytes, layout: IpcLayout) -> list[int]:
    """The claimed uncompressed size of each buffer, for a check before memory is allocated."""
    if not layout.is_compressed:
        return [buffer.length for buffer in layout.buffers]
    return [_uncompressed_bytes(body, buffer) for buffer in layout.buffers]


def _uncompressed_bytes(body: Bytes, buffer: Region) -> int:
    if buffer.length == 0:
        return 0
    if buffer.length < _I64.size:
        raise CorruptBatch(f"a compressed buffer of {buffer.length} bytes has no room for its length")
    length: int = _I64.unpack_from(body, buffer.offset)[0]
    if length == -1:
        return buffer.length - _I64.size
    if length < 0:
        raise CorruptBatch(f"a compressed buffer claims to be {length} bytes long")
    return length


def _parse(message: memoryview) -> IpcLayout:
    continuation, padded = PREFIX.unpack_from(message, 0)
    metadata_length = PREFIX.size + padded
    if continuation != _CONTINUATION or padded <= 0 or metadata_length > len(message):
        raise CorruptBatch(f"{len(message)} bytes that begin {bytes(message[:8]).hex()} are no Arrow message")
    metadata = message[PREFIX.size : metadata_length]
    table = FlatTable(metadata, U32.unpack_from(metadata, 0)[0])
    version, kind = table.number(MessageField.VERSION, _I16), table.number(MessageField.HEADER_TYPE, _U8)
    if version != METADATA_V5 or kind != RECORD_BATCH:
        raise CorruptBatch(f"an Arrow message of version {version} and type {kind} is not a V5 record batch")
    batch = table.table(MessageField.HEADER)
    body_length = table.number(MessageField.BODY_LENGTH, _I64)
    if batch is None or not 0 <= body_length <= len(message) - metadata_length:
        raise CorruptBatch(f"an Arrow body of {body_length} bytes in {len(message) - metadata_length}")
    if batch.field(RecordBatchField.VARIADIC_COUNTS):
        raise CorruptBatch("an Arrow batch with view types, which sparklog does not support")
    return IpcLayout(
        metadata_length=metadata_length,
        body_length=body_length,
        row_count=batch.number(RecordBatchField.ROW_COUNT, _I64),
        nodes=tuple(Node(*pair) for pair in batch.pairs(RecordBatchField.NODES)),
        buffers=_buffers(batch.pairs(RecordBatchField.BUFFERS), body_length),
        codec=_codec(batch.table(RecordBatchField.COMPRESSION)),
    )


def _buffers(pairs: list[tuple[int, int]], body_length: int) -> tuple[Region, ...]:
    for offset, length in pairs:
        if offset < 0 or length < 0 or offset % _ALIGNMENT or offset + length > body_length:
            raise CorruptBatch(f"an Arrow buffer of {length} bytes at {offset} in a body of {body_length}")
    return tuple(Region(*pair) for pair in pairs)


def _codec(compression: "FlatTable | None") -> int | None:
    if compression is None:
        return None
    codec, method = (
        compression.number(CompressionField.CODEC, _U8),
        compression.number(CompressionField.METHOD, _U8),
    )
    if codec > 1 or method != 0:
        raise CorruptBatch(f"an Arrow batch compressed by unknown codec {codec}, method {method}")
    return codec


class FlatTable:
    """A flatbuffer table. Raises struct.error or CorruptBatch for a position outside the metadata."""

    __slots__ = ("_metadata", "_position", "_vtable", "_vtable_length")

    def __init__(self, metadata: memoryview, position: int) -> None:
        self._metadata = metadata
        self._position = position
        self._vtable = position - _I32.unpack_from(metadata, position)[0]
        if self._vtable < 0:
            raise CorruptBatch(f"an Arrow table at {position} has its vtable at {self._vtable}")
        self._vtable_length: int = _U16.unpack_from(metadata, self._vtable)[0]

    def field(self, number: int) -> int:
        """Position of a field in the metadata; 0 if it is absent."""
        entry = 4 + 2 * number
        if entry + 2 > self._vtable_length:
            return 0
        relative: int = _U16.unpack_from(self._metadata, self._vtable + entry)[0]
        return self._position + relative if relative else 0

    def number(self, number: int, form: struct.Struct) -> int:
        position = self.field(number)
        return int(form.unpack_from(self._metadata, position)[0]) if position else 0

    def target(self, number: int) -> int:
        """Position in the metadata of what a field points to; 0 if it is absent."""
        position = self.field(number)
        return position + int(U32.unpack_from(self._metadata, position)[0]) if position else 0

    def table(self, number: int) -> "FlatTable | None":
        position = self.target(number)
        return FlatTable(self._metadata, position) if position else None

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """A vector of structs of two i64; its count is checked against the available bytes."""
        position = self.target(number)
        if not position:
            return []
        count = int(U32.unpack_from(self._metadata, position)[0])
        if count > _PAIRS_MAX or count * PAIR.size > len(self._metadata) - position - U32.size:
            raise CorruptBatch(
                f"an Arrow vector of {count} entries in {len(self._metadata)} bytes of metadata"
            )
        start = position + U32.size
        return [PAIR.unpack_from(self._metadata, start + PAIR.size * nth) for nth in range(count)]
