"""Cutting a stream into frames, however it arrives."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.errors import WireError
from sparklog.wire.framing import GROWTH_BYTES_MIN, SCRATCH_BYTES, FrameReader

LIMIT = 8 * 1024 * 1024


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


@given(
    sizes=st.lists(
        st.sampled_from((0, 1, 5, 1000, SCRATCH_BYTES - 5, SCRATCH_BYTES - 4, SCRATCH_BYTES - 3, 200_000)),
        max_size=5,
    ),
    steps=st.lists(st.sampled_from((1, 3, 4, 5, 1000, SCRATCH_BYTES, 150_000)), min_size=1, max_size=12),
)
def test_frames_come_out_whole_however_the_stream_is_cut(sizes: list[int], steps: list[int]) -> None:
    bodies = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    stream = framed(*bodies)
    reader = FrameReader(LIMIT)
    frames: list[memoryview] = []
    for step in steps:
        frames += reader.feed(stream[:step])
        stream = stream[step:]
    frames += reader.feed(stream)
    assert frames == bodies
    assert reader.is_between_frames


def test_a_frame_larger_than_the_first_allocation_grows_into_place() -> None:
    body = bytes(range(256)) * (5 * GROWTH_BYTES_MIN // 256)
    assert FrameReader(LIMIT).feed(framed(body, b"next")) == [body, b"next"]


def test_bytes_are_received_in_place() -> None:
    reader = FrameReader(LIMIT)
    stream = framed(b"x" * 300_000)
    frames: list[memoryview] = []
    while not frames:
        target = reader.writable()
        count = min(len(target), len(stream), 70_000)
        target[:count] = stream[:count]
        stream = stream[count:]
        frames = reader.received(count)
    assert frames == [b"x" * 300_000]
    assert stream == b""


def test_a_stream_that_ends_inside_a_frame_shows() -> None:
    reader = FrameReader(LIMIT)
    assert reader.is_between_frames
    reader.feed(framed(b"abc")[:5])
    assert not reader.is_between_frames
    reader.feed(framed(b"abc")[5:] + framed(bytes(100_000))[:-1])
    assert not reader.is_between_frames


def test_frames_stay_as_they_were_when_more_arrives() -> None:
    reader = FrameReader(LIMIT)
    (first,) = reader.feed(framed(b"first"))
    reader.feed(framed(b"other"))
    assert first == b"first"


@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_an_absurd_size_is_refused_at_once(size: int) -> None:
    with pytest.raises(WireError, match=f"a frame of {size} bytes"):
        FrameReader(LIMIT).feed(struct.pack(">i", size))


def test_an_announced_frame_takes_memory_only_as_it_arrives() -> None:
    reader = FrameReader(100 * 1024 * 1024)
    reader.feed(struct.pack(">i", 100 * 1024 * 1024) + b"x")
    assert len(reader.writable()) <= GROWTH_BYTES_MIN


def test_the_largest_frame_allowed_is_allowed() -> None:
    assert FrameReader(10).feed(framed(b"x" * 10)) == [b"x" * 10]
