"""The checker's own decoder of Arrow payloads against what sparklog writes, and against damage."""

import struct

import numpy as np
import pyarrow as pa
import pytest

from histories.arrow_payload import CRC_ENDS, FIXED
from histories.batches import CRC_BEGINS, ENVELOPE_BYTES, read_batches
from histories.soundness import DamagedBatchError, crc32c
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import Compression, parse_header
from sparklog.records.filtering.filter_arrow import ArrowRun
from sparklog.records.row_columns import HEADERS_TYPE

NAMED = [{"key": "other", "value": None}, {"key": "id", "value": b"quakes/0/p/4"}]


def batch_of(values, *, keys=None, headers=None, timestamps_ms=None, compression=Compression.NONE):
    columns = {"value": pa.array(values, pa.binary())}
    if keys is not None:
        columns["key"] = pa.array(keys, pa.binary())
    if headers is not None:
        columns["headers"] = pa.array(headers, HEADERS_TYPE)
    if timestamps_ms is not None:
        columns["timestamp"] = pa.array(timestamps_ms, pa.timestamp("ms", tz="UTC"))
    return ArrowPayload().from_columns(pa.table(columns), now_ms=5, compression=compression)


def with_a_right_crc(batch):
    """What a program that is wrong writes: nothing outside the payload can tell."""
    changed = bytearray(batch)
    struct.pack_into(">I", changed, CRC_BEGINS - 4, crc32c(bytes(changed[CRC_BEGINS:])))
    return bytes(changed)


def records_of(batch):
    ((_, found),) = read_batches(bytes(batch))
    return found.records


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4, Compression.ZSTD])
def test_values_come_out_as_they_went_in(compression):
    values = [f"quakes/0/p/{number}" for number in range(300)]
    batch = batch_of([value.encode() for value in values], compression=compression)
    assert records_of(batch) == tuple(enumerate(values))


def test_all_columns_are_read_and_a_tombstone_is_known_by_its_header():
    batch = batch_of(
        [b"a", None, b""], keys=[b"k", b"k", None], headers=[None, NAMED, []], timestamps_ms=[7, 8, 9]
    )
    assert records_of(batch) == ((0, "a"), (1, "quakes/0/p/4"), (2, ""))


def test_what_compaction_leaves_has_the_offsets_that_it_had():
    batch = batch_of([b"a", b"b", b"c", b"d"], keys=[b"k"] * 4)
    left = ArrowRun.decode(batch, (0, parse_header(batch))).rebuild(0, np.array([1, 3]))
    assert records_of(left) == ((1, "b"), (3, "d"))


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_every_flipped_bit_of_the_payload_shows_although_the_batch_s_crc_is_right(compression):
    batch = batch_of([b"a", b"bb", None], keys=[b"k"] * 3, timestamps_ms=[7, 8, 9], compression=compression)
    for at in range(ENVELOPE_BYTES, len(batch)):
        damaged = bytearray(batch)
        damaged[at] ^= 4
        with pytest.raises(DamagedBatchError):
            records_of(with_a_right_crc(damaged))


def test_a_count_of_records_that_is_not_the_rows_is_refused():
    batch = bytearray(batch_of([b"a", b"b"]))
    struct.pack_into(">i", batch, 57, 1)
    with pytest.raises(DamagedBatchError, match="2 rows in a batch of 1 records"):
        records_of(with_a_right_crc(batch))


def test_offset_deltas_beyond_the_batch_are_refused():
    batch = batch_of([b"a", b"b", b"c", b"d"], keys=[b"k"] * 4)
    left = bytearray(ArrowRun.decode(batch, (0, parse_header(batch))).rebuild(0, np.array([1, 3])))
    struct.pack_into(">i", left, 23, 2)
    with pytest.raises(DamagedBatchError, match="offset delta 3 after 1"):
        records_of(with_a_right_crc(left))


@pytest.mark.parametrize(
    ("at", "bits"),
    [(22, 1), (22, 0x20), (21, 0x20)],
    ids=["a codec of records", "control", "a bit that means nothing"],
)
def test_attributes_that_no_arrow_batch_has_are_refused(at, bits):
    batch = bytearray(batch_of([b"a"]))
    batch[at] |= bits
    with pytest.raises(DamagedBatchError, match="attributes 0x"):
        records_of(with_a_right_crc(batch))


FIRST_ENTRY = ENVELOPE_BYTES + FIXED.size
HEADER_CRC = ENVELOPE_BYTES + CRC_ENDS - 4


@pytest.mark.parametrize("field", ["nulls", "first node", "nodes", "first buffer", "buffers"])
@pytest.mark.parametrize("column", [0, 1])
def test_a_directory_that_is_wrong_with_right_crcs_is_refused(column, field):
    batch = bytearray(batch_of([b"a", None], keys=[b"k", b"l"], headers=[None, NAMED]))
    at = {"nulls": 16, "first node": 20, "nodes": 22, "first buffer": 24, "buffers": 26}[field]
    (header_bytes,) = struct.unpack_from("<I", batch, ENVELOPE_BYTES + 4)
    batch[FIRST_ENTRY + 48 * column + at] ^= 1
    header = bytes(batch[ENVELOPE_BYTES : ENVELOPE_BYTES + header_bytes])
    struct.pack_into("<I", batch, HEADER_CRC, crc32c(header[: CRC_ENDS - 4] + header[CRC_ENDS:]))
    with pytest.raises(DamagedBatchError, match=r"nulls|nodes and buffers"):
        records_of(with_a_right_crc(batch))
