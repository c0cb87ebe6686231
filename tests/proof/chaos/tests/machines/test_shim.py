"""The clock and the disk of a process, changed while it runs."""

import os
import subprocess
import sys

import pytest

from chaos.machines import shim
from chaos.machines.shim import Controls, compile_shim

pytestmark = pytest.mark.chaos


@pytest.fixture(autouse=True)
def _allowed():
    if (why := shim.probe()) is not None:
        pytest.skip(f"not run: {why}")


EIO, ENOSPC = 5, 28


@pytest.fixture
def controls(tmp_path):
    made = Controls(compile_shim(tmp_path), tmp_path / "controls")
    yield made
    made.close()


class Asked:
    """A Python that has the shim, and evaluates what it is sent."""

    def __init__(self, controls):
        program = (
            "import os, sys, time, threading\n"
            "for line in sys.stdin:\n"
            "    try: answer = repr(eval(line))\n"
            "    except OSError as error: answer = repr(-error.errno)\n"
            "    print(answer, flush=True)\n"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **controls.environment},
        )

    def __call__(self, expression):
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()
        return eval(self._process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate()


@pytest.fixture
def asked(controls):
    with Asked(controls) as process:
        yield process


@pytest.mark.parametrize("offset_s", [3600, -86400, 0.25])
def test_the_wall_clock_jumps_and_the_monotonic_clock_does_not(controls, asked, offset_s):
    wall, monotonic = asked("(time.time(), time.monotonic())")
    controls.set_wall_clock(offset_s)
    later_wall, later_monotonic = asked("(time.time(), time.monotonic())")
    passed = later_monotonic - monotonic
    assert 0 <= passed < 60
    assert later_wall - wall == pytest.approx(offset_s + passed, abs=0.05)


def test_waits_last_as_long_as_ever_with_a_clock_that_was_moved(controls, asked):
    controls.set_wall_clock(-3600)
    program = "(lambda began: (time.sleep(0.05), threading.Event().wait(0.05), time.monotonic() - began)[-1])"
    assert 0.1 <= asked(f"{program}(time.monotonic())") < 60


def test_a_write_fails_once(controls, asked, tmp_path):
    controls.watch_device(tmp_path)
    path = str(tmp_path / "file")
    descriptor = asked(f"os.open({path!r}, os.O_RDWR | os.O_CREAT)")
    controls.fail_writes(EIO, 1)
    assert asked(f"os.pwrite({descriptor}, b'abc', 0)") == -EIO
    assert asked(f"os.pwrite({descriptor}, b'abc', 0)") == 3
    assert controls.failed() == (1, 0)


@pytest.mark.parametrize(
    "call", ["os.write({}, b'abc')", "os.pwrite({}, b'abc', 0)", "os.writev({}, [b'abc'])"]
)
def test_every_way_to_write_fails(controls, asked, tmp_path, call):
    controls.watch_device(tmp_path)
    descriptor = asked(f"os.open({str(tmp_path / 'file')!r}, os.O_RDWR | os.O_CREAT)")
    controls.fail_writes(ENOSPC, 1)
    assert asked(call.format(descriptor)) == -ENOSPC


@pytest.mark.parametrize("call", ["os.fsync({})", "os.fdatasync({})"])
def test_a_sync_fails_once_and_the_next_one_claims_success(controls, asked, tmp_path, call):
    controls.watch_device(tmp_path)
    descriptor = asked(f"os.open({str(tmp_path / 'file')!r}, os.O_RDWR | os.O_CREAT)")
    controls.fail_syncs(EIO, 1)
    assert asked(call.format(descriptor)) == -EIO
    assert asked(call.format(descriptor)) is None
    assert controls.failed() == (0, 1)


@pytest.mark.parametrize("call", ["os.write({}, {})", "os.pwrite({}, {}, 0)"])
def test_a_disk_with_little_room_takes_a_part_of_a_write_then_nothing_until_healed(
    controls, asked, tmp_path, call
):
    controls.watch_device(tmp_path)
    descriptor = asked(f"os.open({str(tmp_path / 'file')!r}, os.O_RDWR | os.O_CREAT)")
    controls.limit_room(5)
    answers = [asked(call.format(descriptor, data)) for data in (b"abc", b"defg", b"h")]
    assert answers == [3, 2, -ENOSPC]
    assert controls.failed() == (1, 0)
    assert controls.failed_path() == str(tmp_path / "file")
    controls.heal_disk()
    assert asked(call.format(descriptor, b"defg")) == 4


def test_parts_that_are_written_together_find_room_together_or_none(controls, asked, tmp_path):
    controls.watch_device(tmp_path)
    path = tmp_path / "file"
    descriptor = asked(f"os.open({str(path)!r}, os.O_RDWR | os.O_CREAT)")
    controls.limit_room(5)
    assert asked(f"os.writev({descriptor}, [b'abc', b'd'])") == 4
    assert asked(f"os.writev({descriptor}, [b'e', b'f'])") == -ENOSPC
    assert path.read_bytes() == b"abcd"


def test_a_sync_is_slow_until_the_disk_is_healed(controls, asked, tmp_path):
    controls.watch_device(tmp_path)
    descriptor = asked(f"os.open({str(tmp_path / 'file')!r}, os.O_RDWR | os.O_CREAT)")
    timed = f"(lambda began: (os.fsync({descriptor}), time.monotonic() - began)[1])(time.monotonic())"
    controls.slow_syncs(0.3)
    assert asked(timed) >= 0.3
    controls.heal_disk()
    assert asked(f"os.fsync({descriptor})") is None


def test_files_on_other_devices_are_spared(controls, asked, tmp_path):
    controls.watch_device(os.path.realpath("/proc"))
    descriptor = asked(f"os.open({str(tmp_path / 'file')!r}, os.O_RDWR | os.O_CREAT)")
    controls.fail_writes(EIO, 1)
    controls.fail_syncs(EIO, 1)
    assert asked(f"os.write({descriptor}, b'abc')") == 3
    assert asked(f"os.fsync({descriptor})") is None
    assert controls.failed() == (0, 0)
