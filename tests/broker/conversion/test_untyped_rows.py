"""What readers of records alone are given of a log with batches of both kinds, in memory and in a file."""

import pyarrow as pa
import pytest

from sparklog.broker.conversion.untyped_rows import as_records
from sparklog.model.errors import CorruptBatch
from sparklog.model.parts import FileSlice, part_length, read_parts
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import crc_matches, split, stamp
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.payload import payload_of
from sparklog.storage.disk import LocalDisk


def records(offset, *values):
    batch = bytearray(build_records_batch([Record(value=value) for value in values], now_ms=5))
    stamp(batch, 0, offset, 1)
    return bytes(batch)


def arrow(offset, *values):
    table = pa.table({"value": pa.array(values, pa.binary())})
    batch = bytearray(ArrowPayload().from_columns(table, now_ms=5))
    stamp(batch, 0, offset, 1)
    return bytes(batch)


LOG = (
    records(0, b"a"),
    records(1, b"b", b"c"),
    arrow(3, b"d", b"e"),
    records(5, b"f"),
    arrow(6, b"g"),
    arrow(7, b"h"),
    records(8, b"i"),
)


@pytest.fixture(params=["memory", "file"])
def part(request, tmp_path):
    """The whole log as one part; in the file other bytes are around it."""
    whole = b"".join(LOG)
    if request.param == "memory":
        yield memoryview(whole)
        return
    file = LocalDisk().open(str(tmp_path / "log"), create=True)
    file.append(b"in front" + whole + b"behind")
    yield FileSlice(file, len(b"in front"), len(whole))


def rows_of(parts):
    """Offset and value of each row; every batch has a right CRC and is of records."""
    data = read_parts(parts)
    found = []
    for position, header in split(data):
        assert crc_matches(data, position, header)
        assert not header.is_arrow
        columns = payload_of(header).to_columns(data[position : position + header.size_bytes], header)
        found += zip(columns.column("offset").to_pylist(), columns.column("value").to_pylist(), strict=True)
    return found


def test_others_are_given_all_records_at_their_offsets(part):
    given = as_records([part])
    assert rows_of(given) == list(enumerate([b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i"]))


def test_runs_of_records_stay_slices_of_their_file(part):
    given = as_records([part])
    assert [type(one) is type(part) for one in given] == [True, False, True, False, False, True]
    assert [part_length(given[0]), part_length(given[-1])] == [len(LOG[0] + LOG[1]), len(LOG[-1])]


def test_what_has_no_arrow_in_it_is_given_as_it_is():
    only_records = memoryview(LOG[0] + LOG[1])
    assert as_records([only_records]) == [only_records]


def rotten(batch):
    """With another last offset delta."""
    damaged = bytearray(batch)
    damaged[26] ^= 1
    return bytes(damaged)


def test_a_rotten_arrow_batch_is_given_to_nobody_as_records():
    with pytest.raises(CorruptBatch, match="offset 3 does not match its CRC"):
        as_records([rotten(LOG[2]) + LOG[3]])


@pytest.mark.bug("B66", "away", "A rotten batch hides the intact batches before it.")
@pytest.mark.parametrize("number", [2, 4, 5])
def test_what_lies_in_front_of_a_rotten_batch_is_given(number):
    whole = b"".join([*LOG[:number], rotten(LOG[number]), *LOG[number + 1 :]])
    values = [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i"]
    in_front = {2: 3, 4: 6, 5: 7}[number]
    assert rows_of(as_records([whole])) == list(enumerate(values[:in_front]))


def test_nothing_behind_the_part_with_a_rotten_batch_is_given():
    given = as_records([LOG[0], rotten(LOG[2]), LOG[3]])
    assert rows_of(given) == [(0, b"a")]


@pytest.mark.parametrize(
    "torn", [LOG[2][:-1], LOG[2][:30], b"\xff" * 61], ids=["cut", "no envelope", "no batch"]
)
def test_what_is_no_whole_batch_is_told_when_nothing_lies_in_front_of_it(torn):
    with pytest.raises(CorruptBatch):
        as_records([memoryview(torn)])
    assert rows_of(as_records([LOG[0] + LOG[2] + LOG[3] + torn])) == [
        (0, b"a"),
        (3, b"d"),
        (4, b"e"),
        (5, b"f"),
    ]
