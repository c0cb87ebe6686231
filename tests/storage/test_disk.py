"""The local disk: whole appends, files that outlive their names, locks that name their holder."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparklog.model.errors import LogDirectoryError
from sparklog.model.parts import FileSlice
from sparklog.storage.disk import LocalDisk, SyncFailed, WriteFailed, may_have_lost
from tests.of_this_thread import of_this_thread

DISK = LocalDisk()


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_appended_bytes_are_in_the_file_at_once(tmp_path: Path) -> None:
    file = DISK.open(f"{tmp_path}/a", create=True)
    file.append(b"one")
    file.append(memoryview(b"-two"))
    assert (tmp_path / "a").read_bytes() == b"one-two"
    assert file.size() == 7
    assert DISK.open(f"{tmp_path}/a").pread(3, 4) == b"two"


def test_opening_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DISK.open(f"{tmp_path}/missing")


def test_an_append_that_fails_half_way_leaves_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DISK.open(f"{tmp_path}/a", create=True)
    file.append(b"kept")
    real = os.pwrite

    def short_then_full(descriptor: int, data: bytes, position: int) -> int:
        if position > 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, bytes(data)[:2], position)

    monkeypatch.setattr(os, "pwrite", of_this_thread(real, short_then_full))
    with pytest.raises(OSError, match="No space left"):
        file.append(b"lost")
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"kept"
    file.append(b"+more")
    assert (tmp_path / "a").read_bytes() == b"kept+more"


def test_what_could_not_be_taken_back_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DISK.open(f"{tmp_path}/a", create=True)
    file.append(b"kept")

    def always_full(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    real = os.pwrite

    def wrong_then_full(descriptor: int, data: bytes, position: int) -> int:
        return real(descriptor, b"??", position) if position == 4 else always_full()

    monkeypatch.setattr(os, "ftruncate", of_this_thread(os.ftruncate, always_full))
    monkeypatch.setattr(os, "pwrite", of_this_thread(real, wrong_then_full))
    with pytest.raises(OSError, match="Input/output"):
        file.append(b"lost")
    monkeypatch.undo()
    file.append(b"++")
    assert (tmp_path / "a").read_bytes() == b"kept++"


def test_a_slice_stays_readable_when_its_file_is_removed(tmp_path: Path) -> None:
    file = DISK.open(f"{tmp_path}/a", create=True)
    file.append(b"0123456789")
    piece = FileSlice(file, 2, 3)
    DISK.remove(f"{tmp_path}/a")
    del file
    assert piece.read() == b"234"


def test_the_descriptor_goes_with_the_last_holder(tmp_path: Path) -> None:
    before = open_descriptors()
    file = DISK.open(f"{tmp_path}/a", create=True)
    piece = FileSlice(file, 0, 0)
    del file
    assert open_descriptors() == before + 1
    del piece
    assert open_descriptors() == before


def test_atomic_writes_replace_and_leave_no_temporary_file(tmp_path: Path) -> None:
    DISK.write_atomically(f"{tmp_path}/a", b"old")
    DISK.write_atomically(f"{tmp_path}/a", b"new", sync=False)
    assert DISK.read(f"{tmp_path}/a") == b"new"
    assert DISK.list(str(tmp_path)) == ["a"]


def test_a_held_lock_is_refused_with_the_holder_s_process_id(tmp_path: Path) -> None:
    held = DISK.lock(f"{tmp_path}/.lock")
    with pytest.raises(LogDirectoryError, match=rf"in use by process {os.getpid()} .*{tmp_path}"):
        DISK.lock(f"{tmp_path}/.lock")
    held.release()
    DISK.lock(f"{tmp_path}/.lock").release()


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, os\n"
        "from sparklog.storage.disk import LocalDisk\n"
        f"lock = LocalDisk().lock({f'{tmp_path}/.lock'!r})\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"locked\n"
        with pytest.raises(LogDirectoryError, match=f"process {child.pid} "):
            DISK.lock(f"{tmp_path}/.lock")
        child.kill()
        child.wait()
        DISK.lock(f"{tmp_path}/.lock").release()


# ---- a device that fails -----------------------------------------------------------------------------------

CHANGES = {
    "append": ("pwrite", lambda folder: DISK.open(f"{folder}/a").append(b"more")),
    "truncate": ("ftruncate", lambda folder: DISK.open(f"{folder}/a").truncate(0)),
    "create": ("open", lambda folder: DISK.open(f"{folder}/b", create=True)),
    "write atomically": ("replace", lambda folder: DISK.write_atomically(f"{folder}/a", b"x")),
    "make a directory": ("mkdir", lambda folder: DISK.make_directory(f"{folder}/d/e")),
    "remove": ("remove", lambda folder: DISK.remove(f"{folder}/a")),
    "rename": ("rename", lambda folder: DISK.rename(f"{folder}/a", f"{folder}/b")),
    "remove a directory": ("rmdir", lambda folder: DISK.remove_directory(f"{folder}/empty")),
    "lock": ("pwrite", lambda folder: DISK.lock(f"{folder}/.lock")),
}


def prepared(folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: int) -> None:
    (folder / "a").write_bytes(b"had")
    (folder / "empty").mkdir()

    def fail(*_args: object, **_named: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, call, of_this_thread(getattr(os, call), fail))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_the_device_fails_may_have_lost_what_was_written_before(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, act = CHANGES[change]
    prepared(tmp_path, monkeypatch, call, errno.EIO)
    with pytest.raises(WriteFailed) as caught:
        act(tmp_path)
    assert (caught.value.errno, may_have_lost(caught.value)) == (errno.EIO, True)


@pytest.mark.parametrize("change", CHANGES)
def test_a_full_disk_has_lost_nothing(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, act = CHANGES[change]
    prepared(tmp_path, monkeypatch, call, errno.ENOSPC)
    with pytest.raises(OSError, match="No space left") as caught:
        act(tmp_path)
    assert not may_have_lost(caught.value)


def test_a_read_that_fails_says_nothing_of_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DISK.open(f"{tmp_path}/a", create=True)
    prepared(tmp_path, monkeypatch, "pread", errno.EIO)
    with pytest.raises(OSError, match="Input/output error") as caught:
        file.pread(3, 0)
    assert not may_have_lost(caught.value)


def test_a_file_whose_sync_failed_while_it_was_replaced_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(tmp_path, monkeypatch, "fsync", errno.EIO)
    monkeypatch.setattr("fcntl.F_FULLFSYNC", None, raising=False)
    with pytest.raises(SyncFailed):
        DISK.write_atomically(f"{tmp_path}/a", b"x")
