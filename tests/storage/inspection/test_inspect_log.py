"""The walk over a segment that may be damaged: nothing intact is missed, and it always comes to an end."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.records.envelope import BatchHeader, build_envelope
from sparklog.storage.inspection import inspect_log
from sparklog.storage.inspection.inspect_file import InspectedFile
from sparklog.storage.inspection.inspect_log import Damage, FoundBatch, LogWalk

SIZES = (61, 90, 200, 75, 61, 300)


def batch(offset: int, size: int) -> bytes:
    return build_envelope(
        bytes((offset * 7 + n) % 251 for n in range(size - 61)),
        attributes=0,
        record_count=1,
        last_offset_delta=0,
        base_timestamp_ms=1,
        max_timestamp_ms=1,
        base_offset=offset,
    )


BATCHES = [batch(offset, size) for offset, size in enumerate(SIZES)]
SEGMENT = b"".join(BATCHES)
STARTS = [sum(SIZES[:n]) for n in range(len(SIZES))]


@contextmanager
def walking(path: Path, bytes_max: int | None = None) -> Iterator[list[FoundBatch | Damage]]:
    with InspectedFile(str(path)) as file:
        yield list(LogWalk(file, bytes_max).batches(0))


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("walk") / "segment"


@settings(max_examples=300, deadline=None)
@given(
    begin=st.integers(0, len(SEGMENT) - 1),
    data=st.binary(min_size=1, max_size=120),
    insert=st.booleans(),
    end=st.integers(0, len(SEGMENT)),
)
def test_every_batch_that_was_not_touched_is_found_intact(
    scratch: Path, begin: int, data: bytes, insert: bool, end: int
) -> None:
    """Bytes overwritten or inserted at one place, and the file cut at another."""
    damaged = SEGMENT[:begin] + data + SEGMENT[begin if insert else begin + len(data) :]
    moved = len(damaged) - len(SEGMENT)
    damaged = damaged[: max(end, begin)]
    scratch.write_bytes(damaged)
    touched_until = begin + (0 if insert else len(data))
    untouched = {start for start, size in zip(STARTS, SIZES, strict=True) if start + size <= begin}
    untouched |= {start + moved for start in STARTS if start >= touched_until}
    with walking(scratch) as found:
        intact = {piece.position for piece in found if isinstance(piece, FoundBatch) and piece.crc_holds}
        whole = {start for start in untouched if damaged[start:] and _fits(damaged, start)}
        assert whole <= intact
        positions = [piece.position for piece in found]
        assert positions == sorted(positions)


def _fits(data: bytes, start: int) -> bool:
    return len(data) - start >= 61 and start + 12 + int.from_bytes(data[start + 8 : start + 12]) <= len(data)


def test_a_batch_larger_than_the_window_is_checked_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_log, "WINDOW_BYTES", 100)
    path = tmp_path / "segment"
    path.write_bytes(SEGMENT)
    with walking(path) as found:
        assert [(piece.position, getattr(piece, "crc_holds", None)) for piece in found] == [
            (start, True) for start in STARTS
        ]
    path.write_bytes(SEGMENT[:-1] + b"\0" + batch(6, 61))
    with walking(path) as found:
        assert [getattr(piece, "crc_holds", None) for piece in found[-2:]] == [False, True]


def test_damage_is_passed_over_across_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_log, "WINDOW_BYTES", 100)
    path = tmp_path / "segment"
    for length in (1, 39, 40, 99, 100, 101, 250):
        path.write_bytes(BATCHES[0] + b"\xaa" * length + b"".join(BATCHES[1:]))
        with walking(path) as found:
            damage = found[1]
            assert isinstance(damage, Damage)
            assert (damage.position, damage.length, damage.is_tail) == (61, length, False)
            assert len(found) == len(BATCHES) + 1


def test_a_batch_that_was_still_being_written_is_waited_for_once(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(SEGMENT[: STARTS[2] + 70])
    with InspectedFile(str(path)) as file:
        walk = LogWalk(file).batches(0)
        seen = [next(walk), next(walk)]
        with path.open("ab") as owner:
            owner.write(SEGMENT[STARTS[2] + 70 :])
        seen += walk
    assert [piece.position for piece in seen] == STARTS[:3]
    assert all(isinstance(piece, FoundBatch) and piece.crc_holds for piece in seen)


def test_a_value_that_is_itself_a_batch_is_not_taken_for_one(tmp_path: Path) -> None:
    inner = batch(77, 100)
    outer = bytearray(
        build_envelope(
            inner,
            attributes=0,
            record_count=1,
            last_offset_delta=0,
            base_timestamp_ms=1,
            max_timestamp_ms=1,
        )
    )
    outer[30] ^= 1
    path = tmp_path / "segment"
    path.write_bytes(bytes(outer) + batch(1, 61))
    with walking(path) as found:
        assert [(piece.position, getattr(piece, "crc_holds", None)) for piece in found] == [
            (0, False),
            (161, True),
        ]


def test_a_length_that_lies_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    size = 300 * 1024 * 1024
    liar = bytearray(batch(0, 61))
    liar[8:12] = (size - 12).to_bytes(4, "big")
    with path.open("wb") as file:
        file.write(liar)
        file.truncate(size)
    tracemalloc.start()
    try:
        with InspectedFile(str(path)) as inspected:
            walk = LogWalk(inspected)
            (found,) = list(walk.batches(0))
            assert isinstance(found, FoundBatch)
            assert not found.crc_holds
            assert walk.batch_bytes(found) is None
        assert tracemalloc.get_traced_memory()[1] < 48 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_headers_are_those_of_the_batches(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(SEGMENT)
    with walking(path) as found:
        headers = [piece.header for piece in found if isinstance(piece, FoundBatch)]
        assert all(isinstance(header, BatchHeader) for header in headers)
        assert [header.base_offset for header in headers] == list(range(6))
