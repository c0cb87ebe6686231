"""What a start waits for before it calls a cluster ready."""

import os
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from sparklog.model.errors import SparklogError
from sparklog_runtime.driver_servers.elected_controller import ElectedController
from sparklog_runtime.start.readiness import (
    await_election,
    await_remnants,
    await_zookeeper,
    holds_office,
)
from sparklog_runtime.start.start_patience import Patience, StartInterrupted
from sparklog_runtime.stop.child_processes import ROOT_VARIABLE


@pytest.fixture
def listening_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return port


def ended_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_dead_predecessor_does_not_hold_office_though_its_port_is_another_s_now(listening_port):
    dead = ElectedController(pid=ended_pid(), host="127.0.0.1", port=listening_port, application="a")
    assert not holds_office(dead, "127.0.0.1", "a")
    assert holds_office(dead, "127.0.0.1", "another")
    assert holds_office(dead, "192.0.2.1", "a")


def test_a_controller_that_takes_no_connections_does_not_hold_office(closed_port):
    elected = ElectedController(pid=os.getpid(), host="127.0.0.1", port=closed_port, application="a")
    assert not holds_office(elected, "127.0.0.1", "b")


def test_a_start_fails_with_the_reason_for_which_its_controller_cannot_take_charge(tmp_path):
    broken = SimpleNamespace(is_active=False, elected=lambda: None, failure="node /x is not JSON")
    with pytest.raises(SparklogError, match="cannot take charge of the cluster: node /x is not JSON"):
        await_election(broken, "127.0.0.1", "a", 1.0, Patience(threading.Event(), lambda text: None))


def test_a_zookeeper_that_never_comes_is_named(closed_port):
    patience = Patience(threading.Event(), lambda text: None)
    with pytest.raises(SparklogError, match=rf"no ZooKeeper answers at 127.0.0.1:{closed_port} for 0.1 s"):
        await_zookeeper(f"127.0.0.1:{closed_port}", 0.1, patience)


def test_a_stop_ends_the_wait(closed_port):
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(StartInterrupted):
        await_zookeeper(f"127.0.0.1:{closed_port}", 60, Patience(stopping, lambda text: None))


def test_remnants_of_a_killed_run_are_waited_for_and_killed_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("sparklog_runtime.start.readiness.REMNANTS_GRACE_S", 0.2)
    remnant = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"],
        env={**os.environ, ROOT_VARIABLE: os.path.realpath(tmp_path)},
        stdout=subprocess.PIPE,
    )
    assert remnant.stdout is not None
    remnant.stdout.readline()
    await_remnants(tmp_path, Patience(threading.Event(), lambda text: None))
    assert remnant.wait(5) == -9
    remnant.stdout.close()
