"""The shim counts calls that change files, and ends a process before the one that was chosen."""

import os
import signal
import subprocess
import sys
import time

import pytest

from chaos.machines import shim
from chaos.machines.processes import is_alive
from chaos.machines.shim import CALLS, Controls, compile_shim

pytestmark = pytest.mark.skipif(shim.probe() is not None, reason=f"not run: {shim.probe()}")

STOPPED_S = 30.0

ACTS = {
    "os.write": ("write", "os.write(opened('old'), b'more')"),
    "os.pwrite": ("write", "os.pwrite(opened('old'), b'more', 3)"),
    "os.writev": ("write", "os.writev(opened('old'), [b'more', b'and more'])"),
    "os.pwritev": ("write", "os.pwritev(opened('old'), [b'more', b'and more'], 3)"),
    "file.write": ("write", "open('old', 'ab', 0).write(b'more')"),
    "os.open": ("create", "os.open('new', os.O_RDWR | os.O_CREAT)"),
    "open": ("create", "open('new', 'wb')"),
    "os.open below a descriptor": ("create", "os.open('new', os.O_RDWR | os.O_CREAT, dir_fd=folder())"),
    "os.rename": ("rename", "os.rename('old', 'new')"),
    "os.replace": ("rename", "os.replace('old', os.path.abspath('other'))"),
    "os.rename below descriptors": (
        "rename",
        "os.rename('old', 'new', src_dir_fd=folder(), dst_dir_fd=folder())",
    ),
    "os.remove": ("remove", "os.remove('old')"),
    "os.unlink below a descriptor": ("remove", "os.unlink('old', dir_fd=folder())"),
    "os.ftruncate": ("truncate", "os.ftruncate(opened('old'), 1)"),
    "os.truncate": ("truncate", "os.truncate('old', 1)"),
    "open that empties": ("truncate", "open('old', 'wb')"),
    "os.mkdir": ("make directory", "os.mkdir('young')"),
    "os.makedirs": ("make directory", "os.makedirs('young', exist_ok=True)"),
    "os.rmdir": ("remove directory", "os.rmdir('empty')"),
    "shutil.rmtree": ("remove directory", "shutil.rmtree('empty')"),
    "os.fsync": ("sync", "os.fsync(opened('old'))"),
    "os.fdatasync": ("sync", "os.fdatasync(opened('old'))"),
}
"""Of what CPython calls: its kind, and Python for it."""

IDLE = {
    "reading": "open('old', 'rb').read()",
    "opening to write": "os.open('old', os.O_RDWR | os.O_CREAT)",
    "a directory that is there": "os.makedirs('empty', exist_ok=True)",
    "removing what is not there": "os.path.lexists('gone') or shutil.rmtree('gone', ignore_errors=True)",
    "writing elsewhere": "os.write(2, b'')",
}

HEAD = """
import os, shutil, sys
os.chdir(sys.argv[1])
def opened(name): return os.open(name, os.O_RDWR)
def folder(): return os.open('.', os.O_RDONLY)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_shim(tmp_path_factory.mktemp("library"))


@pytest.fixture
def controls(tmp_path, library):
    made = Controls(library, tmp_path / "controls")
    watched = tmp_path / "watched"
    (watched / "empty").mkdir(parents=True)
    (watched / "old").write_bytes(b"12345678")
    (watched / "other").write_bytes(b"other")
    made.watch_folder(watched)
    yield made
    made.close()


def _start(controls, tmp_path, act, folder="watched"):
    command = [sys.executable, "-I", "-S", "-c", HEAD + act, str(tmp_path / folder)]
    return subprocess.Popen(command, env={**os.environ, **controls.environment})


def _tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("name", sorted(ACTS))
def test_the_process_ends_before_the_call_has_done_anything(controls, tmp_path, name):
    call, act = ACTS[name]
    before = _tree(tmp_path / "watched")
    controls.set_crash_point([call], 1)
    process = _start(controls, tmp_path, act)
    assert process.wait() == -signal.SIGKILL
    reached = controls.reached()
    assert (reached.pid, reached.call) == (process.pid, call)
    assert reached.path.startswith(str(tmp_path / "watched"))
    assert _tree(tmp_path / "watched") == before


@pytest.mark.parametrize("name", sorted(ACTS))
def test_a_call_is_counted_once_and_done(controls, tmp_path, name):
    call, act = ACTS[name]
    assert _start(controls, tmp_path, act).wait() == 0
    assert {kind: count for kind, count in controls.counts().items() if count} == {call: 1}
    assert controls.reached() is None


@pytest.mark.parametrize("name", sorted(IDLE))
def test_what_changes_nothing_is_not_counted(controls, tmp_path, name):
    controls.set_crash_point(CALLS, 1)
    assert _start(controls, tmp_path, IDLE[name]).wait() == 0
    assert not any(controls.counts().values())


def test_only_the_nth_call_of_the_chosen_kinds_ends_the_process(controls, tmp_path):
    controls.set_crash_point(["create", "make directory"], 3)
    act = "for n in range(9): os.mkdir(f'd{n}'); open(f'f{n}', 'w').write('x')"
    assert _start(controls, tmp_path, act).wait() == -signal.SIGKILL
    assert controls.reached().path == str(tmp_path / "watched" / "d1")
    assert {"d0", "f0"} <= _tree(tmp_path / "watched").keys()
    assert "d1" not in _tree(tmp_path / "watched")


def test_the_next_process_lives_unless_another_point_is_set(controls, tmp_path):
    controls.set_crash_point(["create"], 1)
    assert _start(controls, tmp_path, "open('new', 'w')").wait() == -signal.SIGKILL
    assert _start(controls, tmp_path, "open('new', 'w')").wait() == 0
    controls.set_crash_point(["create"], 1)
    assert controls.reached() is None
    assert _start(controls, tmp_path, "open('newer', 'w')").wait() == -signal.SIGKILL


def test_a_point_that_was_taken_back_ends_nobody(controls, tmp_path):
    controls.set_crash_point(CALLS, 1)
    controls.clear_crash_point()
    assert _start(controls, tmp_path, "open('new', 'w')").wait() == 0
    assert controls.reached() is None


def test_files_outside_of_the_folder_are_not_counted(controls, tmp_path):
    (tmp_path / "watched-too").mkdir()
    controls.set_crash_point(CALLS, 1)
    assert _start(controls, tmp_path, "open('new', 'w').write('x')", "watched-too").wait() == 0
    assert not any(controls.counts().values())


def test_a_torn_write_is_half_done(controls, tmp_path):
    controls.set_crash_point(["write"], 1, tears=True)
    assert _start(controls, tmp_path, "os.pwrite(opened('old'), b'abcd', 0)").wait() == -signal.SIGKILL
    assert (tmp_path / "watched" / "old").read_bytes() == b"ab345678"


def test_a_process_that_stops_at_the_point_never_does_the_call_with_any_thread(controls, tmp_path):
    act = """
import threading
def remove(n):
    open(f'f{n}', 'w').close()
    os.remove(f'f{n}')
threads = [threading.Thread(target=remove, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
"""
    controls.set_crash_point(["remove"], 4, is_stopped=True)
    process = _start(controls, tmp_path, act)
    deadline = time.monotonic() + STOPPED_S
    while (reached := controls.reached()) is None:
        assert time.monotonic() < deadline, "it comes to the fourth removal"
        time.sleep(0.01)
    assert reached.pid == process.pid
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert is_alive(process.pid)
    assert os.path.exists(reached.path)
    os.kill(process.pid, signal.SIGCONT)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert os.path.exists(reached.path)
