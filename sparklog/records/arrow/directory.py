"""The directory of an arrow payload's columns: made from the Arrow message, and checked against it."""

from collections.abc import Sequence

from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.columns import ArrowSchema
from sparklog.records.arrow.header import ArrowHeader, ColumnEntry
from sparklog.records.arrow.layout import IpcLayout, uncompressed_bytes
from sparklog.records.envelope import BatchHeader


def directory_of(
    schema: ArrowSchema, numbers: Sequence[int], layout: IpcLayout, body: memoryview
) -> tuple[ColumnEntry, ...]:
    """An entry for each column of the message, in the order of ``numbers``."""
    entries: list[ColumnEntry] = []
    lengths = uncompressed_bytes(body, layout)
    node = buffer = start = 0
    for number in numbers:
        column = schema.columns[number]
        last_buffer = buffer + column.buffer_count
        end = layout.buffers[last_buffer].offset if last_buffer < len(layout.buffers) else layout.body_length
        entries.append(
            ColumnEntry(
                column_id=number,
                offset=start,
                length=end - start,
                crc=crc32c(body[start:end]),
                null_count=layout.nodes[node].null_count,
                first_node=node,
                node_count=column.node_count,
                first_buffer=buffer,
                buffer_count=column.buffer_count,
                uncompressed_length=sum(lengths[buffer:last_buffer]),
            )
        )
        node, buffer, start = node + column.node_count, last_buffer, end
    return tuple(entries)


def check_layout(schema: ArrowSchema, layout: IpcLayout, ours: ArrowHeader, header: BatchHeader) -> None:
    """CorruptBatch unless header, message and envelope agree, and each buffer is in its column's region."""
    counts = {header.record_count, ours.row_count, layout.row_count}
    if len(counts) > 1:
        raise CorruptBatch(
            f"{header.record_count} records in the envelope, {ours.row_count} in the arrow header, "
            f"{layout.row_count} in the Arrow message"
        )
    if (layout.metadata_length, layout.body_length) != (ours.metadata_length, ours.body_length):
        raise CorruptBatch(f"the Arrow message has {layout.size_bytes} bytes; its header says otherwise")
    node = buffer = 0
    for entry in ours.columns:
        column = schema.columns[entry.column_id]
        expected = (node, column.node_count, buffer, column.buffer_count)
        if (entry.first_node, entry.node_count, entry.first_buffer, entry.buffer_count) != expected:
            raise CorruptBatch(f"column {entry.column_id} has wrong nodes or buffers; expected {expected}")
        node, buffer = node + column.node_count, buffer + column.buffer_count
        for offset, length in layout.buffers[buffer - column.buffer_count : buffer]:
            if length and not entry.offset <= offset <= offset + length <= entry.offset + entry.length:
                raise CorruptBatch(f"a buffer of column {entry.column_id} at {offset} is outside its region")
    if (len(layout.nodes), len(layout.buffers)) != (node, buffer):
        raise CorruptBatch(f"{len(layout.nodes)} nodes, {len(layout.buffers)} buffers; not {node}, {buffer}")
