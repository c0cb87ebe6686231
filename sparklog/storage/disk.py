"""The disk as a port: the file system operations that storage uses, and the local file system.

The simulation implements ``Disk`` too, and tears writes and loses unsynced data. Each implementation
guarantees:

- ``File.append`` writes at the end of the file. After it returned, the kernel has all bytes: they survive
  SIGKILL, but not a power cut. If it raises, ``size`` is unchanged; bytes that were already written lie
  beyond that size, and the next append overwrites them.
- ``File.fsync`` makes the bytes survive a power cut; ``sync_directory`` does the same for names (files that
  were created, renamed or removed). A failed sync raises ``SyncFailed``. Never retry it: Linux reports the
  error once and then forgets the lost pages.
- A write, rename or removal that fails because of the device raises ``WriteFailed``: the kernel may have lost
  earlier pages without a report. A full disk or a failed read does not raise it.
- ``write_atomically`` leaves either the old content or the new, never a mixture.
- A ``File`` stays readable for its holders after its name was removed, because replies in flight hold slices
  of it. The descriptor is closed with the last reference.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from sparklog.model.errors import LogDirectoryError
from sparklog.model.parts import ReadableFile

Buffer = bytes | bytearray | memoryview

_LOCK_TEXT_BYTES_MAX = 64


def _sync_descriptor(descriptor: int) -> None:
    """Write the file to the medium. On macOS a plain ``fsync`` leaves the data in the drive's own cache."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(descriptor, full_sync)
            return
        except OSError as error:
            # Some file systems, as those of networks, lack F_FULLFSYNC; any other error is the disk's.
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise
    os.fsync(descriptor)


class SyncFailed(OSError):  # noqa: N818 (says what is the case)
    """An fsync failed: earlier writes may be lost, although they can still be read now."""


class WriteFailed(OSError):  # noqa: N818 (says what is the case)
    """The device failed to change a file or a name: earlier unsynced writes may be lost."""


_DEVICE_FAILED = frozenset(
    getattr(errno, name) for name in ("EIO", "EREMOTEIO", "ETIMEDOUT", "ENOLINK") if hasattr(errno, name)
)

_GIVEN_UP = frozenset(
    getattr(errno, name)
    for name in ("EROFS", "ENODEV", "ENXIO", "ESHUTDOWN", "EUCLEAN")
    if hasattr(errno, name)
)


def may_have_lost(error: Exception) -> bool:
    """Whether earlier unsynced writes may be lost, although they can still be read and nothing restarted.

    A file system that becomes read-only, or whose device disappears, never writes its dirty pages. When a
    write fails, the kernel's own writes of earlier pages may have failed too, and Linux drops those pages.
    A full disk drops nothing, and a failed read proves nothing about dirty pages.
    """
    if isinstance(error, (SyncFailed, WriteFailed)):
        return True
    return isinstance(error, OSError) and error.errno in _GIVEN_UP


def write_failure(error: OSError, path: str) -> OSError:
    """``WriteFailed`` if the device caused ``error``, the failure of a change; else ``error``."""
    if error.errno not in _DEVICE_FAILED or isinstance(error, SyncFailed):
        return error
    return WriteFailed(error.errno, error.strerror, path)


@contextlib.contextmanager
def _changing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise write_failure(error, path) from error.__cause__


class File(ReadableFile, Protocol):
    """A file opened for reading and appending."""

    @property
    def path(self) -> str: ...

    def size(self) -> int: ...

    def append(self, data: Buffer) -> None: ...

    def truncate(self, size: int) -> None: ...

    def fsync(self) -> None: ...


class Lock(Protocol):
    """A held lock. ``release`` or the end of the process frees it."""

    def release(self) -> None: ...


class Space(NamedTuple):
    """The size of a file system, and what of it is left for processes without privileges. Inodes are -1
    where files take none. ``device``: its number at this host; empty where that is not known.
    """

    total_bytes: int
    free_bytes: int
    total_inodes: int = -1
    free_inodes: int = -1
    device: str = ""


class Disk(Protocol):
    """A file system. Operations raise OSError as the operating system does."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def read(self, path: str) -> bytes: ...

    def write_atomically(self, path: str, data: Buffer, *, sync: bool = True) -> None: ...

    def sync_file(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def size(self, path: str) -> int: ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]: ...

    def make_directory(self, path: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def remove_directory(self, path: str) -> None: ...

    def space(self, path: str) -> Space: ...

    def lock(self, path: str) -> Lock: ...


class LocalFile:
    """A local file with one descriptor, which stays open as long as the object lives."""

    __slots__ = ("_descriptor", "_end", "_path")

    def __init__(self, path: str, *, create: bool) -> None:
        self._descriptor = -1
        self._descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644)
        self._path = path
        self._end = os.fstat(self._descriptor).st_size

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def __repr__(self) -> str:
        return f"LocalFile({self._path!r})"

    @property
    def path(self) -> str:
        return self._path

    def fileno(self) -> int:
        return self._descriptor

    def size(self) -> int:
        return self._end

    def pread(self, length: int, position: int) -> bytes:
        return os.pread(self._descriptor, length, position)

    def append(self, data: Buffer) -> None:
        position, rest = self._end, memoryview(data)
        try:
            while rest:
                written = os.pwrite(self._descriptor, rest, position)
                position += written
                rest = rest[written:]
        except OSError as error:
            # Raise the write's own error. If this truncation fails too, the next append overwrites the bytes.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            raise write_failure(error, self._path) from None
        self._end = position

    def truncate(self, size: int) -> None:
        with _changing(self._path):
            os.ftruncate(self._descriptor, size)
        self._end = size

    def fsync(self) -> None:
        _fsync(self._descriptor, self._path)


class LocalLock:
    """An ``flock`` on a file with the holder's pid. A forked child shares the lock while it lives."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, _LOCK_TEXT_BYTES_MAX, 0).decode("ascii", "replace").strip()
            self.release()
            if not isinstance(error, BlockingIOError):
                raise
            raise LogDirectoryError(
                f"{os.path.dirname(path)} is in use by process {holder or 'unknown'} (lock {path}): "
                "stop that process, or give this broker a directory of its own"
            ) from None
        with _changing(path):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class LocalDisk:
    """The file system of this machine."""

    def open(self, path: str, *, create: bool = False) -> File:
        if not create:
            return LocalFile(path, create=False)
        with _changing(path):
            return LocalFile(path, create=True)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_atomically(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        with _changing(path):
            with open(temporary, "wb") as file:
                file.write(data)
                if sync:
                    file.flush()
                    _fsync(file.fileno(), temporary)
            os.replace(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def sync_file(self, path: str) -> None:
        self._sync(path)

    def sync_directory(self, path: str) -> None:
        self._sync(path)

    def _sync(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            _fsync(descriptor, path)
        finally:
            os.close(descriptor)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        with _changing(path):
            os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        with _changing(path):
            os.remove(path)

    def rename(self, old: str, new: str) -> None:
        with _changing(old):
            os.rename(old, new)

    def remove_directory(self, path: str) -> None:
        with _changing(path):
            shutil.rmtree(path)

    def space(self, path: str) -> Space:
        state = os.statvfs(path)
        inodes = (state.f_files, state.f_favail) if state.f_files else (-1, -1)
        return Space(
            state.f_blocks * state.f_frsize,
            state.f_bavail * state.f_frsize,
            *inodes,
            device=str(os.stat(path).st_dev),
        )

    def lock(self, path: str) -> Lock:
        return LocalLock(path)


def _fsync(descriptor: int, path: str) -> None:
    try:
        _sync_descriptor(descriptor)
    except OSError as error:
        raise SyncFailed(error.errno, error.strerror, path) from error
