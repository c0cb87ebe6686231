"""`python -m crash_points.real_power_cuts`: crash points on an ext4 that really loses power.

Needs root. What the file system kept must be among the states that ``disk_states`` allows, and recovery must
keep every promise. Status 3 where the machine does not allow it.
"""

import argparse
import errno
import logging
import os
import sys
import tempfile
from pathlib import Path

from chaos.machines import loop_disk
from chaos.machines.loop_disk import LoopDisk
from crash_points.disk_states import Machine, Tree, read_tree
from crash_points.explore import AFTER_CUT, Effort, Explorer, Recording, Report
from crash_points.judge import judge
from crash_points.scenarios import SCENARIOS, Scenario
from crash_points.tracer import CannotTrace


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m crash_points.real_power_cuts")
    parser.add_argument("--every", type=int, default=7, metavar="N", help="at every N-th point")
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--only", action="append", choices=names, metavar="SCENARIO", help=", ".join(names))
    arguments = parser.parse_args()
    if arguments.every < 1:
        parser.error(f"--every is {arguments.every}, less than 1")
    logging.getLogger("sparklog").setLevel(logging.CRITICAL)
    if (why := loop_disk.probe()) is not None:
        print(f"NOT RUN: {why}")
        return 3
    findings: list[str] = []
    cuts = lossy = renewals = 0
    explorer = Explorer(Report(), Effort())
    with tempfile.TemporaryDirectory(prefix="crash-points-") as folder:
        disk = LoopDisk(Path(folder) / "image", Path(folder) / "disk", mebibytes=64)
        disk.make()
        try:
            for scenario in SCENARIOS:
                if arguments.only and scenario.name not in arguments.only:
                    continue
                recording = explorer.record(scenario)
                for number in range(0, len(recording.points) - 1, arguments.every):
                    try:
                        has_lost, troubles = cut(disk, explorer, scenario, recording, number, cuts)
                    except OSError as error:
                        if error.errno != errno.EIO:
                            raise
                        # Somebody's new mount namespace has a copy of the mount, so that it did not end.
                        print(f"NOT RUN: {scenario.name}, call {number}: {error}")
                        disk.remove()
                        renewals += 1
                        disk = LoopDisk(
                            Path(folder) / f"image-{renewals}",
                            Path(folder) / f"disk-{renewals}",
                            mebibytes=64,
                        )
                        disk.make()
                        continue
                    cuts += 1
                    lossy += has_lost
                    findings += troubles
        except CannotTrace as reason:
            print(f"NOT RUN: {reason}")
            return 3
        finally:
            explorer.close()
            disk.remove()
    print(f"{cuts} power cuts of ext4, of which {lossy} lost something; {len(findings)} findings")
    print("\n".join(finding[:1_000] for finding in findings[:40]))
    return 1 if findings or not lossy else 0


def cut(
    disk: LoopDisk, explorer: Explorer, scenario: Scenario, recording: Recording, number: int, nth: int
) -> tuple[bool, list[str]]:
    """Whether a power cut at that point lost anything, and what is wrong with what it left."""
    root = disk.point.resolve() / f"run-{nth:06d}"
    root.mkdir()
    done = explorer.run_on(root, scenario, recording, number, on_begin=os.sync, on_end=disk.cut_power)
    disk.restart()
    machine = Machine.of(recording.base)
    for change in done:
        machine.apply(change)
    found = read_tree(root)
    point = recording.points[number]
    where = f"{scenario.name}, real power cut before call {number} ({point.change})"
    troubles = (
        []
        if allows(machine, found)
        else [f"ext4 left what is not allowed for: {differences(found, machine)}"]
    )
    troubles += judge(root, point.promises, AFTER_CUT, power_cut=True)
    has_lost = {**found, ".lock": b""} != {**machine.tree(), ".lock": b""}
    return has_lost, [f"{where}: {trouble}" for trouble in troubles]


def allows(machine: Machine, found: Tree) -> bool:
    """The lock's content, a process id, is another one in every run."""
    lock = {".lock": machine.tree()[".lock"]} if found.get(".lock") and ".lock" in machine.tree() else {}
    return machine.allows({**found, **lock})


def differences(found: Tree, machine: Machine) -> list[str]:
    seen = machine.tree()
    return [
        f"{path}: {len(found.get(path) or b'') if path in found else 'gone'} bytes, a process saw "
        f"{len(seen.get(path) or b'') if path in seen else 'nothing'}"
        for path in sorted({*found, *seen})
        if found.get(path, b"?") != seen.get(path, b"?")
    ]


if __name__ == "__main__":
    sys.exit(main())
