"""A connection that times out is no death: nothing is launched while ZooKeeper has the registration."""

import errno
import os
import signal
import threading

import pytest

from sparklog.model.zookeeper import ConnectionLost
from sparklog_runtime.broker_process.control_channel import ControlConnection
from sparklog_runtime.supervision import network_cuts
from tests.runtime.supervision.test_supervisor import rig
from tests.waiting import until

__all__ = ["rig"]


@pytest.fixture
def cut(monkeypatch):
    """Ends the connection of a supervisor's only broker as keepalive does where the other host is gone."""
    monkeypatch.setattr(network_cuts, "LOOK_INTERVAL_S", 0.01)
    broken = threading.Event()
    receive = ControlConnection._receive_some

    def receive_or_time_out(connection, deadline):
        received = receive(connection, deadline)
        if broken.is_set() and not received:
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
        return received

    monkeypatch.setattr(ControlConnection, "_receive_some", receive_or_time_out)

    def end(supervisor):
        """The process stands still meanwhile: it cannot be reached over another connection either."""
        (process,) = supervisor.processes()
        os.kill(process.pid, signal.SIGSTOP)
        (connection,) = supervisor.connections()
        broken.set()
        connection._stream.shutdown()

    end.broken = broken
    return end


def serving(made):
    made.launch()
    assert made.supervisor.wait_registered(20)
    return made.pid(1)


def test_a_cut_is_no_death_and_nothing_is_launched_while_the_registration_lasts(rig, cut):
    made = rig()
    made.registered.set()
    pid = serving(made)
    cut(made.supervisor)
    assert made.notices.get(timeout=10) == (
        f"broker 1 (process {pid}) cannot be reached (Connection timed out): none is launched in its place "
        "before ZooKeeper has ended its registration"
    )
    os.kill(pid, signal.SIGKILL)
    made.launcher.outcomes.get(timeout=20)  # its job has ended
    assert made.launcher.launches == 1
    made.registered.clear()
    assert made.notices.get(timeout=10) == (
        f"broker 1 (process {pid}) stopped (the driver does not reach its host, and ZooKeeper has ended its "
        "registration); it is launched again"
    )
    made.wait_pid_other_than(pid, 1)
    assert made.deaths.empty()


def test_while_zookeeper_is_away_the_registration_may_last(rig, cut):
    asked = threading.Semaphore(0)

    def lose(broker_id, epoch):
        asked.release()
        raise ConnectionLost("ZooKeeper is away")

    made = rig()
    pid = serving(made)
    made.supervisor._cuts._is_registered = lose
    cut(made.supervisor)
    for _ in range(3):
        assert asked.acquire(timeout=10)
    os.kill(pid, signal.SIGKILL)
    made.launcher.outcomes.get(timeout=20)
    assert made.launcher.launches == 1


def test_a_process_that_is_reached_again_goes_on(rig, cut):
    made = rig()
    made.registered.set()
    pid = serving(made)
    cut(made.supervisor)
    made.notices.get(timeout=10)
    cut.broken.clear()
    os.kill(pid, signal.SIGCONT)
    until(lambda: made.supervisor.connections() and made.supervisor.wait_registered(1), "its return", 20)
    assert made.pid(1) == pid
    assert made.launcher.launches == 1
    assert made.deaths.empty()
