"""Indexes find what a walk along the batches finds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.storage.segments.index import OffsetIndex, TimeIndex, last_time_entry

BASE = 1_000

gaps = st.lists(st.tuples(st.integers(1, 50), st.integers(61, 5_000)), max_size=60)


def batches_of(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """``(last offset, position)`` of batches with these numbers of records and bytes."""
    found, offset, position = [], BASE, 0
    for count, size in steps:
        found.append((offset + count - 1, position))
        offset, position = offset + count, position + size
    return found


def index_of(batches: list[tuple[int, int]]) -> OffsetIndex:
    index = OffsetIndex(BASE)
    for last_offset, position in batches:
        index.add(last_offset, position)
    return index


@settings(deadline=None)
@given(gaps, st.integers(BASE - 5, BASE + 3_000), st.integers(0, 300_000))
def test_offset_lookups_equal_a_linear_scan(steps: list[tuple[int, int]], offset: int, position: int) -> None:
    batches = batches_of(steps)
    index = index_of(batches)
    assert index.find(offset) == max((one for one in batches if one[0] <= offset), default=None)
    assert index.position_up_to(position) == max((at for _, at in batches if at <= position), default=0)
    index.truncate(position)
    assert len(index) == sum(at < position for _, at in batches)


@settings(deadline=None)
@given(gaps)
def test_an_offset_index_survives_its_file(steps: list[tuple[int, int]]) -> None:
    batches = batches_of(steps)
    data = index_of(batches).to_bytes()
    assert data == b"".join((last - BASE).to_bytes(4, "big") + at.to_bytes(4, "big") for last, at in batches)
    read = OffsetIndex.parse(BASE, data, 10**9)
    assert read is not None
    assert read.entries == index_of(batches).entries


def test_a_file_that_cannot_be_the_segment_s_offset_index_is_refused() -> None:
    good = index_of([(BASE + 4, 100), (BASE + 9, 200)]).to_bytes()
    assert OffsetIndex.parse(BASE, good, 201) is not None
    assert OffsetIndex.parse(BASE, good, 200) is None
    assert OffsetIndex.parse(BASE, good[:-1], 201) is None
    assert OffsetIndex.parse(BASE, good[8:] + good[:8], 201) is None
    assert OffsetIndex.parse(BASE, good + b"\0" * 8, 201) is None
    assert OffsetIndex.parse(BASE, b"", 0) is not None


stamps = st.lists(st.integers(-1, 500), max_size=60)


def times_of(timestamps: list[int]) -> TimeIndex:
    index, greatest = TimeIndex(BASE), (-1, BASE)
    for step, timestamp in enumerate(timestamps):
        if timestamp > greatest[0]:
            greatest = (timestamp, BASE + step)
        index.add(*greatest)
    return index


@settings(deadline=None)
@given(stamps, st.integers(-1, 510), st.integers(BASE, BASE + 60))
def test_time_lookups_never_skip_the_record_that_a_linear_scan_finds(
    timestamps: list[int], wanted: int, end_offset: int
) -> None:
    index = times_of(timestamps)
    first = next((BASE + step for step, found in enumerate(timestamps) if found >= wanted), BASE + 60)
    assert index.offset_before(wanted) < first
    assert (index.last() or (-1, 0))[0] == max(timestamps, default=-1)
    index.truncate(end_offset)
    assert all(offset < end_offset - BASE for offset in index.offsets)


@settings(deadline=None)
@given(stamps)
def test_a_time_index_survives_its_file(timestamps: list[int]) -> None:
    index = times_of(timestamps)
    data = index.to_bytes()
    read = TimeIndex.parse(BASE, data, BASE + 60)
    assert read is not None
    assert (read.timestamps, read.offsets) == (index.timestamps, index.offsets)
    assert last_time_entry(BASE, data[-12:]) == index.last()


def test_a_file_that_cannot_be_the_segment_s_time_index_is_refused() -> None:
    good = times_of([5, 9]).to_bytes()
    assert good == bytes.fromhex("000000000000000500000000000000000000000900000001")
    assert TimeIndex.parse(BASE, good, BASE + 2) is not None
    assert TimeIndex.parse(BASE, good, None) is not None
    assert TimeIndex.parse(BASE, good, BASE + 1) is None
    assert TimeIndex.parse(BASE, good[:-4], BASE + 2) is None
    assert TimeIndex.parse(BASE, good[12:] + good[:12], BASE + 2) is None
