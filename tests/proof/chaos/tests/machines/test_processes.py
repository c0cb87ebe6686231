"""Processes of a run: kept alive, stopped, and found again by their mark."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from chaos.machines.processes import MARK, Kept, is_alive, kill_and_wait, mark_of, marked, parent_of, sweep

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def start_marked(environment):
    """A process whose mark can be read: for an instant a new one has an environment of nothing."""
    process = subprocess.Popen(SLEEP, env=environment)
    while process.pid not in marked():
        assert process.poll() is None
    return process


@pytest.fixture
def keep(tmp_path):
    started = []

    def start(command, **options):
        started.append(Kept("it", command, tmp_path, **options))
        return started[-1]

    yield start
    for kept in started:
        kept.stop(5)


def test_what_dies_is_started_again_and_somebody_hears_of_it(keep):
    told, again = [], threading.Event()

    def on_relaunch(text):
        told.append(text)
        again.set()

    kept = keep(SLEEP, on_relaunch=on_relaunch, pause_s=0.0)
    first = kept.pid
    kill_and_wait([first])
    assert again.wait(10)
    while kept.pid == first:
        again.wait(0.01)
    assert is_alive(kept.pid)
    assert told == ["it ended with status -9; it is started again"]


def test_a_stop_is_final_and_wakes_what_is_paused(keep):
    kept = keep(SLEEP)
    os.kill(kept.pid, signal.SIGSTOP)
    assert kept.stop(10)
    assert not kept.is_alive()


def test_what_is_let_go_is_not_started_again(keep):
    kept = keep(SLEEP, pause_s=0.0)
    kept.let_go()
    assert kept.is_alive()
    kill_and_wait([kept.pid])
    assert kept.relaunches == 0
    assert not kept.is_alive()


def test_what_does_not_listen_is_killed(keep):
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    kept = keep([sys.executable, "-c", deaf])
    while "up" not in kept.output():
        assert kept.is_alive()
    assert not kept.stop(0.2)
    assert not kept.is_alive()


def test_a_sweep_ends_what_a_run_has_started_and_what_that_has_started(tmp_path):
    nested = f"import subprocess, sys; subprocess.run({SLEEP!r})"
    environment = {**os.environ, MARK: mark_of(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", nested], env=environment)

    def of_this_run():
        return [pid for pid, mark in marked().items() if mark == mark_of(tmp_path)]

    while len(of_this_run()) < 2:
        assert parent.poll() is None
    (child,) = [pid for pid in of_this_run() if pid != parent.pid]
    assert parent_of(child) == parent.pid
    assert set(sweep(tmp_path)) >= {parent.pid}
    assert parent.wait(10) == -signal.SIGKILL
    assert not is_alive(child)


def test_a_sweep_of_dead_runs_leaves_living_runs_alone(tmp_path):
    environment = {**os.environ, MARK: mark_of(tmp_path)}
    running = start_marked(environment)
    try:
        assert running.pid not in sweep()
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()


def test_a_sweep_without_a_folder_ends_what_a_dead_run_has_left(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    left = start_marked({**os.environ, MARK: f"{gone.pid}:{tmp_path}"})
    assert left.pid in sweep()
    assert left.wait(10) == -signal.SIGKILL
