"""``python -m simulation.real_disks.power_cuts``: what ext4 loses, the simulated disk can lose.

The same random operations go to a simulated disk and to an ext4 that is shut down at a random point without
writing its journal. What it left must be a state that the simulated disk could have left. Several series of
operations share the file system, each in a directory of its own: what one of them syncs commits the journal
for all, so that names of the others are there and their bytes are not. The kernel is made to write bytes back
at random, too, as it does by itself after half a minute.

Needs root; status 3 where the machine does not allow it.
"""

import argparse
import ctypes
import errno
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos.machines import loop_disk
from chaos.machines.loop_disk import LoopDisk
from simulation.disks.disk import SimulatedDisk, Trouble
from simulation.real_disks.steps import Side, Step, random_step
from simulation.schedule import Process, Schedule
from sparklog.storage.disk import LocalDisk

SERIES = 6
STEPS_MAX = 60
LOOKS = ("read", "size", "exists", "is_directory", "list", "file.pread")
SYNCS = ("file.fsync", "sync_file", "sync_directory")
SYNCS_KEPT = 0.4
PAGE = 4_096
WRITE_BACK = 2
"""SYNC_FILE_RANGE_WRITE; with the waits before and after it."""
BEFORE_AND_AFTER = 1 | 4

Tree = dict[str, bytes | None]


class Cut(Exception):  # noqa: N818 (it states a fact)
    """The power goes in the middle of an operation."""


def begin_to_replace(path: str, data: bytes, *, sync: bool) -> None:
    """As far as ``LocalDisk.write_atomically`` gets if it dies before it replaces ``path``."""
    with open(path + ".tmp", "wb") as file:
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())


@dataclass
class Series:
    """One series of operations on both disks."""

    name: str
    dice: random.Random
    real: Side
    simulated: Side
    disk: SimulatedDisk
    done: list[Step] = field(default_factory=list)

    @classmethod
    def begin(cls, name: str, point: Path, dice: random.Random) -> "Series":
        """Its directory is there for good."""
        disk = SimulatedDisk()
        mounted = disk.mount(Process(Schedule(), name))
        mounted.make_directory("/data")
        disk.sync_all()
        root = point / name
        root.mkdir()
        return cls(name, dice, Side(LocalDisk(), str(root)), Side(mounted, "/data"), disk)

    def go_on(self) -> None:
        """One more operation."""
        while (step := self._step())[0] in LOOKS:
            pass
        self.done.append(step)
        told, seen = self.simulated.take(step), self.real.take(step)
        assert told == seen, f"{self.name}, {step}: the simulated disk said {told}, ext4 {seen}"

    def _step(self) -> Step:
        """Fewer syncs than the dice give: what is synced cannot be lost. More bytes: files have pages."""
        while True:
            step = random_step(self.dice)
            if step[0] == "file.append" and self.dice.random() < 0.2:
                return step[0], (step[1][0], self.dice.randbytes(self.dice.randrange(20_000)))
            if step[0] == "write_atomically":
                path, data, sync = step[1]
                return step[0], (path, data, sync and self.dice.random() < SYNCS_KEPT)
            if step[0] not in SYNCS or self.dice.random() < SYNCS_KEPT:
                return step

    def die_in_a_replacement(self) -> None:
        """The temporary file is there, and has not replaced the other one yet."""
        path, data, sync = (
            f"t-0/{self.dice.choice(('0.log', 'checkpoint'))}",
            b"new",
            self.dice.random() < 0.5,
        )
        if not self.simulated.disk.is_directory("/data/t-0"):
            return
        self.done.append(("begin to replace", (path, data, sync)))
        begin_to_replace(f"{self.real.root}/{path}", data, sync=sync)
        self.disk.trouble = Trouble(1, _fail, keeps=1.0, at="checkpoint")
        try:
            self.simulated.disk.write_atomically(f"/data/{path}", data, sync=sync)
        except Cut:
            return
        raise AssertionError("the simulated disk did not stop")

    def let_go(self) -> None:
        self.real.opened.clear()

    def difference(self, found: Tree) -> "Difference | None":
        """None if the simulated disk could have left that."""
        if self.disk.could_be_left({f"/data{path}": data for path, data in found.items()} | {"/data": None}):
            return None
        return Difference(self.name, self.done, self.seen(), found)

    def seen(self) -> Tree:
        """As a process saw it last."""
        return self.simulated.everything()


def _fail() -> None:
    raise Cut


@dataclass
class Difference:
    """What ext4 left and the simulated disk could not."""

    series: str
    done: list[Step]
    seen: Tree
    found: Tree

    def __str__(self) -> str:
        paths = sorted(
            path for path in {*self.seen, *self.found} if self.seen.get(path, 0) != self.found.get(path, 0)
        )
        return "\n".join(
            [
                f"{self.series}: ext4 left what the simulated disk cannot leave",
                *(f"    {_shortly(step)}" for step in self.done),
                *(
                    f"  {path}: seen {_told(self.seen, path)}, left {_told(self.found, path)}"
                    for path in paths
                ),
            ]
        )


def _shortly(step: Step) -> str:
    arguments = [f"{len(one)} bytes" if isinstance(one, bytes) else str(one) for one in step[1]]
    return f"{step[0]} {' '.join(arguments)}"


def _told(tree: Tree, path: str) -> str:
    if path not in tree:
        return "nothing"
    data = tree[path]
    return "a directory" if data is None else f"{len(data)} bytes {data[:12].hex()}"


@dataclass
class Tally:
    cuts: int = 0
    not_ended: int = 0
    series: int = 0
    lossy: int = 0
    losses: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def take(self, series: Series, found: Tree) -> None:
        self.series += 1
        seen = series.seen()
        self.lossy += seen != found
        self.losses.update(set(losses(seen, found)))
        if (difference := series.difference(found)) is not None:
            self.differences.append(difference)


def losses(seen: Tree, found: Tree) -> Iterator[str]:
    """Which kinds of loss a power cut brought."""
    for path in {*seen, *found}:
        before, after = seen.get(path, 0), found.get(path, 0)
        if before == after:
            continue
        if after == 0:
            yield "a directory is gone" if before is None else "a file is gone"
        elif before == 0:
            yield "a directory came back" if after is None else "a file came back"
        elif isinstance(before, bytes) and isinstance(after, bytes):
            if before.startswith(after):
                yield "a file is shorter" if after else "a file is empty"
            else:
                yield "a file is longer" if after.startswith(before) else "a file has other bytes"


def compare(seed: int, disk: LoopDisk, tally: Tally) -> None:
    """One power cut."""
    dice = random.Random(seed)
    all_series = [
        Series.begin(f"seed-{seed}-{number}", disk.seen, random.Random(f"{seed}/{number}"))
        for number in range(SERIES)
    ]
    os.sync()
    for _ in range(dice.randint(1, STEPS_MAX) * SERIES):
        series = dice.choice(all_series)
        series.go_on()
        if dice.random() < 0.1:
            write_back(Path(dice.choice(all_series).real.root), dice)
        if dice.random() < 0.03:
            commit(disk.seen)
    if dice.random() < 0.3:
        dice.choice(all_series).die_in_a_replacement()
    if dice.random() < 0.3:
        commit(disk.seen)
    disk.cut_power()
    for series in all_series:
        series.let_go()
    disk.restart()
    tally.cuts += 1
    for series in all_series:
        tally.take(series, series.real.everything())
        shutil.rmtree(series.real.root)


def write_back(root: Path, dice: random.Random) -> None:
    """The kernel writes some file's bytes, all or a page of them: no journal, no promise."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    if not files:
        return
    descriptor = os.open(dice.choice(files), os.O_RDWR)
    try:
        first, count = dice.choice(((0, 0), (dice.randrange(5) * PAGE, PAGE)))  # a count of 0 is all
        libc = ctypes.CDLL(None, use_errno=True)
        where = ctypes.c_int64(first), ctypes.c_int64(count)
        if libc.sync_file_range(descriptor, *where, WRITE_BACK | BEFORE_AND_AFTER) != 0:
            raise OSError(ctypes.get_errno(), "sync_file_range")
    finally:
        os.close(descriptor)


def commit(point: Path) -> None:
    """The journal is written, as it is every five seconds: names and sizes, bytes of its own file only."""
    descriptor = os.open(point / "another-file", os.O_RDWR | os.O_CREAT)
    try:
        os.write(descriptor, b"x")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def run(seeds: range, folder: Path) -> Tally:
    """A cut that does not end is not counted: somebody's new mount namespace has a copy of the mount."""
    tally = Tally()
    left = list(seeds)
    while left:
        disk = LoopDisk(folder / f"image-{len(left)}", folder / f"disk-{len(left)}", mebibytes=64)
        disk.make()
        try:
            while left:
                compare(left.pop(0), disk, tally)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            tally.not_ended += 1
        finally:
            disk.remove()
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.real_disks.power_cuts")
    parser.add_argument("--cuts", type=int, default=200, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    options = parser.parse_args()
    if (why := loop_disk.probe()) is not None:
        print(f"NOT RUN: {why}")
        return 3
    with tempfile.TemporaryDirectory(prefix="power-cuts-") as folder:
        tally = run(range(options.first, options.first + options.cuts), Path(folder))
    print(
        f"{tally.cuts} power cuts of ext4 upon {tally.series} series, of which {tally.lossy} lost something:"
    )
    print("\n".join(f"  {count:5} {what}" for what, count in tally.losses.most_common()))
    if tally.not_ended:
        print(f"NOT RUN: {tally.not_ended} cuts did not end, as somebody else held a copy of the mount")
    print(f"{len(tally.differences)} that the simulated disk could not have left")
    print("\n".join(str(one) for one in tally.differences[:10]))
    return 1 if tally.differences or not tally.lossy else 0


if __name__ == "__main__":
    sys.exit(main())
