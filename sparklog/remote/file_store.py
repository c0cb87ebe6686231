"""Stores that are file systems: a folder of this machine, or HDFS.

An object is written under a name of its own in the folder ``.uploading``, synced to disk, and then moved to
its name by a rename that refuses a taken name. So a name holds a whole object or none, and what a killed
writer leaves lies in ``.uploading``.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from sparklog.remote.blocks import blocks_of
from sparklog.remote.failures import as_store_errors
from sparklog.remote.locate import StoreUrl, check_name
from sparklog.remote.patience import Stop, within
from sparklog.remote.store import Failure, RemoteStoreError

UPLOADING: Final = ".uploading"

T = TypeVar("T")


class FileStore(ABC):
    """Implements ``RemoteStore``; subclasses know how their file system syncs and renames."""

    def __init__(self, url: StoreUrl, timeout_s: float, stop: Stop) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._stop = stop

    @abstractmethod
    def _create(self, path: str) -> Any:
        """A new file, open for writing, its folders with it."""

    @abstractmethod
    def _sync_and_close(self, file: Any) -> None: ...

    @abstractmethod
    def _rename(self, source: str, target: str) -> None:
        """Move a file to a name that must be free, its folders with it; durable when this returns."""

    @abstractmethod
    def _read(self, path: str, start: int, length: int) -> bytes:
        """Up to ``length`` bytes; fewer only at the file's end."""

    @abstractmethod
    def _files(self, path: str) -> list[str]:
        """Paths of all files below a folder; FileNotFoundError if there is none."""

    @abstractmethod
    def _remove(self, path: str) -> None: ...

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        target = self._path(check_name(name))
        source = self._path(f"{UPLOADING}/{uuid.uuid4().hex}")
        doing = f"{name} cannot be written to {self._url}"
        file = self._do(doing, lambda: self._create(source))
        size = 0
        try:
            for block in blocks_of(pieces):
                self._do(doing, partial(file.write, block))
                size += len(block)
            self._do(doing, lambda: self._sync_and_close(file))
            self._do(doing, lambda: self._rename(source, target))
        except BaseException:
            self._give_up(file, source)
            raise
        return size

    def _give_up(self, file: Any, source: str) -> None:
        """Remove what was written of an object; what cannot be removed now is left in ``.uploading``."""
        with suppress(RemoteStoreError):
            self._do("", file.close)
        with suppress(RemoteStoreError):
            self._do("", lambda: self._remove(source))

    def read(self, name: str, start: int, length: int) -> bytes:
        path = self._path(check_name(name))
        doing = f"{name} cannot be read from {self._url}"
        data = self._do(doing, lambda: self._read(path, start, length))
        if len(data) != length:
            raise RemoteStoreError(
                Failure.SHORT, f"{doing}: {len(data)} bytes from byte {start}, not {length}: it is truncated"
            )
        return data

    def names(self, folder: str) -> list[str]:
        path = self._path(check_name(folder)) if folder else self._url.folder
        try:
            files = self._do(f"{folder or '/'} cannot be listed in {self._url}", lambda: self._files(path))
        except RemoteStoreError as error:
            if error.failure is Failure.MISSING:
                return []
            raise
        names = sorted(file.removeprefix(f"{self._url.folder}/") for file in files)
        return names if folder else [name for name in names if not name.startswith(f"{UPLOADING}/")]

    def delete(self, name: str) -> None:
        path = self._path(check_name(name))
        try:
            self._do(f"{name} cannot be deleted from {self._url}", lambda: self._remove(path))
        except RemoteStoreError as error:
            if error.failure is not Failure.MISSING:
                raise

    def _path(self, name: str) -> str:
        return f"{self._url.folder}/{name}"

    def _do(self, doing: str, call: Callable[[], T]) -> T:
        with as_store_errors(doing):
            return within(self._timeout_s, doing, call, self._stop)
