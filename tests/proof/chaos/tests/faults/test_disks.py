"""Faults of whole machines bite a plain program that writes and syncs: no sparklog, no Spark."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.faults.disks import cut_power, limit_files, restore_files
from chaos.machines import walls
from chaos.machines.walls import WalledPlaces

WRITER = """
import os, sys
folder = sys.argv[1]
file = os.open(folder + "/log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
os.fsync(os.open(folder, os.O_RDONLY))
for line in sys.stdin:
    os.write(file, b"%d " % int(line))
    if int(line) % 2:
        os.fsync(file)
    print(open("/proc/sys/kernel/random/boot_id").read().strip(), flush=True)
"""


@pytest.fixture
def places(tmp_path):
    if (why := walls.probe()) is not None:
        pytest.skip(f"not run: {why}")
    made = WalledPlaces(disk_mebibytes=32)
    try:
        made.set_up(tmp_path, [1, 2])
        yield made
    finally:
        made.tear_down()


class Writer:
    """Writes numbers; odd ones it syncs."""

    def __init__(self, places, tmp_path, broker_id):
        self.machine = places.machine(broker_id)
        self.log = places.log_dir(tmp_path, broker_id) / "log"
        program = [sys.executable, "-c", WRITER, str(self.machine.disk.point)]
        self._process = subprocess.Popen(
            places.command(broker_id, program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **places.environment(broker_id)},
        )

    def write(self, number):
        """The boot that the writer is in."""
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def ended(self):
        """How, once its input has ended."""
        self._process.communicate()
        return self._process.returncode


@pytest.mark.chaos
def test_a_power_cut_of_all_machines_leaves_each_what_it_had_synced_and_another_boot(places, tmp_path):
    writers = [Writer(places, tmp_path, broker_id) for broker_id in (1, 2)]
    boots = [[writer.write(number) for number in (1, 2)][-1] for writer in writers]
    assert len(set(boots)) == 2
    cut_power(list(places.machines().values()), 0.0, with_spark=False)
    assert [writer.ended() for writer in writers] == [-9, -9]
    assert [writer.log.read_text() for writer in writers] == ["1 ", "1 "]
    after = [Writer(places, tmp_path, broker_id) for broker_id in (1, 2)]
    assert not {writer.write(3) for writer in after} & set(boots)
    assert [writer.ended() for writer in after] == [0, 0]
    assert writers[0].log.read_text() == "1 3 "


@pytest.mark.chaos
def test_a_power_cut_of_one_machine_spares_the_other_and_what_uses_no_disk(places, tmp_path):
    writers = [Writer(places, tmp_path, broker_id) for broker_id in (1, 2)]
    for writer in writers:
        writer.write(1)
        writer.write(2)
    command = places.command(1, ["sh", "-c", "echo; exec cat"])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as spark:
        assert spark.stdout.readline() == b"\n", "it is there"
        cut_power([places.machine(1)], 0.0, with_spark=False)
        assert spark.communicate(b"alive", timeout=30) == (b"alive", None)
    assert writers[0].ended() == -9
    assert writers[1].write(3)
    assert writers[1].log.read_text() == "1 2 3 "
    assert writers[1].ended() == 0


@pytest.mark.chaos
def test_a_machine_that_dies_with_all_that_is_on_it_keeps_nothing_running(places, tmp_path):
    command = places.command(1, ["sh", "-c", "echo; exec cat"])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as spark:
        assert spark.stdout.readline() == b"\n", "it is there"
        cut_power([places.machine(1)], 0.0, with_spark=True)
        assert spark.wait(30) == -9
    assert places.machine(1).processes() == []


@pytest.mark.chaos
def test_a_failing_call_fails_on_the_machines_disk_after_a_power_cut_too(places, tmp_path):
    machine = places.machine(1)
    cut_power([machine], 0.0, with_spark=False)
    machine.controls.fail_syncs(errno.EIO, 1)
    writer = Writer(places, tmp_path, 1)
    assert writer.write(1) == ""
    assert writer.ended() == 1
    assert machine.controls.failed() == (0, 1)


def test_a_process_that_may_open_no_more_files_opens_none_until_it_may_again(tmp_path):
    program = (
        "import sys\nfor line in sys.stdin:\n  try: print(open(line.strip()).fileno() > 0, flush=True)\n"
        "  except OSError as error: print(error.errno, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def opens():
            process.stdin.write(f"{__file__}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        assert opens() == "True"
        limits = limit_files(process.pid, 0)
        assert opens() == str(errno.EMFILE)
        restore_files(*limits)
        assert opens() == "True"
        process.communicate()
    assert Path(__file__).exists()
