"""Finding and ending the processes of a run."""

import os
import signal
import subprocess
import sys

import pytest

from sparklog_runtime.stop.child_processes import RUN_VARIABLE, is_alive, processes_of_run, sweep_run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
)


def _start(run: str, code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, RUN_VARIABLE: run},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def test_processes_of_a_run_are_found_by_its_name_and_no_others():
    with _start("run-a", "input()") as ours, _start("run-b", "input()") as other:
        assert processes_of_run("run-a") == [ours.pid]
        ours.kill()
        other.kill()


def test_a_process_that_ended_but_was_not_collected_is_not_alive():
    with _start("run-c", "pass") as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(process.pid)


def test_a_sweep_kills_what_does_not_hear():
    with _start("run-d", DEAF) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        assert sweep_run("run-d", grace_s=0.1) == [deaf.pid]
        assert deaf.wait() == -signal.SIGKILL


def test_a_sweep_asks_before_it_kills():
    with _start("run-e", "import time; time.sleep(60)") as process:
        assert sweep_run("run-e", grace_s=0.5) == []
        assert process.wait() == -signal.SIGTERM
