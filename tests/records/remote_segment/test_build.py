"""A segment becomes two objects: the rows that count for others' readers, and every batch byte for byte."""

import random
from collections.abc import Iterator

import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import Compression, parse_header
from sparklog.records.remote_segment.arrow_object import check_arrow_object, open_arrow_object
from sparklog.records.remote_segment.arrow_rows import FILE_SCHEMA
from sparklog.records.remote_segment.build import SegmentBatch, SegmentBuilder
from sparklog.records.remote_segment.rest_object import check_pair, nth_with, open_rest_object
from tests.records.remote_segment.segments import (
    BARE,
    IDENTITY,
    KINDS,
    ODD,
    PLAIN,
    Row,
    append_timed,
    build,
    corpus,
    make,
    reader,
    with_gaps,
)

rows_strategy: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=40),
        st.none() | st.binary(max_size=300),
        st.integers(0, 2**41),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=2),
    ),
    min_size=2,
    max_size=40,
)


def test_every_batch_of_the_corpus_comes_back_and_every_row_is_in_the_file() -> None:
    batches = corpus()
    built = build(batches)
    assert built.rebuilt() == batches
    assert built.table().to_pylist() == built.expected_rows()
    assert built.table().schema == FILE_SCHEMA
    built.table().validate(full=True)


@pytest.mark.parametrize(("kind", "codec"), KINDS)
@settings(max_examples=12, deadline=None)
@given(first=rows_strategy, second=rows_strategy, ways=st.tuples(st.booleans(), st.booleans()))
def test_any_rows_come_back(
    kind: str, codec: Compression, first: list[Row], second: list[Row], ways: tuple[bool, bool]
) -> None:
    one = make(kind, codec, first, 100)
    batches = [with_gaps(one) if ways[0] else one, make(kind, codec, second, 200)]
    if ways[1]:
        batches[1] = append_timed(batches[1])
    built = build(batches)
    assert built.rebuilt() == batches
    assert built.table().to_pylist() == built.expected_rows()
    assert polars.read_ipc(built.arrow).height == built.table().num_rows


def test_aborted_and_control_batches_come_back_and_have_no_rows_in_the_file() -> None:
    batches = corpus()
    built = build(batches, aborted=lambda nth: nth % 3 == 0)
    assert built.rebuilt() == batches
    assert built.table().to_pylist() == built.expected_rows()
    assert 0 < built.table().num_rows < build(batches).table().num_rows


def test_a_raw_segment_has_no_arrow_object() -> None:
    batches = corpus()
    built = build(batches, is_raw=True)
    assert (built.arrow, built.rebuilt()) == (b"", batches)
    trailer, _ = open_rest_object(reader(built.rest), len(built.rest))
    assert (trailer.is_raw, trailer.arrow_size) == (True, 0)


def test_a_segment_without_rows_is_a_file_without_rows() -> None:
    built = build(corpus()[-3:-1])
    assert built.table().num_rows == 0
    assert polars.read_ipc(built.arrow).height == 0
    assert len(built.rebuilt()) == 2


def test_the_body_of_an_arrow_batch_is_in_the_file_as_it_is_and_its_rest_is_small() -> None:
    dice = random.Random(7)
    rows: list[Row] = [(b"%08d" % n, dice.randbytes(60), 1_000 + n, []) for n in range(2_000)]
    for codec in (Compression.NONE, Compression.LZ4, Compression.ZSTD):
        batch = make("arrow", codec, rows, 100)
        built = build([batch])
        _, (entry,) = open_rest_object(reader(built.rest), len(built.rest))
        assert entry.length < 600
        assert built.arrow[entry.body_position :][: entry.body_length] == batch[entry.length :]
        assert len(built.arrow) + len(built.rest) < 1.25 * len(batch)


def test_many_small_record_batches_become_few_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparklog.records.remote_segment.build.ROWS_MAX", 300)
    built = build([make("records", Compression.NONE, BARE, 100 + 3 * nth) for nth in range(109)])
    opened = open_arrow_object(reader(built.arrow), len(built.arrow))
    assert [block.row_count for block in opened.statistics] == [300, 27]
    assert len(built.arrow) < len(built.rest) / 3


def test_the_footer_has_the_bounds_of_each_record_batch() -> None:
    built = build(
        [make("arrow", Compression.ZSTD, PLAIN, 100), with_gaps(make("arrow", Compression.NONE, ODD, 200))]
    )
    opened = open_arrow_object(reader(built.arrow), len(built.arrow))
    assert opened.identity == IDENTITY
    first, second = opened.statistics
    assert first[:8] == (5, 100, 104, 1_000, 1_004, 0, b"k0".hex(), b"k4".hex())
    assert second[:8] == (3, 200, 203, 0, 7, 2, (b"key" * 11)[:32].hex(), None)
    with pa.ipc.open_file(pa.py_buffer(built.arrow)) as file:
        assert [file.get_batch(nth).num_rows for nth in range(file.num_record_batches)] == [5, 3]


def test_batches_are_found_by_offset_across_gaps() -> None:
    batches = [make("arrow", Compression.NONE, PLAIN, base) for base in (100, 200, 300)]
    built = build(batches)
    _, entries = open_rest_object(reader(built.rest), len(built.rest))
    assert [nth_with(entries, offset) for offset in (0, 100, 104, 105, 200, 304, 305)] == [
        0,
        0,
        0,
        1,
        1,
        2,
        3,
    ]


def test_both_objects_are_whole_and_belong_together() -> None:
    built = build(corpus())
    opened = open_arrow_object(reader(built.arrow), len(built.arrow))
    assert list(check_arrow_object(reader(built.arrow), opened)) == []
    trailer, _ = open_rest_object(reader(built.rest), len(built.rest))
    check_pair(trailer, opened)


def test_a_batch_is_written_before_the_next_one_is_read() -> None:
    """Memory is by batch: nothing of a batch is kept but its place and its statistics."""
    taken: list[int] = []

    def batches() -> Iterator[SegmentBatch]:
        for nth in range(50):
            taken.append(nth)
            data = make("arrow", Compression.NONE, PLAIN, 100 + 10 * nth)
            yield SegmentBatch(parse_header(data), memoryview(data))

    builder = SegmentBuilder(IDENTITY)
    pieces = builder.arrow_pieces(batches())
    next(pieces)
    for nth in range(50):
        next(pieces)
        assert taken[-1] <= nth


def test_a_segment_can_be_built_again_after_an_upload_that_failed() -> None:
    batches = [
        SegmentBatch(parse_header(data), memoryview(data))
        for data in (make("arrow", Compression.NONE, PLAIN, base) for base in (100, 200))
    ]
    builder = SegmentBuilder(IDENTITY)
    with pytest.raises(ValueError, match="arrow_pieces come first"):
        next(builder.rest_pieces(batches))
    upload = builder.arrow_pieces(batches)
    next(upload)
    next(upload)
    again = b"".join(builder.arrow_pieces(batches))
    whole = build([bytes(batch.data) for batch in batches])
    assert (again, b"".join(builder.rest_pieces(batches))) == (whole.arrow, whole.rest)


def test_a_batch_that_cannot_be_read_is_not_copied() -> None:
    batch = bytearray(make("arrow", Compression.NONE, PLAIN, 100))
    batch[-20] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        build([bytes(batch)])
