"""A folder as a store: the contract, what is synced when, and folders that cannot be used."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparklog.remote import local
from sparklog.remote.open_store import open_store
from sparklog.remote.store import Failure, RemoteStore
from tests.remote.contract import StoreContract, failure


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> RemoteStore:
        return open_store(f"file://{tmp_path}/history")


def path_of(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")


def test_file_and_folders_are_synced_before_an_object_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str]] = []
    fsync, link = os.fsync, os.link

    def seen_fsync(descriptor: int) -> None:
        if (path := path_of(descriptor)).startswith(str(tmp_path)):
            calls.append(("sync", "upload" if ".uploading/" in path else path.removeprefix(str(tmp_path))))
        fsync(descriptor)

    def seen_link(source: str, target: str, **how: object) -> None:
        if target.startswith(str(tmp_path)):
            calls.append(("name", target.removeprefix(str(tmp_path))))
        link(source, target, **how)

    monkeypatch.setattr(local.os, "fsync", seen_fsync)
    monkeypatch.setattr(local.os, "link", seen_link)
    open_store(f"file://{tmp_path}").put("a/x", [b"1"])
    assert calls[-4:] == [("sync", "upload"), ("sync", ""), ("name", "/a/x"), ("sync", "/a")]


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = open_store(f"file://{tmp_path}/file/history")
    assert failure(lambda: store.put("x", [b""])) in (Failure.MISSING, Failure.OTHER)
    assert store.names("") == []


@pytest.mark.parametrize(
    ("number", "expected"), [(errno.ENOSPC, Failure.FULL), (errno.EROFS, Failure.REFUSED)]
)
def test_full_and_read_only_file_systems_are_told_and_leave_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: Failure
) -> None:
    fsync = os.fsync

    def fails(descriptor: int) -> None:
        """Brokers may live in this process, whose disks are whole."""
        if path_of(descriptor).startswith(str(tmp_path)):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    store = open_store(f"file://{tmp_path}/history")
    store.put("before", [b"1"])
    monkeypatch.setattr(local.os, "fsync", fails)
    assert failure(lambda: store.put("x", [b"1"])) is expected
    monkeypatch.undo()
    assert store.names("") == ["before"]
    assert store.names(".uploading") == []


def test_a_write_that_ends_short_fails_the_object(tmp_path: Path) -> None:
    """As on a disk that gets full in the middle of a write; here by the limit of a file's size."""
    program = f"""
import resource
from sparklog.remote.open_store import open_store
from sparklog.remote.store import RemoteStoreError
store = open_store("file://{tmp_path}/history")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    store.put("x", [bytes(150_000)])
except RemoteStoreError as error:
    print(error, store.names(""))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "x cannot be written to" in done.stdout
    assert "File too large" in done.stdout
    assert done.stdout.endswith("[]\n")
