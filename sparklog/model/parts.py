"""Pieces of a reply: bytes in memory, or a slice of a file that the kernel sends by itself.

A read of the log, and so the body of a fetch reply, is a list of parts. The reactor writes such lists in
order, by ``send`` for bytes and ``sendfile`` for slices. Projection and transcoding build such lists too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


class ReadableFile(Protocol):
    """An open file. Its bytes stay readable while a reference exists, also after the file was unlinked."""

    def fileno(self) -> int: ...

    def pread(self, length: int, position: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class FileSlice:
    """``length`` bytes of ``file`` from ``position`` on."""

    file: ReadableFile
    position: int
    length: int

    def read(self) -> bytes:
        data = self.file.pread(self.length, self.position)
        if len(data) != self.length:
            raise OSError(f"{self.file} ended {self.length - len(data)} bytes before a slice of it did")
        return data


Part = bytes | memoryview | FileSlice


def part_length(part: Part) -> int:
    return part.length if isinstance(part, FileSlice) else len(part)


def parts_length(parts: Iterable[Part]) -> int:
    length = 0
    for part in parts:
        length += part.length if isinstance(part, FileSlice) else len(part)
    return length


def slice_part(part: Part, position: int, length: int) -> Part:
    """``length`` bytes of ``part`` from ``position`` on, without reading them."""
    if isinstance(part, FileSlice):
        return FileSlice(part.file, part.position + position, length)
    return memoryview(part)[position : position + length]


def read_part(part: Part, position: int, length: int) -> bytes:
    """The same, in memory."""
    piece = slice_part(part, position, length)
    return piece.read() if isinstance(piece, FileSlice) else bytes(piece)


def read_parts(parts: Sequence[Part]) -> bytes:
    """All bytes of ``parts``, in memory, for code that decodes them (transcoding, validation, tools)."""
    return b"".join([part.read() if isinstance(part, FileSlice) else part for part in parts])
