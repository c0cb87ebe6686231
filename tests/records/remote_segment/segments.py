"""Segments for tests: batches of every kind, built into both objects and read from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.control import TransactionEnd, build_marker
from sparklog.records.envelope import Compression, parse_header, stamp
from sparklog.records.filtering.filter import decode, emptied
from sparklog.records.kafka.kafka_payload import KafkaRecords
from sparklog.records.payload import payload_of
from sparklog.records.remote_segment.arrow_object import Read
from sparklog.records.remote_segment.build import SegmentBatch, SegmentBuilder
from sparklog.records.remote_segment.identity import SegmentIdentity
from sparklog.records.remote_segment.rest_object import open_rest_object, rebuild
from sparklog.records.restamp import set_append_time

Row = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]

IDENTITY = SegmentIdentity("0123456789abcdef" * 2, "orders", "AAAAAAAAAAAAAAAAAAAAAQ", 3, 100, 7)
KINDS = [
    *(("records", codec) for codec in Compression),
    ("arrow", Compression.NONE),
    ("arrow", Compression.LZ4),
    ("arrow", Compression.ZSTD),
]
PLAIN: list[Row] = [(b"k%d" % n, b"value %d" % n, 1_000 + n, []) for n in range(5)]
BARE: list[Row] = [(None, b"value %d" % n, 1_000, []) for n in range(3)]
ODD: list[Row] = [
    (None, None, 5, []),
    (b"", b"", 2**41, [("h", b"x"), ("", None)]),
    (b"key" * 20, b"x" * 3_000, 0, [("h", b"")]),
    (None, b"\xff\x00", 7, []),
]


def make(kind: str, codec: Compression, rows: Sequence[Row], base_offset: int, epoch: int = 7) -> bytes:
    columns = pa.table(
        {
            "key": pa.array([row[0] for row in rows], pa.binary()),
            "value": pa.array([row[1] for row in rows], pa.binary()),
            "timestamp": pa.array([row[2] for row in rows], pa.int64()),
            "headers": pa.array(
                [[{"key": name, "value": value} for name, value in row[3]] or None for row in rows],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    payload = ArrowPayload() if kind == "arrow" else KafkaRecords()
    batch = bytearray(
        payload.from_columns(
            columns, now_ms=0, compression=codec, producer_id=9, producer_epoch=2, base_sequence=5
        )
    )
    stamp(batch, 0, base_offset, epoch)
    return bytes(batch)


def append_timed(batch: bytes) -> bytes:
    """The batch with log-append time."""
    changed = bytearray(batch)
    set_append_time(changed, 0, 123_456)
    return bytes(changed)


def with_gaps(batch: bytes) -> bytes:
    """The batch without its second row, as compaction leaves it."""
    header = parse_header(batch)
    kept = [nth for nth in range(header.record_count) if nth != 1]
    return decode(batch, (0, header)).rebuild(0, np.array(kept))


@dataclass
class Built:
    """Both objects, and the batches that they were made of."""

    batches: list[SegmentBatch]
    arrow: bytes
    rest: bytes

    def rebuilt(self) -> list[bytes]:
        _, entries = open_rest_object(reader(self.rest), len(self.rest))
        return [rebuild(entry, reader(self.rest), reader(self.arrow)) for entry in entries]

    def table(self) -> pa.Table:
        return pa.ipc.open_file(pa.py_buffer(self.arrow)).read_all()

    def expected_rows(self) -> list[dict[str, Any]]:
        """What readers of committed records get, by the code that reads batches."""
        rows: list[dict[str, Any]] = []
        for batch in self.batches:
            if batch.has_rows:
                columns = payload_of(batch.header).to_columns(batch.data, batch.header)
                rows += columns.select(["offset", "timestamp", "key", "value", "headers"]).to_pylist()
        return rows


def reader(data: bytes) -> Read:
    def read(position: int, length: int) -> bytes:
        assert 0 <= position <= position + length <= len(data), "a read outside the object"
        return data[position : position + length]

    return read


def build(
    batches: Sequence[bytes], aborted: Callable[[int], bool] = lambda _: False, **options: Any
) -> Built:
    listed = [
        SegmentBatch(parse_header(data), memoryview(data), aborted(nth)) for nth, data in enumerate(batches)
    ]
    builder = SegmentBuilder(options.pop("identity", IDENTITY), **options)
    arrow = b"" if builder.is_raw else b"".join(builder.arrow_pieces(iter(listed)))
    return Built(listed, arrow, b"".join(builder.rest_pieces(iter(listed))))


def corpus() -> list[bytes]:
    """Every kind, codec and oddity, with offsets that grow."""
    batches: list[bytes] = []
    offset = 100

    def add(data: bytes) -> None:
        nonlocal offset
        changed = bytearray(data)
        stamp(changed, 0, offset, 7)
        batches.append(bytes(changed))
        offset = parse_header(changed).next_offset

    for kind, codec in KINDS:
        for rows in (PLAIN, BARE, ODD):
            batch = make(kind, codec, rows, 0)
            add(batch)
            add(append_timed(batch))
            add(with_gaps(batch))
    add(emptied(parse_header(batches[0])))
    add(build_marker(TransactionEnd(True, 3), producer_id=1, producer_epoch=2, now_ms=9))
    add(make("arrow", Compression.NONE, PLAIN, 0))
    return batches
