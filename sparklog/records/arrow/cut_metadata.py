"""The metadata of an Arrow message for some of its columns.

A flatbuffer vector is its count and its entries. So a copy of the metadata gets fewer nodes and buffers in
the same places, with the buffers' positions in a body of these columns alone, and the body's length. What
lies after the shorter vectors is not read any more.
"""

import struct
from collections.abc import Sequence
from typing import Final

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.header import ColumnEntry
from sparklog.records.arrow.layout import (
    PAIR,
    PREFIX,
    U32,
    FlatTable,
    MessageField,
    RecordBatchField,
)
from sparklog.records.envelope import Bytes

_I64: Final = struct.Struct("<q")

Pairs = Sequence[tuple[int, int]]


def moved_together(columns: Sequence[ColumnEntry]) -> list[ColumnEntry]:
    """Columns of a message as the entries of a message that has these alone."""
    moved: list[ColumnEntry] = []
    offset = node = buffer = 0
    for entry in columns:
        moved.append(entry._replace(offset=offset, first_node=node, first_buffer=buffer))
        offset, node, buffer = offset + entry.length, node + entry.node_count, buffer + entry.buffer_count
    return moved


def metadata_of_some(
    metadata: Bytes, columns: Sequence[tuple[ColumnEntry, ColumnEntry]], body_length: int
) -> bytearray:
    """``metadata`` for these columns, each with its entry in the whole message and its new one
    (``moved_together``).

    CorruptBatch if the metadata are malformed. Their length stays.
    """
    own = bytearray(metadata)
    try:
        table = memoryview(own)[PREFIX.size :]
        message = FlatTable(table, U32.unpack_from(table, 0)[0])
        batch = message.table(MessageField.HEADER)
        if batch is None:
            raise CorruptBatch(f"{len(metadata)} bytes of metadata describe no Arrow batch")
        nodes, buffers = batch.pairs(RecordBatchField.NODES), batch.pairs(RecordBatchField.BUFFERS)
        _write(table, batch.target(RecordBatchField.NODES), _nodes(nodes, columns))
        _write(table, batch.target(RecordBatchField.BUFFERS), _buffers(buffers, columns))
        if position := message.field(MessageField.BODY_LENGTH):
            _I64.pack_into(table, position, body_length)
    except struct.error as error:
        raise CorruptBatch(f"{len(metadata)} bytes of Arrow metadata are malformed: {error}") from None
    return own


def _nodes(nodes: Pairs, columns: Sequence[tuple[ColumnEntry, ColumnEntry]]) -> Pairs:
    return [
        pair
        for stored, _ in columns
        for pair in nodes[stored.first_node : stored.first_node + stored.node_count]
    ]


def _buffers(buffers: Pairs, columns: Sequence[tuple[ColumnEntry, ColumnEntry]]) -> Pairs:
    """An empty buffer is at the start of its column, wherever it was."""
    return [
        (offset - stored.offset + moved.offset if length else moved.offset, length)
        for stored, moved in columns
        for offset, length in buffers[stored.first_buffer : stored.first_buffer + stored.buffer_count]
    ]


def _write(table: memoryview, position: int, pairs: Pairs) -> None:
    """Write a vector in the place of one of at least as many entries."""
    if not position:
        return
    if len(pairs) > U32.unpack_from(table, position)[0]:
        raise CorruptBatch("the columns of an Arrow batch share nodes or buffers")
    U32.pack_into(table, position, len(pairs))
    for nth, pair in enumerate(pairs):
        PAIR.pack_into(table, position + U32.size + PAIR.size * nth, *pair)
