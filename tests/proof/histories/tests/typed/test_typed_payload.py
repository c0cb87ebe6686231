"""The checker's own decoder of typed rows against what sparklog writes, and against damage."""

import datetime
import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from histories.arrow_payload import CRC_ENDS
from histories.batches import CRC_BEGINS, ENVELOPE_BYTES, decode_batch
from histories.segments import read_replica
from histories.soundness import DamagedBatchError, crc32c
from histories.typed.columns import TopicColumns
from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.evolution import changed
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.notation import parse_schema
from sparklog.records.arrow.topic_columns import TopicColumns as OurColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.envelope import Compression

DDL = (
    "name string, n int, f float, d decimal(6,2), t timestamp, l timestamp_ntz, day date, b binary,"
    " ok boolean, a array<int>, m map<string,int>, s struct<x: int, y: string>"
)
UTC = datetime.UTC
ROW = {
    1: "typed/0/w/0",
    2: 7,
    3: 0.25,
    4: Decimal("1.50"),
    5: datetime.datetime(2024, 2, 29, 12, tzinfo=UTC),
    6: datetime.datetime(2024, 2, 29, tzinfo=UTC).replace(tzinfo=None),
    7: datetime.date(2024, 2, 29),
    8: b"ab",
    9: True,
    10: [1, None],
}
CELLS = {
    2: "7",
    3: "0.25",
    4: "1.5",
    5: "2024-02-29T12:00:00.000000Z",
    6: "2024-02-29",
    7: "2024-02-29",
    8: "YWI=",
    9: "true",
    10: "[1,null]",
}


def first_document():
    return new_schema(parse_schema(DDL), "name", "")


def batch_of(document, rows, *, version=None, compression=Compression.NONE):
    """A batch of the log, as a writer that knows ``version`` makes it; rows have values by ids."""
    known = OurColumns(document).at(version or document.version)
    columns = {
        field.id: pa.array([row.get(field.id) for row in rows], known.schema.of_columns([field.id])[0].type)
        for field in known.columns
    }
    return typed_batch(columns, len(rows), known, now_ms=5, compression=compression)


def cells_of(document, batch):
    return decode_batch(bytes(batch), TopicColumns(document.encode())).cells


def with_right_crcs(batch):
    """What a program that is wrong writes."""
    changed_batch = bytearray(batch)
    (header_bytes,) = struct.unpack_from("<I", batch, ENVELOPE_BYTES + 4)
    header = bytes(batch[ENVELOPE_BYTES : ENVELOPE_BYTES + header_bytes])
    of_header = crc32c(header[: CRC_ENDS - 4] + header[CRC_ENDS:])
    struct.pack_into("<I", changed_batch, ENVELOPE_BYTES + CRC_ENDS - 4, of_header)
    struct.pack_into(">I", changed_batch, CRC_BEGINS - 4, crc32c(bytes(changed_batch[CRC_BEGINS:])))
    return bytes(changed_batch)


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4, Compression.ZSTD])
def test_cells_come_out_as_they_went_in(compression):
    document = first_document()
    batch = batch_of(document, [ROW, {1: "typed/0/w/1"}], compression=compression)
    found = decode_batch(bytes(batch), TopicColumns(document.encode()))
    assert found.records == ((0, "typed/0/w/0"), (1, "typed/0/w/1"))
    assert found.cells == {0: CELLS, 1: {}}


def test_a_batch_has_the_columns_of_its_own_version():
    first = first_document()
    changes = [
        parse_change("widen-column", "n bigint"),
        parse_change("rename-column", "f=g"),
        parse_change("drop-column", "d"),
        parse_change("add-column", "d string"),
    ]
    second = changed(first, changes)
    assert cells_of(second, batch_of(second, [ROW], version=1))[0] == CELLS
    new = max(second.column_ids)
    late = {1: "typed/0/w/1", 2: 1 << 40, 3: 0.5, new: "x"}
    assert cells_of(second, batch_of(second, [late]))[0] == {2: str(1 << 40), 3: "0.5", new: "x"}


def test_a_version_that_the_document_lacks_is_refused():
    first = first_document()
    second = changed(first, [parse_change("add-column", "x int")])
    with pytest.raises(DamagedBatchError, match="version 2 of the columns; known are 1 to 1"):
        cells_of(first, batch_of(second, [ROW]))


def test_flipped_bits_show_although_crcs_of_batch_and_header_are_right():
    document = first_document()
    batch = batch_of(document, [ROW])
    of_no_crc = {ENVELOPE_BYTES + at for at in range(CRC_ENDS - 4, CRC_ENDS)}
    for at in range(ENVELOPE_BYTES, len(batch), 3):
        if at in of_no_crc:
            continue
        damaged = bytearray(batch)
        damaged[at] ^= 4
        (header_bytes,) = struct.unpack_from("<I", batch, ENVELOPE_BYTES + 4)
        whole = with_right_crcs(damaged) if at >= ENVELOPE_BYTES + header_bytes else bytes(damaged)
        with pytest.raises(DamagedBatchError):
            cells_of(document, whole)


def test_a_changed_envelope_needs_its_crc_in_the_header():
    document = first_document()
    damaged = bytearray(batch_of(document, [ROW]))
    struct.pack_into(">q", damaged, 43, 7)  # a producer id
    with pytest.raises(DamagedBatchError, match="CRC of the envelope"):
        cells_of(document, with_right_crcs(damaged))


def test_records_in_a_typed_topic_are_refused():
    document = first_document()
    batch = bytearray(batch_of(document, [ROW]))
    batch[21] &= ~0x40
    with pytest.raises(DamagedBatchError, match="records in a typed topic"):
        cells_of(document, with_right_crcs(batch))


def test_a_replica_s_own_document_says_what_its_columns_are(tmp_path):
    log = tmp_path / "typed-0"
    log.mkdir()
    document = first_document()
    (log / "00000000000000000000.log").write_bytes(batch_of(document, [ROW, {1: "typed/0/w/1", 2: 8}]))
    (log / "schema").write_bytes(document.encode())
    replica = read_replica(tmp_path, "typed", 0)
    assert [value for _, _, value in replica.records] == ["typed/0/w/0", "typed/0/w/1"]
    assert replica.cells == [*((0, column, text) for column, text in CELLS.items()), (1, 2, "8")]
