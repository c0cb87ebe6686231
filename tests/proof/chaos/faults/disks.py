"""Faults of a broker's disk: power, room, patience, health; and calls that fail while the disk is well.

A power cut stops all of a machine first, so that nobody can tell anybody of a disk that fails under him; then
the disk loses its power, the broker is killed (sometimes Spark's worker and executor with it), the disk is
mounted again, and the machine is in another boot. What is left of Spark there goes on only then: nobody is
launched on a machine without power.
"""

import contextlib
import errno
import resource
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import ClassVar, Final

from chaos.faults.signals import pick_follower, pick_leader, told
from chaos.machines import shim
from chaos.machines.loop_disk import Unsynced
from chaos.machines.machine import Machine
from chaos.machines.privileges import why_no_tools
from chaos.machines.processes import kill_and_wait, send
from chaos.machines.shim import Controlled, Controls
from chaos.machines.walls import WalledPlaces, probe
from chaos.nemesis import DISKS, INJECTION, SYNCED, Broker, Cluster, Nemesis

OFF_S: Final = (0.0, 0.0, 1.0, 3.0)
"""How long a machine stays without power."""

WITH_SPARK: Final = 0.1
"""How often Spark's worker and executor die, too; they take a while to come back."""

FAILS_TIMEOUT_S: Final = 15.0
"""For so long a call that is to fail is waited for; without one there was no fault."""

ROOM_BYTES: Final = 8192
"""A disk that is shared gets full before so many bytes, in the middle of a write as a rule."""

_POLL_S: Final = 0.005


class _OfDisk(Nemesis):
    """A fault of the machines under brokers."""

    needs: ClassVar = frozenset({DISKS})

    def __init__(self, places: WalledPlaces) -> None:
        self._places = places

    def probe(self) -> str | None:
        return probe()

    def machine(self, broker: Broker) -> Machine:
        return self._places.machine(broker.id)


# --------------------------------------------------------------------------------------------------- power


@contextlib.contextmanager
def still(machines: Sequence[Machine]) -> Iterator[list[int]]:
    """Everything on these machines stands still meanwhile; its processes."""
    stopped: list[int] = []
    try:
        while new := [pid for one in machines for pid in one.processes() if pid not in stopped]:
            for pid in new:
                stopped.append(pid)
                send(pid, signal.SIGSTOP)
        yield stopped
    finally:
        for pid in stopped:
            send(pid, signal.SIGCONT)


def cut_power(
    machines: Sequence[Machine], off_s: float, *, with_spark: bool, unsynced: Unsynced = Unsynced.LOST
) -> None:
    """Take the power from these machines at the same moment, and give it back."""
    with still(machines) as processes:
        cut: list[Machine] = []
        try:
            for machine in machines:
                machine.disk.cut_power(unsynced)
                cut.append(machine)
            kill_and_wait(processes if with_spark else users(machines))
            time.sleep(off_s)
        finally:  # whatever went wrong: without power nobody comes back
            for machine in cut:
                machine.disk.restart()
                machine.draw_boot_id()
                machine.controls.watch_device(machine.disk.seen)


def users(machines: Sequence[Machine]) -> list[int]:
    """Processes that have files of these machines' disks open."""
    return [pid for machine in machines for pid in machine.disk.users()]


class PowerCut(_OfDisk):
    """One broker's machine."""

    kind = "power-cut"
    weight = 3

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return 0.0

    def begin(self, cluster: Cluster, rng: Random) -> str:
        pick = rng.choice((pick_leader, pick_leader, pick_follower))
        broker = pick(cluster, rng)
        text = told(cluster, broker)
        return f"{text}, {self.cut([self.machine(broker)], rng)}"

    def cut(self, machines: Sequence[Machine], rng: Random) -> str:
        off_s, with_spark = rng.choice(OFF_S), rng.random() < WITH_SPARK
        cut_power(machines, off_s, with_spark=with_spark)
        return f"for {off_s:g} s{', with its worker and executor' if with_spark else ''}"

    def end(self) -> None:
        """The machine is up again already."""


class PowerCutOfAll(PowerCut):
    """All machines with brokers at once: nobody is proven to have all that was acknowledged."""

    kind = "power-cut-of-all"
    weight = 2
    needs: ClassVar = frozenset({DISKS, SYNCED})

    def begin(self, cluster: Cluster, rng: Random) -> str:
        return f"all brokers, {self.cut(list(self._places.machines().values()), rng)}"


# ------------------------------------------------------------------------------------- room and patience


class _ForAWhile(_OfDisk):
    """The disk of a leader is struck, and mended when the time is over."""

    def __init__(self, places: WalledPlaces) -> None:
        super().__init__(places)
        self._machine: Machine | None = None

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.choice((0.5, 1.0, 3.0)) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        self._machine = self.machine(broker)
        self.strike(self._machine)
        return text

    def end(self) -> None:
        machine, self._machine = self._machine, None
        if machine is not None:
            self.mend(machine)

    @abstractmethod
    def strike(self, machine: Machine) -> None: ...

    @abstractmethod
    def mend(self, machine: Machine) -> None: ...


class DiskHangs(_ForAWhile):
    """Writes and syncs wait; reads, sockets and timers go on."""

    kind = "disk-hangs"

    def strike(self, machine: Machine) -> None:
        machine.disk.freeze()

    def mend(self, machine: Machine) -> None:
        machine.disk.thaw()


class DiskReadOnly(_ForAWhile):
    """The file system meets an error of its own and goes read-only; an operator repairs it in the end."""

    kind = "disk-read-only"

    def strike(self, machine: Machine) -> None:
        machine.disk.break_down()

    def mend(self, machine: Machine) -> None:
        """Whoever uses the disk then is killed: nobody can repair it under them."""
        with still([machine]):
            kill_and_wait(users([machine]))
            machine.disk.repair()
            machine.controls.watch_device(machine.disk.seen)


# ------------------------------------------------------------------------------------- calls that fail


class NothingFailed(Exception):  # noqa: N818 (says what is the case)
    """Nobody made such a call in time, so nothing was struck."""


class _OfCalls(Nemesis):
    """System calls of one broker's processes fail or are slow, on its disk only."""

    needs: ClassVar = frozenset({INJECTION})

    is_waited_for: ClassVar[bool] = True
    """Whether it has struck only when a call has failed."""

    def __init__(self, places: Controlled) -> None:
        self._places = places
        self._mend: Callable[[], None] = lambda: None

    def probe(self) -> str | None:
        return shim.probe()

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(0.5, 2.0) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        controls = self._places.controls(broker.id)
        self._mend = controls.heal_disk
        before = controls.failed()
        struck = self.strike(broker, controls, rng)
        return f"{struck}{wait_failed(controls, before) if self.is_waited_for else ''}: {text}"

    @abstractmethod
    def strike(self, broker: Broker, controls: Controls, rng: Random) -> str: ...

    def end(self) -> None:
        self._mend()
        self._mend = lambda: None


def wait_failed(controls: Controls, before: tuple[int, int]) -> str:
    """Wait until a call fails; of what it was."""
    deadline = time.monotonic() + FAILS_TIMEOUT_S
    while controls.failed() == before:
        if time.monotonic() > deadline:
            raise NothingFailed(f"no such call in {FAILS_TIMEOUT_S:g} s")
        time.sleep(_POLL_S)
    return f", first of {controls.failed_path()}"


class DiskFull(_OfCalls):
    """Not a block is left, for a while: of the broker's own disk, or of what the shim lets it have of one
    that it shares.
    """

    kind = "disk-full"

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.choice((0.5, 1.0, 3.0)) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        if not isinstance(self._places, WalledPlaces):
            return super().begin(cluster, rng)
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        disk = self._places.machine(broker.id).disk
        self._mend = disk.free
        disk.fill()
        return text

    def strike(self, broker: Broker, controls: Controls, rng: Random) -> str:
        size = rng.randrange(ROOM_BYTES)
        controls.limit_room(size)
        return f"no room after {size} bytes"


class WriteFails(_OfCalls):
    """EIO, or ENOSPC out of the blue, once or a few times."""

    kind = "write-fails"
    weight = 2

    def strike(self, broker: Broker, controls: Controls, rng: Random) -> str:
        error = rng.choice((errno.EIO, errno.EIO, errno.ENOSPC))
        count = rng.choice((1, 1, 3))
        controls.fail_writes(error, count)
        return f"{count} writes fail with {errno.errorcode[error]}"


class SyncFails(_OfCalls):
    """EIO once; whoever asks again is told that all is well, as Linux does."""

    kind = "sync-fails"
    weight = 2

    def strike(self, broker: Broker, controls: Controls, rng: Random) -> str:
        controls.fail_syncs(errno.EIO, 1)
        return "a sync fails with EIO"


class SlowSyncs(_OfCalls):
    """Every fsync takes longer."""

    kind = "slow-syncs"
    is_waited_for: ClassVar = False

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(1.0, 4.0) * cluster.session_timeout_s

    def strike(self, broker: Broker, controls: Controls, rng: Random) -> str:
        delay_s = rng.choice((0.05, 0.5, 2.0))
        controls.slow_syncs(delay_s)
        return f"syncs take {delay_s:g} s longer"


class NoMoreFiles(Nemesis):
    """A broker may open no more files or connections than it has, for a while."""

    kind = "no-more-files"

    def __init__(self) -> None:
        self._limits: tuple[int, tuple[int, int]] | None = None

    def probe(self) -> str | None:
        return why_no_tools(())

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.choice((0.5, 1.0, 3.0)) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        room = rng.choice((0, 2))
        self._limits = limit_files(broker.pid, room)
        return f"{room} more for {text}"

    def end(self) -> None:
        if self._limits is not None:
            restore_files(*self._limits)
            self._limits = None


def limit_files(pid: int, room: int) -> tuple[int, tuple[int, int]]:
    """Let a process open ``room`` more than it has; what ``restore_files`` wants."""
    used = max(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()) + 1
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(used + room, before[0]), before[1]))
    return pid, before


def restore_files(pid: int, limits: tuple[int, int]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def all_of_disks(places: WalledPlaces, controlled: Controlled) -> list[Nemesis]:
    """Every nemesis of this file."""
    of_disk: tuple[type[_OfDisk], ...] = (PowerCut, PowerCutOfAll, DiskHangs, DiskReadOnly)
    of_calls: tuple[type[_OfCalls], ...] = (DiskFull, WriteFails, SyncFails, SlowSyncs)
    return [*(one(places) for one in of_disk), *(one(controlled) for one in of_calls), NoMoreFiles()]
