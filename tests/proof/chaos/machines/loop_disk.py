"""A disk of one machine: an ext4 file system in a file, which can lose its power, fill up, hang or break.

It is mounted in the mount namespace of one process if there is one (``machine.py``), and reached from outside
through that process's view of the files. It is gone when the last process in that namespace is.
"""

import contextlib
import enum
import errno
import fcntl
import functools
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from chaos.machines.privileges import PREFIX, ToolFailed, call, why_no_tools

TOOLS: Final = ("mkfs.ext4", "e2fsck", "mount", "umount", "losetup", "fsfreeze", "unshare", "nsenter")

_SHUTDOWN: Final = 0x8004587D
"""FS_IOC_SHUTDOWN."""

_UNMOUNT_TIMEOUT_S: Final = 30.0
_HOG: Final = "hog"


class Unsynced(enum.IntEnum):
    """What a power cut leaves of what nobody had synced: the flags of FS_IOC_SHUTDOWN."""

    KEPT = 0
    """All of it: the kernel had just brought it to the disk by itself."""
    NAMED = 1
    """The journal is written, the bytes are not: files have their last names, and are empty or end in 0."""
    LOST = 2


def probe() -> str | None:
    """Why disks in files cannot be made here; None if they can."""
    return why_no_tools(TOOLS) or _why_no_disk()


@functools.cache
def _why_no_disk() -> str | None:
    """Makes one, cuts its power, and removes it."""
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}-probe-") as folder:
        disk = LoopDisk(Path(folder) / "image", Path(folder) / "disk", mebibytes=16)
        try:
            disk.make()
            disk.cut_power()
            disk.unmount()
        except (ToolFailed, OSError) as failure:
            return f"file systems in files are not allowed: {failure}"
        finally:
            disk.remove()
    return None


class LoopDisk:
    """``make`` it, do things to it, ``remove`` it."""

    def __init__(self, image: Path, point: Path, mebibytes: int = 1024, inside: int | None = None) -> None:
        """``inside`` is a process in whose mount namespace it is mounted; None stands for our own."""
        self.image = image
        self.point = point
        self._mebibytes = mebibytes
        self._inside = inside
        self._is_filled = self._is_frozen = False

    @property
    def seen(self) -> Path:
        """Where it is seen from outside of its mount namespace."""
        return self.point if self._inside is None else Path(f"/proc/{self._inside}/root{self.point}")

    def _call(self, *command: str) -> str:
        if self._inside is not None:
            command = ("nsenter", f"--mount=/proc/{self._inside}/ns/mnt", "--", *command)
        return call(*command)

    def make(self) -> None:
        """An empty file system, mounted. The image is sparse: it takes what is written."""
        self.image.parent.mkdir(parents=True, exist_ok=True)
        self.point.mkdir(parents=True, exist_ok=True)
        self.image.unlink(missing_ok=True)
        with self.image.open("wb") as file:
            file.truncate(self._mebibytes * 1024 * 1024)
        call("mkfs.ext4", "-q", "-F", "-m", "0", str(self.image))
        self.mount()

    def mount(self) -> None:
        self._call("mount", "-o", "loop,errors=remount-ro", str(self.image), str(self.point))

    def is_mounted(self) -> bool:
        try:
            return os.path.ismount(self.seen)
        except OSError:  # reading anything of a disk without power fails; so it has one
            return True

    def device(self) -> str:
        """The loop device, such as ``loop3``."""
        number = os.stat(self.seen).st_dev
        return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name

    def cut_power(self, unsynced: Unsynced = Unsynced.LOST) -> None:
        """Nothing reaches the disk any more. Then kill, and ``restart``."""
        descriptor = os.open(self.seen, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, unsynced.to_bytes(4, "little"))
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        """Waits for a killed process's last descriptor to be closed."""
        deadline = time.monotonic() + _UNMOUNT_TIMEOUT_S
        while True:
            try:
                self._call("umount", str(self.point))
            except ToolFailed as failure:
                if "busy" not in str(failure) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def restart(self) -> None:
        """As the machine does when the power is back: mount, which replays the file system's journal."""
        self.unmount()
        self.mount()

    def users(self) -> list[int]:
        """Processes that have something of it open."""
        device = os.stat(self.seen).st_dev
        found = set()
        for entry in Path("/proc").glob("[0-9]*/fd/*"):
            with contextlib.suppress(OSError):  # it has just been closed, or the process has ended
                if entry.stat().st_dev == device:
                    found.add(int(entry.parts[2]))
        return sorted(found)

    def fill(self) -> None:
        """Take all that is free, to the last block.

        BlockingIOError on a frozen disk: we would wait for our own ``thaw``.
        """
        if self._is_frozen:
            raise BlockingIOError(f"{self.image} is frozen, and cannot be filled")
        self._is_filled = True
        descriptor = os.open(self.seen / _HOG, os.O_WRONLY | os.O_CREAT)
        try:
            piece = 1 << 28
            while piece >= 1 << 12:
                end = os.fstat(descriptor).st_size
                try:
                    os.posix_fallocate(descriptor, end, piece)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    piece //= 2
        finally:
            os.close(descriptor)

    def free(self) -> None:
        """Give back what ``fill`` took."""
        (self.seen / _HOG).unlink(missing_ok=True)
        self._is_filled = False

    def freeze(self) -> None:
        """Every write waits, and every sync, until ``thaw``; even SIGKILL waits.

        BlockingIOError on a disk that was filled: ``free`` would wait, too.
        """
        if self._is_filled:
            raise BlockingIOError(f"{self.image} is filled, and cannot be frozen")
        self._is_frozen = True
        self._call("fsfreeze", "-f", str(self.point))

    def thaw(self) -> None:
        """Doing it to a disk that is not frozen is harmless."""
        with contextlib.suppress(ToolFailed):
            self._call("fsfreeze", "-u", str(self.point))
        self._is_frozen = False

    def break_down(self) -> None:
        """An error of the file system's own: it becomes read-only, under everyone who has it open."""
        trigger = Path(f"/sys/fs/ext4/{self.device()}/trigger_fs_error")
        trigger.write_text("chaos\n", encoding="ascii")

    def repair(self) -> None:
        """Check the file system as an operator would, and mount it again. Nobody may have a file open."""
        self.unmount()
        # Status 1 says that it has corrected something, as it shall.
        done = subprocess.run(["e2fsck", "-fy", str(self.image)], capture_output=True, text=True, check=False)
        if done.returncode > 1:
            raise ToolFailed(f"e2fsck cannot mend {self.image}: {done.stdout.strip()}")
        self.mount()

    def put_away(self) -> None:
        """Unmount it, if it is mounted; the image stays, for whoever looks into a run that failed."""
        if self.is_mounted():
            self.thaw()
            self._call("umount", "--lazy", str(self.point))

    def remove(self) -> None:
        """The image goes, too; also if the disk was made only in part."""
        self.put_away()
        self.image.unlink(missing_ok=True)
