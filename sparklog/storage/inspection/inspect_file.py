"""A file that is inspected and never changed, while a broker may be writing to it.

The file is opened read-only and without a lock. Inspection holds at most a window of a few megabytes, or one
batch, in memory.
"""

import os
from types import TracebackType
from typing import Self

from sparklog.model.errors import SparklogError


class Unreadable(SparklogError):  # noqa: N818 (a property of the file)
    """The file cannot be opened or read, or it shrank while it was read."""


class InspectedFile:
    """The reading half of ``disk.File``, as a context manager."""

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
        """The current size; the file of a running broker grows."""
        return os.fstat(self._descriptor).st_size

    def pread(self, length: int, position: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, position)
        except OSError as error:
            raise Unreadable(f"{error.strerror} at {position}") from None

    def read_fully(self, length: int, position: int) -> bytes:
        """Exactly ``length`` bytes; Unreadable if the file ends earlier."""
        data = self.pread(length, position)
        if len(data) != length:
            raise Unreadable(f"it has {len(data)} of the {length} bytes wanted at {position}")
        return data
