"""Lines of standard input as bytes, with a None for each pause of the input."""

import os
import select
from collections.abc import Iterator
from typing import Final

from sparklog.model.errors import SparklogError

READ_BYTES: Final = 1 << 16
LINE_BYTES_MAX: Final = 64 * 1024 * 1024


def read_lines(descriptor: int, pause_ms: int) -> Iterator[bytes | None]:
    """Each line without its newline, and None whenever no input arrived for ``pause_ms``.

    Bytes are unchanged, carriage returns included. The last line need not end in a newline.
    """
    rest = bytearray()
    while True:
        ready, _, _ = select.select([descriptor], [], [], pause_ms / 1_000)
        if not ready:
            yield None
            continue
        chunk = os.read(descriptor, READ_BYTES)
        if not chunk:
            break
        if b"\n" not in chunk:
            rest += chunk
            _check_length(rest)
            continue
        first, *lines, last = chunk.split(b"\n")
        yield bytes(rest) + first
        yield from lines
        rest = bytearray(last)
    if rest:
        yield bytes(rest)


def _check_length(line: bytearray) -> None:
    if len(line) > LINE_BYTES_MAX:
        raise SparklogError(
            f"a line of standard input is longer than {LINE_BYTES_MAX} bytes; is it text, a record a line?"
        )


def unescape(text: str) -> bytes:
    r"""A separator as typed on a command line; ``\t``, ``\n`` and ``\\`` are escapes as in C."""
    return text.replace("\\\\", "\0").replace("\\t", "\t").replace("\\n", "\n").replace("\0", "\\").encode()
