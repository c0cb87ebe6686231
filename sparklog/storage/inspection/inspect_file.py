"""A file that is looked at and never touched, while a broker may be writing to it.

Opened for reading only, without a lock and without a word to its owner. Whoever inspects holds no more of a
file than a window of a few megabytes, or the one batch that is being looked at.
"""

import os
from types import TracebackType
from typing import Self

from sparklog.model.errors import SparklogError


class Unreadable(SparklogError):  # noqa: N818 (what it says of the file)
    """The file cannot be opened or read, or it shrank while it was read."""


class InspectedFile:
    """Implements the reading half of ``disk.File``; use it as a context manager."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def size(self) -> int:
        """As of now: the file of a living broker grows."""
        return os.fstat(self._descriptor).st_size

    def pread(self, length: int, position: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, position)
        except OSError as error:
            raise Unreadable(f"{error.strerror} at {position}") from None

    def read_fully(self, length: int, position: int) -> bytes:
        """Exactly these bytes; Unreadable if the file ends before them."""
        data = self.pread(length, position)
        if len(data) != length:
            raise Unreadable(f"it has {len(data)} of the {length} bytes wanted at {position}")
        return data
