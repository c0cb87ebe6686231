"""A machine of its own for one broker: its network, its disk, its clock, and the boot that it is in.

A process that only waits holds the machine's mount namespace. In there the broker's disk is mounted, and
the files in which Linux tells this boot and this machine are covered by others. Nothing in sparklog has to
know of it. The holder ends with the process that made it; with the last process in a mount namespace its
mounts go.
"""

import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.machines import loop_disk, namespaces
from chaos.machines.loop_disk import LoopDisk
from chaos.machines.namespaces import Network
from chaos.machines.privileges import ToolFailed, call, why_not
from chaos.machines.shim import Controls

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_MACHINE_ID: Final = "/etc/machine-id"


def probe() -> str | None:
    """Why machines cannot be had here; None if they can."""
    refused = namespaces.probe() or loop_disk.probe()
    if refused is not None:
        return refused
    cover = (
        f"echo 1 >/dev/shm/$$ && mount --bind /dev/shm/$$ {_BOOT_ID}; status=$?; rm /dev/shm/$$; exit $status"
    )
    refused = why_not("unshare", "--mount", "--propagation", "private", "sh", "-c", cover)
    return f"the boot id cannot be covered: {refused}" if refused else None


class Machine:
    """``set_up``, then start processes with ``command`` and ``environment``."""

    def __init__(
        self, node: str, network: Network, folder: Path, disk: Path, controls: Controls, mebibytes: int = 1024
    ) -> None:
        """``disk`` is where its disk is mounted, as its processes see it."""
        self.node = node
        self.network = network
        self.controls = controls
        self._folder = folder
        self._point = disk
        self._mebibytes = mebibytes
        self._holder: subprocess.Popen[bytes] | None = None
        self._disk: LoopDisk | None = None

    @property
    def address(self) -> str:
        return self.network.address(self.node)

    @property
    def disk(self) -> LoopDisk:
        assert self._disk is not None, "not set up"
        return self._disk

    @property
    def _holder_pid(self) -> int:
        assert self._holder is not None, "not set up"
        return self._holder.pid

    def set_up(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._hold()
        self._disk = LoopDisk(self._folder / "disk.img", self._point, self._mebibytes, self._holder_pid)
        self._disk.make()
        self.controls.watch_device(self._disk.seen)
        self.draw_boot_id()
        self._cover(_BOOT_ID)
        if Path(_MACHINE_ID).is_file():
            self._file_over(_MACHINE_ID).write_text(f"{uuid.uuid4().hex}\n", encoding="ascii")
            self._cover(_MACHINE_ID)

    def _hold(self) -> None:
        """Start the holder, and wait until it is in its namespace: it says so."""
        say = ["sh", "-c", "echo here; exec cat"]
        command = ["unshare", "--mount", "--propagation", "private", *say]
        self._holder = subprocess.Popen(
            self.network.command(self.node, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"here\n":
            raise ToolFailed(f"no mount namespace for {self.node}: {' '.join(command)} failed")

    def _file_over(self, path: str) -> Path:
        return self._folder / Path(path).name

    def _cover(self, path: str) -> None:
        self.call("mount", "--bind", str(self._file_over(path)), path)

    def command(self, command: Sequence[str]) -> list[str]:
        """The command as it is to be run to be on this machine; its process id stays the starter's."""
        return ["nsenter", f"--target={self._holder_pid}", "--mount", "--net", "--", *command]

    def call(self, *command: str) -> str:
        """Run a tool on this machine."""
        return call(*self.command(command))

    def draw_boot_id(self) -> None:
        """As at a start of the kernel. The file stays the same one: a mount knows it by its inode."""
        self._file_over(_BOOT_ID).write_text(f"{uuid.uuid4()}\n", encoding="ascii")

    def processes(self) -> list[int]:
        """What runs on this machine."""
        pids = call("ip", "netns", "pids", self.network.namespace(self.node)).split()
        return [int(pid) for pid in pids if int(pid) != self._holder_pid]

    def tear_down(self) -> None:
        """Its processes must have ended, or end with the network. Twice does no harm."""
        if self._disk is not None:
            self._disk.put_away()
            self._disk = None
        if self._holder is not None:
            assert self._holder.stdin is not None
            assert self._holder.stdout is not None
            self._holder.stdin.close()
            self._holder.wait()
            self._holder.stdout.close()
            self._holder = None
        self.controls.close()
