"""``file://``: a folder of this machine, or of a mounted file system.

fsspec's own local file system syncs nothing, and its commit copies across file systems; so the calls are the
kernel's. A file is synced before it has its name, and its folder afterwards. The name is given by ``link``,
which the kernel refuses if the name is taken.
"""

import os
from pathlib import Path
from typing import Any

from sparklog.remote.file_store import FileStore


class LocalStore(FileStore):
    def _create(self, path: str) -> Any:
        _make_folders(Path(path).parent)
        # Buffered, because an unbuffered write on a disk that gets full may end short, without an error.
        return Path(path).open("xb")

    def _sync_and_close(self, file: Any) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def _rename(self, source: str, target: str) -> None:
        folder = Path(target).parent
        _make_folders(folder)
        os.link(source, target)
        os.unlink(source)
        _sync_folder(folder)

    def _read(self, path: str, start: int, length: int) -> bytes:
        with Path(path).open("rb") as file:
            file.seek(start)
            return file.read(min(length, max(0, os.fstat(file.fileno()).st_size - start)))

    def _files(self, path: str) -> list[str]:
        os.stat(path)
        return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]

    def _remove(self, path: str) -> None:
        os.unlink(path)
        _sync_folder(Path(path).parent)


def _make_folders(folder: Path) -> None:
    """Create a folder and those above it, each durably."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        _sync_folder(one.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
