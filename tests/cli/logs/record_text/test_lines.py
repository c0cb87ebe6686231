"""Lines come as bytes, whole, whatever the pieces in which they arrive."""

import os
from collections.abc import Iterator

import pytest

from sparklog.cli.logs.record_text.lines import read_lines, unescape


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def test_bytes_are_taken_as_they_are(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"plain\n\xff\x00\r\n\nlast without newline")
    os.close(pipe[1])
    assert list(read_lines(pipe[0], 1_000)) == [b"plain", b"\xff\x00\r", b"", b"last without newline"]


def test_no_input_is_no_line(pipe: tuple[int, int]) -> None:
    os.close(pipe[1])
    assert list(read_lines(pipe[0], 1_000)) == []


def test_a_pause_is_told_and_a_line_in_two_pieces_is_one(pipe: tuple[int, int]) -> None:
    lines = read_lines(pipe[0], 1)
    os.write(pipe[1], b"first\nsec")
    assert next(lines) == b"first"
    assert next(lines) is None
    os.write(pipe[1], b"ond")
    assert next(lines) is None
    os.write(pipe[1], b"\n")
    assert next(lines) == b"second"
    os.close(pipe[1])
    assert list(lines) == []


@pytest.mark.parametrize(
    ("typed", "meant"), [(r"\t", b"\t"), (":", b":"), (r"\\t", b"\\t"), ("→", "→".encode())]
)
def test_separators_are_typed_as_in_c(typed: str, meant: bytes) -> None:
    assert unescape(typed) == meant
