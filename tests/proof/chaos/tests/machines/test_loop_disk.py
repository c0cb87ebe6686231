"""The faults of a machine's disk bite, told without sparklog: plain files, plain system calls."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos.faults.signals import empty
from chaos.machines import loop_disk, machine
from chaos.machines.loop_disk import LoopDisk, Unsynced
from chaos.machines.machine import Machine
from chaos.machines.namespaces import Network
from chaos.machines.shim import Controls, compile_shim

pytestmark = pytest.mark.chaos


@pytest.fixture(autouse=True)
def _allowed():
    if (why := loop_disk.probe()) is not None:
        pytest.skip(f"not run: {why}")


@pytest.fixture
def disk(tmp_path):
    made = LoopDisk(tmp_path / "image", tmp_path / "disk", mebibytes=32)
    made.make()
    yield made
    made.remove()


def write(path, content, *, sync):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, content)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_names(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def test_a_power_cut_keeps_what_was_synced_and_nothing_else(disk):
    write(disk.seen / "synced", b"kept", sync=True)
    sync_names(disk.seen)
    write(disk.seen / "unsynced", b"lost", sync=False)
    with (disk.seen / "synced").open("ab") as file:
        file.write(b" and lost")
    os.rename(disk.seen / "synced", disk.seen / "renamed")
    disk.cut_power()
    disk.restart()
    assert sorted(path.name for path in disk.seen.iterdir()) == ["lost+found", "synced"]
    assert (disk.seen / "synced").read_bytes() == b"kept"


@pytest.mark.parametrize(
    ("unsynced", "found"),
    [
        (Unsynced.LOST, {"old": b"synced"}),
        (Unsynced.NAMED, {"new": b"synced" + bytes(9), "young": b""}),
        (Unsynced.KEPT, {"new": b"synced and more", "young": b"bytes"}),
    ],
)
def test_what_was_not_synced_is_lost_or_there_by_name_only_or_kept(disk, unsynced, found):
    write(disk.seen / "old", b"synced", sync=True)
    sync_names(disk.seen)
    with (disk.seen / "old").open("ab") as file:
        file.write(b" and more")
    write(disk.seen / "young", b"bytes", sync=False)
    os.rename(disk.seen / "old", disk.seen / "new")
    disk.cut_power(unsynced)
    disk.restart()
    assert {path.name: path.read_bytes() for path in disk.seen.iterdir() if path.is_file()} == found


def test_without_a_power_cut_a_restart_keeps_everything(disk):
    write(disk.seen / "unsynced", b"kept", sync=False)
    disk.restart()
    assert (disk.seen / "unsynced").read_bytes() == b"kept"


def test_after_a_power_cut_every_write_fails(disk):
    descriptor = os.open(disk.seen / "file", os.O_WRONLY | os.O_CREAT)
    disk.cut_power()
    with pytest.raises(OSError, match="Input/output error"):
        os.write(descriptor, b"x")
    os.close(descriptor)


def test_a_full_disk_takes_not_one_block_until_it_is_freed(disk):
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        write(disk.seen / "file", bytes(8192), sync=True)
    disk.free()
    write(disk.seen / "file", bytes(8192), sync=True)


def test_a_frozen_disk_keeps_a_write_waiting_until_it_thaws(disk):
    disk.freeze()
    written = threading.Event()

    def run():
        write(disk.seen / "file", b"x", sync=True)
        written.set()

    writer = threading.Thread(target=run)
    writer.start()
    assert not written.wait(0.5)
    disk.thaw()
    assert written.wait(10)
    writer.join()


def test_no_disk_is_frozen_and_filled_at_once_or_the_faults_would_wait_for_each_other(disk):
    disk.freeze()
    with pytest.raises(BlockingIOError, match="frozen"):
        disk.fill()
    disk.thaw()
    disk.fill()
    with pytest.raises(BlockingIOError, match="filled"):
        disk.freeze()
    disk.free()
    disk.freeze()
    disk.thaw()


def test_a_disk_that_breaks_down_is_read_only_until_it_is_repaired(disk):
    write(disk.seen / "file", b"x", sync=True)
    disk.break_down()
    with pytest.raises(OSError, match="Read-only file system"):
        write(disk.seen / "another", b"x", sync=True)
    assert (disk.seen / "file").read_bytes() == b"x"
    disk.repair()
    write(disk.seen / "another", b"x", sync=True)


def test_unsynced_data_of_a_broken_disk_is_gone_after_its_repair_in_the_same_boot(disk):
    write(disk.seen / "file", b"synced", sync=True)
    sync_names(disk.seen)
    with (disk.seen / "file").open("ab", buffering=0) as file:
        file.write(b" and not")
        disk.break_down()
    assert (disk.seen / "file").read_bytes() == b"synced and not", "it can be read"
    disk.repair()
    assert (disk.seen / "file").read_bytes() == b"synced"


@pytest.fixture
def two_machines(tmp_path):
    if machine.probe() is not None:
        pytest.skip(f"not run: {machine.probe()}")
    library = compile_shim(tmp_path)
    with Network(["a", "b"]) as network:
        made = [
            Machine(
                node,
                network,
                tmp_path / node,
                tmp_path / "data" / node,
                Controls(library, tmp_path / f"{node}.controls"),
                mebibytes=32,
            )
            for node in ("a", "b")
        ]
        for each in made:
            each.set_up()
        yield made
        for each in made:
            each.tear_down()
    assert not any(str(tmp_path) in line for line in Path("/proc/self/mountinfo").read_text().splitlines())


def test_each_machine_sees_its_own_disk_only(two_machines):
    a, b = two_machines
    (a.disk.seen / "mine").write_text("a")
    assert a.call("ls", str(a.disk.point)).split() == ["lost+found", "mine"]
    assert b.call("ls", str(a.disk.point)).split() == []
    assert list(a.disk.point.iterdir()) == [], "nor do we, but by the machine's own view"


def test_a_machine_whose_disk_is_emptied_keeps_its_disk(two_machines):
    a, _ = two_machines
    (a.disk.seen / "log").mkdir()
    (a.disk.seen / "log" / "file").write_text("a")
    empty(a.disk.seen)
    assert a.call("ls", str(a.disk.point)).split() == ["lost+found"]
    assert a.disk.is_mounted()
    a.disk.cut_power()
    a.disk.restart()


def test_a_machine_has_boots_of_its_own(two_machines):
    a, b = two_machines
    ask = "from sparklog.zookeeper.boot import *; print(read_boot_id(), read_host_id())"
    program = [sys.executable, "-c", ask]
    ours = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    seen = [ours, a.call(*program).split(), b.call(*program).split()]
    assert len({boot for boot, _ in seen}) == 3
    a.draw_boot_id()
    again = a.call(*program).split()
    assert again[0] != seen[1][0]
    assert again[1] == seen[1][1], "it is the same machine"
    assert b.call(*program).split() == seen[2]


def test_a_process_of_a_machine_loses_its_writes_with_the_power(two_machines):
    a, _ = two_machines
    program = (
        "import os, sys, time; folder = sys.argv[1]; "
        "file = open(folder + '/file', 'wb', buffering=0); file.write(b'synced'); os.fsync(file.fileno()); "
        "os.fsync(os.open(folder, os.O_RDONLY)); file.write(b' and not'); print(flush=True); time.sleep(1000)"
    )
    with subprocess.Popen(
        a.command([sys.executable, "-c", program, str(a.disk.point)]), stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        assert (a.disk.seen / "file").read_bytes() == b"synced and not"
        a.disk.cut_power()
        process.kill()
    a.disk.restart()
    assert (a.disk.seen / "file").read_bytes() == b"synced"
