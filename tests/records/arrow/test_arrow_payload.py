import struct

import numpy as np
import pyarrow as pa
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.arrow_message import message_pieces, payload_of_batch, read_message
from sparklog.records.arrow.arrow_payload import ArrowPayload, payload_pieces
from sparklog.records.arrow.columns import UNTYPED, VALUE_COLUMN, WIRE_TIMESTAMP, ArrowSchema
from sparklog.records.arrow.directory import directory_of
from sparklog.records.arrow.header import ENTRY, FIXED, ArrowHeader, parse_arrow_header
from sparklog.records.arrow.layout import parse_layout
from sparklog.records.envelope import (
    ARROW_BIT,
    CONTROL_BIT,
    ENVELOPE_BYTES,
    LOG_APPEND_TIME_BIT,
    Compression,
    build_envelope,
    crc_matches,
    parse_header,
)
from sparklog.records.row_columns import HEADERS_TYPE, ROW_SCHEMA, normalise

NOW_MS = 1_700_000_000_123
PAYLOAD = ArrowPayload()
CODECS = [Compression.NONE, Compression.LZ4, Compression.ZSTD]

nullable_bytes = st.none() | st.binary(max_size=60)
headers = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=5), "value": nullable_bytes}), max_size=3
)
rows = st.fixed_dictionaries(
    {
        "key": nullable_bytes,
        "value": nullable_bytes,
        "timestamp": st.none() | st.integers(-(2**40), 2**45),
        "headers": headers,
    }
)
WRITE_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("headers", HEADERS_TYPE),
    ]
)


def columns_of(some: list[dict]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(some, schema=WRITE_SCHEMA)


def read(batch: bytes | memoryview) -> pa.RecordBatch:
    header = parse_header(batch)
    PAYLOAD.validate(batch, header)
    columns = PAYLOAD.to_columns(batch, header)
    assert columns.schema.equals(ROW_SCHEMA)
    return columns


def expected(columns: pa.RecordBatch) -> list[dict]:
    return [
        row | {"timestamp": NOW_MS if stamp is None else stamp}
        for row, stamp in zip(
            columns.select(["key", "value", "headers"]).to_pylist(),
            columns.column("timestamp").cast(pa.int64()).to_pylist(),
            strict=True,
        )
    ]


def seen(batch: bytes | memoryview) -> list[dict]:
    columns = read(batch)
    return [
        row | {"timestamp": stamp // 1_000}
        for row, stamp in zip(
            columns.select(["key", "value", "headers"]).to_pylist(),
            columns.column("timestamp").cast(pa.int64()).to_pylist(),
            strict=True,
        )
    ]


EXAMPLE = columns_of(
    [
        {"key": b"k%d" % nth, "value": b"v" * nth, "timestamp": NOW_MS + nth, "headers": None}
        | ({"headers": [{"key": "h", "value": None}, {"key": "h", "value": b""}]} if nth % 2 else {})
        for nth in range(9)
    ]
)


@settings(deadline=None, max_examples=80)
@given(some=st.lists(rows, min_size=1, max_size=20), codec=st.sampled_from(CODECS))
def test_what_was_written_is_read_with_every_null_and_empty_value(some: list[dict], codec: Compression):
    columns = columns_of(some)
    batch = PAYLOAD.from_columns(columns, now_ms=NOW_MS, compression=codec)
    header = parse_header(batch)
    assert crc_matches(batch, 0, header)
    assert header.is_arrow
    assert header.compression is Compression.NONE
    assert header.record_count == len(some)
    assert header.max_timestamp_ms == max(row["timestamp"] for row in expected(columns))
    assert seen(batch) == expected(columns)


@settings(deadline=None, max_examples=60)
@given(
    some=st.lists(rows, min_size=3, max_size=40),
    codec=st.sampled_from(CODECS),
    start=st.integers(0, 20),
    length=st.integers(1, 20),
)
def test_slices_are_written_as_what_they_show(some: list[dict], codec: Compression, start: int, length: int):
    part = columns_of(some).slice(min(start, len(some) - 1), length)
    assert seen(PAYLOAD.from_columns(part, now_ms=NOW_MS, compression=codec)) == expected(part)


def test_a_slice_carries_nothing_of_its_parent():
    parent = pa.record_batch({"value": pa.array([b"x" * 1_000] * 1_000)})
    assert len(PAYLOAD.from_columns(parent.slice(500, 1), now_ms=NOW_MS)) < 2_000


@pytest.mark.parametrize("codec", CODECS)
def test_a_table_of_several_chunks_is_one_batch(codec: Compression):
    table = pa.Table.from_batches([EXAMPLE.slice(0, 2), EXAMPLE.slice(2, 4), EXAMPLE.slice(6)])
    batch = PAYLOAD.from_columns(table, now_ms=NOW_MS, compression=codec)
    assert batch == PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS, compression=codec)


def test_rows_without_a_timestamp_have_the_time_of_writing_and_no_column():
    batch = PAYLOAD.from_columns(EXAMPLE.select(["value"]), now_ms=NOW_MS)
    header = parse_header(batch)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (NOW_MS, NOW_MS)
    assert [column.column_id for column in parse_arrow_header(batch[61:]).columns] == [VALUE_COLUMN]
    assert {row["timestamp"] for row in seen(batch)} == {NOW_MS}


def test_the_directory_says_where_each_column_is_and_its_crc():
    for codec in CODECS:
        batch = PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS, compression=codec)
        header = parse_arrow_header(memoryview(batch)[ENVELOPE_BYTES:])
        assert (ENVELOPE_BYTES + header.header_length) % 8 == 0
        body = batch[-header.body_length :]
        assert [column.column_id for column in header.columns] == [1, 2, 3, 4]
        assert [column.null_count for column in header.columns] == [0, 0, 0, 5]
        for column in header.columns:
            assert crc32c(body[column.offset : column.offset + column.length]) == column.crc
        assert (header.key_column, header.timestamp_column) == (1, 3)


def test_an_uncompressed_column_can_be_cut_out_by_the_directory_alone():
    batch = PAYLOAD.from_columns(EXAMPLE.select(["key", "value"]), now_ms=NOW_MS)
    header = parse_arrow_header(batch[61:])
    region = header.columns[1]
    body = batch[-header.body_length :][region.offset : region.offset + region.length]
    offsets = np.frombuffer(body, np.int32, header.row_count + 1)
    assert offsets.tolist() == np.cumsum([0, *range(9)]).tolist()
    assert b"v" * 36 in body


def test_gaps_between_offsets_are_kept():
    pieces = payload_pieces(normalise(EXAMPLE, 0), 0, Compression.NONE, np.arange(9) * 3 + 1)
    batch = wrapped(b"".join(pieces), last_offset_delta=40, base_offset=1_000)
    assert read(batch).column("offset").to_pylist() == [1_001 + 3 * nth for nth in range(9)]


@pytest.mark.parametrize("deltas", [[0, 1, 1], [0, 2, 1], [-1, 0, 1], [0, 1, 41]])
def test_offsets_that_do_not_grow_within_the_batch_are_refused(deltas: list[int]):
    rows = normalise(EXAMPLE.slice(0, 3), 0)
    payload = b"".join(payload_pieces(rows, 0, Compression.NONE, np.array(deltas)))
    refuse(wrapped(payload, record_count=3, last_offset_delta=40), "do not grow")


def test_log_append_time_is_the_time_of_every_row():
    payload = PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS)[61:]
    batch = wrapped(payload, attributes=ARROW_BIT | LOG_APPEND_TIME_BIT, max_timestamp_ms=777)
    assert {row["timestamp"] for row in seen(batch)} == {777}
    assert set(read(batch).column("timestamp_type").to_pylist()) == {1}


def test_a_batch_at_an_odd_address_is_read_the_same():
    batch = PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS)
    for shift in range(1, 9):
        assert seen(memoryview(b"." * shift + batch)[shift:]) == expected(EXAMPLE)


def test_an_empty_batch_that_compaction_left_has_no_rows():
    empty = normalise(EXAMPLE, 0)
    nothing = type(empty)(0, None, empty.value.slice(0, 0), None, None)
    payload = b"".join(payload_pieces(nothing, 0, Compression.NONE, np.arange(0)))
    assert read(wrapped(payload, record_count=0)).num_rows == 0


def test_producer_and_transaction_are_in_the_envelope():
    header = parse_header(
        PAYLOAD.from_columns(
            EXAMPLE, now_ms=0, producer_id=7, producer_epoch=2, base_sequence=40, is_transactional=True
        )
    )
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert header.is_transactional
    assert (header.base_offset, header.leader_epoch) == (0, -1)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY])
def test_codecs_that_arrow_lacks_are_refused_by_name(codec: Compression):
    with pytest.raises(ValueError, match=f"lz4 or zstd, not {codec.name.lower()}"):
        PAYLOAD.from_columns(EXAMPLE, now_ms=0, compression=codec)


def wrapped(payload: bytes, **fields: int) -> bytes:
    values = {
        "attributes": ARROW_BIT,
        "record_count": 9,
        "last_offset_delta": 8,
        "base_timestamp_ms": NOW_MS,
        "max_timestamp_ms": NOW_MS,
    }
    return build_envelope(payload, **(values | fields))


def refuse(batch: bytes, complaint: str | None = None) -> None:
    header = parse_header(batch)
    with pytest.raises(CorruptBatch, match=complaint):
        PAYLOAD.validate(batch, header)
    with pytest.raises(CorruptBatch, match=complaint):
        PAYLOAD.to_columns(batch, header)


def resealed(payload: bytearray) -> bytes:
    """The payload with all our CRCs made right again: an attacker, not a broken disk."""
    header_length, body_length = (
        struct.unpack_from("<I", payload, 4)[0],
        struct.unpack_from("<I", payload, 36)[0],
    )
    count, entry_length = struct.unpack_from("<HH", payload, 20)
    body = memoryview(payload)[max(0, len(payload) - body_length) :]
    for nth in range(count):
        entry = FIXED.size + nth * entry_length
        if entry + ENTRY.size <= len(payload):
            offset, length = struct.unpack_from("<II", payload, entry + 4)
            struct.pack_into("<I", payload, entry + 12, crc32c(body[offset : offset + length]))
    metadata_length = struct.unpack_from("<I", payload, 32)[0]
    metadata = memoryview(payload)[header_length : header_length + metadata_length]
    struct.pack_into("<I", payload, 44, crc32c(metadata))
    header = memoryview(payload)[:header_length]
    struct.pack_into("<I", payload, 8, crc32c(header[12:], crc32c(header[:8])))
    return bytes(payload)


@pytest.mark.parametrize("codec", CODECS)
def test_every_flipped_bit_behind_a_valid_envelope_is_noticed(codec: Compression):
    payload = PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS, compression=codec)[61:]
    for position in range(len(payload)):
        damaged = bytearray(payload)
        damaged[position] ^= 1 << position % 8
        refuse(wrapped(bytes(damaged)))


@settings(deadline=None, max_examples=400)
@given(
    codec=st.sampled_from(CODECS),
    edits=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from([0, 1, 7, 8, 127, 128, 255])),
        min_size=1,
        max_size=4,
    ),
)
def test_an_attacker_who_fixes_all_crcs_gets_a_refusal_or_valid_rows(
    codec: Compression, edits: list[tuple[float, int]]
):
    payload = bytearray(PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS, compression=codec)[61:])
    for place, byte in edits:
        payload[int(place * len(payload))] = byte
    batch = wrapped(resealed(payload))
    try:
        PAYLOAD.validate(batch, parse_header(batch))
    except CorruptBatch:
        return
    columns = PAYLOAD.to_columns(batch, parse_header(batch))
    columns.validate(full=True)
    assert len(columns.drop_columns(["timestamp"]).to_pylist()) == 9


def edited(position: int, form: str, value: int, codec: Compression = Compression.NONE) -> bytes:
    payload = bytearray(PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS, compression=codec)[61:])
    struct.pack_into(form, payload, position, value)
    header = memoryview(payload)[: struct.unpack_from("<I", payload, 4)[0]]
    struct.pack_into("<I", payload, 8, crc32c(header[12:], crc32c(header[:8])))
    return wrapped(bytes(payload))


@pytest.mark.parametrize(
    ("position", "form", "value", "complaint"),
    [
        (0, "<B", 2, "kind 2, version 1 is unknown"),
        (1, "<B", 3, "version 3 is unknown"),
        (2, "<H", 2, "flags 0x0002"),
        (2, "<H", 1, "9 offset deltas at 0"),
        (4, "<I", 2**32 - 1, "header of 4294967295 bytes"),
        (4, "<I", 10, "header of 10 bytes"),
        (12, "<I", 1, "schema 1 is unknown"),
        (16, "<I", 8, "8 in the arrow header"),
        (20, "<H", 65_535, "65535 columns"),
        (20, "<H", 3, "cover"),
        (22, "<H", 47, "columns of 47 bytes"),
        (32, "<I", 0, "0 bytes of metadata"),
        (36, "<I", 0, "and 0 of body"),
        (44, "<I", 0, "CRC 0x00000000 of the Arrow metadata"),
        (48, "<i", 9, "columns \\[9, 2, 3, 4\\]"),
        (48, "<i", 2, "columns \\[2, 2, 3, 4\\]"),
        (52, "<I", 8, "must begin at 0"),
        (56, "<I", 2**31, "end within"),
        (60, "<I", 0, "CRC 0x00000000 of column 1"),
        (68, "<H", 1, "wrong nodes or buffers"),
    ],
)
def test_a_header_that_lies_is_refused(position: int, form: str, value: int, complaint: str):
    refuse(edited(position, form, value), complaint)


def test_attributes_that_an_arrow_batch_cannot_have_are_refused():
    payload = PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS)[61:]
    refuse(wrapped(payload, attributes=ARROW_BIT | Compression.LZ4), "cannot have attributes")
    refuse(wrapped(payload, attributes=ARROW_BIT | CONTROL_BIT), "cannot have attributes")


def test_a_record_count_that_lies_is_refused():
    payload = PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS)[61:]
    for count in (0, 8, 10, 2**31 - 1):
        refuse(wrapped(payload, record_count=count, last_offset_delta=2**31 - 1), "in the envelope")


@pytest.mark.parametrize("length", [0, 1, 47, 48, 100, 300])
def test_a_payload_cut_short_is_refused(length: int):
    refuse(wrapped(PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS)[61 : 61 + length]))


@pytest.mark.parametrize("claim", [2**62, 2**31, 200 * 1024 * 1024, -2])
def test_a_compressed_buffer_that_claims_too_much_is_refused_before_memory_is_taken(claim: int):
    payload = bytearray(PAYLOAD.from_columns(EXAMPLE, now_ms=NOW_MS, compression=Compression.ZSTD)[61:])
    header = parse_arrow_header(payload)
    body = header.header_length + header.metadata_length
    struct.pack_into("<q", payload, body + header.columns[0].offset, claim)
    refuse(wrapped(resealed(payload)), "decompresses to more|claims to be")


def test_a_bomb_of_zeros_is_refused():
    zeros = pa.record_batch({"value": pa.array([b"\0" * 70_000_000] * 2)})
    batch = PAYLOAD.from_columns(zeros, now_ms=NOW_MS, compression=Compression.ZSTD)
    assert len(batch) < 100_000
    refuse(batch, "decompresses to more")


def test_headers_without_keys_are_refused():
    bad = pa.array([[{"key": None, "value": b"x"}]] * 9, HEADERS_TYPE)
    good = normalise(EXAMPLE, 0)
    payload = b"".join(payload_pieces(type(good)(9, None, good.value, None, bad), 0, Compression.NONE))
    refuse(wrapped(payload), "header without a key")


def test_null_timestamps_are_refused():
    batch = pa.RecordBatch.from_arrays(
        [EXAMPLE.column("value"), pa.array([None] + [1] * 8, WIRE_TIMESTAMP)],
        ["value", "timestamp"],
    )
    message = memoryview(batch.serialize())
    layout = parse_layout(message)
    header = ArrowHeader(
        schema_id=0,
        row_count=9,
        key_column=-1,
        timestamp_column=3,
        metadata_length=layout.metadata_length,
        body_length=layout.body_length,
        metadata_crc=crc32c(message[: layout.metadata_length]),
        columns=directory_of(UNTYPED, [2, 3], layout, message[layout.metadata_length :]),
        offset_deltas=None,
    )
    refuse(wrapped(header.pack() + bytes(message)), "have no timestamp")


def test_a_batch_is_read_with_the_schema_that_it_was_written_with_and_no_other():
    other = ArrowSchema(7, UNTYPED.columns)
    value = EXAMPLE.column("value")
    batch = wrapped(b"".join(message_pieces(other, {VALUE_COLUMN: value}, len(value), Compression.NONE)))
    payload, ours = payload_of_batch(batch, parse_header(batch))
    message = payload[ours.header_length :]
    assert read_message(message, ours, parse_header(batch), other)[VALUE_COLUMN].equals(value)
    refuse(batch, "schema 7 is unknown")
