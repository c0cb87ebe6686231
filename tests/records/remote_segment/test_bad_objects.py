"""Objects that are cut, damaged, swapped or newer: nobody reads wrong rows from them, and nothing crashes."""

import json
import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import Compression
from sparklog.records.remote_segment.arrow_object import check_arrow_object, open_arrow_object
from sparklog.records.remote_segment.block_statistics import pack_statistics, parse_statistics
from sparklog.records.remote_segment.ipc_file import TAIL, build_footer, parse_footer
from sparklog.records.remote_segment.rest_object import (
    TRAILER,
    Entry,
    check_pair,
    check_rest_object,
    open_rest_object,
    rebuild,
)
from tests.records.remote_segment.segments import BARE, IDENTITY, ODD, PLAIN, Built, build, make, reader

SMALL = build(
    [
        make("arrow", Compression.NONE, PLAIN, 100),
        make("arrow", Compression.LZ4, ODD, 200),
        make("records", Compression.NONE, PLAIN[:2], 300),
    ]
)
NEIGHBOUR = build(
    [make("arrow", Compression.NONE, BARE, 400)],
    identity=replace(IDENTITY, segment_id="f" * 32, base_offset=400),
)


def problems_of_arrow(data: bytes) -> list[CorruptBatch]:
    try:
        opened = open_arrow_object(reader(data), len(data))
    except CorruptBatch as error:
        return [error]
    return [problem for _, problem in check_arrow_object(reader(data), opened)]


def problems_of_rest(data: bytes, arrow: bytes = SMALL.arrow) -> list[CorruptBatch]:
    try:
        trailer, entries = open_rest_object(reader(data), len(data))
    except CorruptBatch as error:
        return [error]

    def rebuilt(entry: Entry) -> bytes:
        return rebuild(entry, reader(data), reader(arrow))

    return [problem for _, problem in check_rest_object(reader(data), trailer, entries, rebuilt)]


def test_whole_objects_have_no_problems() -> None:
    assert problems_of_arrow(SMALL.arrow) == []
    assert problems_of_rest(SMALL.rest) == []


def test_an_object_that_is_cut_at_any_byte_is_found() -> None:
    for length in range(len(SMALL.arrow)):
        assert problems_of_arrow(SMALL.arrow[:length]), length
    for length in range(len(SMALL.rest)):
        assert problems_of_rest(SMALL.rest[:length]), length


@pytest.mark.parametrize(("which", "check"), [("arrow", problems_of_arrow), ("rest", problems_of_rest)])
def test_a_bit_that_flips_anywhere_is_found(which: str, check: Callable[[bytes], list[CorruptBatch]]) -> None:
    data = getattr(SMALL, which)
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        assert check(bytes(flipped)), position


def test_a_bit_that_flips_in_a_body_is_found_by_the_batch_that_needs_it_and_by_no_other() -> None:
    _, entries = open_rest_object(reader(SMALL.rest), len(SMALL.rest))
    flipped = bytearray(SMALL.arrow)
    flipped[entries[1].body_position + 3] ^= 16
    found = problems_of_rest(SMALL.rest, bytes(flipped))
    assert [str(problem) for problem in found] == [str(found[0])]
    assert "the batch at offset 200 is not the one that was written" in str(found[0])


def test_the_footer_of_another_file_is_found() -> None:
    length, _ = TAIL.unpack(NEIGHBOUR.arrow[-TAIL.size :])
    footer = NEIGHBOUR.arrow[-TAIL.size - length :]
    own_length, _ = TAIL.unpack(SMALL.arrow[-TAIL.size :])
    assert problems_of_arrow(SMALL.arrow[: -TAIL.size - own_length] + footer)
    assert problems_of_rest(SMALL.rest[: -TRAILER.size] + NEIGHBOUR.rest[-TRAILER.size :])


def test_a_neighbours_object_is_refused_beside_this_one() -> None:
    trailer, _ = open_rest_object(reader(SMALL.rest), len(SMALL.rest))
    theirs = open_arrow_object(reader(NEIGHBOUR.arrow), len(NEIGHBOUR.arrow))
    with pytest.raises(CorruptBatch, match="the one beside it is of segment ffff"):
        check_pair(trailer, theirs)
    padded = NEIGHBOUR.arrow + bytes(len(SMALL.arrow))
    assert len(problems_of_rest(SMALL.rest, padded)) == 2, "and the two batches with bodies there are refused"


def test_newer_versions_are_refused_with_the_remedy() -> None:
    trailer = bytearray(SMALL.rest[-TRAILER.size :])
    version_at = struct.calcsize("<16sQIIQIII")
    trailer[version_at] = 2
    with pytest.raises(CorruptBatch, match="version 2 is unknown to this release; a newer one may read it"):
        open_rest_object(reader(SMALL.rest[: -TRAILER.size] + bytes(trailer)), len(SMALL.rest))
    newer = with_metadata(SMALL, lambda text: text.replace('"version":1', '"version":2'))
    with pytest.raises(CorruptBatch, match="version 2 is unknown to this release; a newer one may read it"):
        open_arrow_object(reader(newer), len(newer))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("sparklog.segment", "sparklog.segmend"),
        lambda text: text.replace('"topic"', '"topik"'),
        lambda text: text.replace('"row_count":[5,4,2]', '"row_count":[5,4,{}]'),
        lambda text: text.replace('"row_count":[5,4,2]', '"row_count":[5,4 2]'),
    ],
)
def test_metadata_that_only_somebody_else_can_have_written_is_refused(change: Callable[[str], str]) -> None:
    changed = with_metadata(SMALL, change)
    assert changed != SMALL.arrow
    with pytest.raises(CorruptBatch):
        open_arrow_object(reader(changed), len(changed))


def with_metadata(built: Built, change: Callable[[str], str]) -> bytes:
    """The object with texts of the same length in its footer, and a CRC that holds."""
    length, _ = TAIL.unpack(built.arrow[-TAIL.size :])
    footer = bytearray(built.arrow[-TAIL.size - length : -TAIL.size])
    changed = bytearray(change(footer.decode("latin-1")).encode("latin-1"))
    changed[-12:-4] = b"0" * 8
    changed[-12:-4] = f"{crc32c(changed):08x}".encode()
    return built.arrow[: -TAIL.size - length] + bytes(changed) + built.arrow[-TAIL.size :]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_footer_of_any_bytes_is_read_or_refused_and_takes_no_memory(data: st.DataObject) -> None:
    length, _ = TAIL.unpack(SMALL.arrow[-TAIL.size :])
    footer = bytearray(SMALL.arrow[-TAIL.size - length : -TAIL.size])
    for position in data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=8)):
        footer[position] = data.draw(st.integers(0, 255))
    try:
        parse_footer(footer)
    except CorruptBatch:
        return


def test_a_footer_that_claims_more_than_it_has_is_refused() -> None:
    with pytest.raises(CorruptBatch):
        parse_footer(b"")
    footer = bytearray(build_footer(SMALL.arrow[8:472], [], {}))
    footer[-4:] = struct.pack("<I", 2**32 - 1)
    with pytest.raises(CorruptBatch, match="claims 4294967295 items"):
        parse_footer(footer)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "[" * 100_000, json.dumps({"row_count": 1})])
def test_statistics_of_any_text_are_refused(text: str) -> None:
    with pytest.raises(CorruptBatch):
        parse_statistics(text)


def test_statistics_with_fields_of_a_later_release_are_read() -> None:
    opened = open_arrow_object(reader(SMALL.arrow), len(SMALL.arrow))
    text = pack_statistics(opened.statistics)
    assert parse_statistics(text[:-1] + ',"least_value":[1,2,3]}').blocks == opened.statistics


@pytest.mark.parametrize(
    "columns",
    [
        '[{"1":[Infinity,null,null]}]',
        "7",
        "{}",
        "[null]",
        "[null,null,7]",
        '[null,null,{"x":[0,null,null]}]',
        '[null,null,{"1":[0,"zz",null]}]',
    ],
)
def test_statistics_of_columns_of_any_text_are_refused(columns: str) -> None:
    opened = open_arrow_object(reader(SMALL.arrow), len(SMALL.arrow))
    text = pack_statistics(opened.statistics)
    with pytest.raises(CorruptBatch, match="columns"):
        parse_statistics(f'{text[:-1]},"columns":{columns}}}')
