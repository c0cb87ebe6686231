"""The supervisor with real broker processes, launched without Spark."""

import dataclasses
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sparklog.model.errors import SparklogError, UnsafeStartError
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.broker_process.control_channel import ControlConnection
from sparklog_runtime.broker_process.control_handshake import join
from sparklog_runtime.stop.child_processes import is_alive
from sparklog_runtime.supervision import start_history
from sparklog_runtime.supervision.id_assignment import FixedIds
from sparklog_runtime.supervision.supervisor import Supervisor, SupervisorCallbacks
from sparklog_runtime.supervision.tcp_ports import PortReservation

PROGRAM = Path(__file__).with_name("fake_broker_process.py")


class PlainProcesses:
    """Launches broker tasks as children of the test instead of Spark tasks."""

    def __init__(self) -> None:
        self.children: dict[int, subprocess.Popen[str]] = {}
        self.outcomes: queue.Queue[tuple[int, str]] = queue.Queue()
        self.launches = 0

    def run(self, plan: BrokerPlan) -> None:
        fields = {
            field.name: getattr(plan, field.name)
            for field in dataclasses.fields(plan)
            if field.name != "make_broker"
        }
        self.launches += 1
        child = subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(fields)], stdout=subprocess.PIPE, text=True
        )
        self.children[plan.slot] = child
        output, _ = child.communicate()
        self.outcomes.put((child.returncode, output.strip()))
        if child.returncode != 0:
            raise RuntimeError(f"task ended with {child.returncode}")

    def cancel(self, slot: int) -> None:
        self.children[slot].kill()


class NoExecutors:
    """Jobs that wait for an executor until they are cancelled."""

    def __init__(self) -> None:
        self.submitted = threading.Event()
        self.cancelled = threading.Event()

    def run(self, plan: BrokerPlan) -> None:
        self.submitted.set()
        assert self.cancelled.wait(60)

    def cancel(self, slot: int) -> None:
        self.cancelled.set()


class Rig:
    """A supervisor with its callbacks recorded."""

    def __init__(self, root: Path, brokers: int, **settings: str) -> None:
        self.deaths: queue.Queue[tuple[int, int]] = queue.Queue()
        self.changes = threading.Semaphore(0)
        self.notices: queue.Queue[str] = queue.Queue()
        self.registered = threading.Event()
        """What ZooKeeper says while a broker cannot be reached."""
        self.launcher = PlainProcesses()
        self.reserved = PortReservation()
        self.ports = [self.reserved.reserve("127.0.0.1", 0) for _ in range(brokers)]
        self.supervisor = Supervisor(
            ids=FixedIds(tuple(range(1, brokers + 1))),
            ports_of=lambda broker_id: {"PLAINTEXT": self.ports[broker_id - 1]},
            callbacks=SupervisorCallbacks(
                broker_died=lambda broker_id, epoch, cause: self.deaths.put((broker_id, epoch)),
                on_change=self.changes.release,
                is_registered=lambda broker_id, epoch: self.registered.is_set(),
                on_notice=self.notices.put,
            ),
        )
        self.control_port = self.supervisor.listen("127.0.0.1")
        self.root = root
        plan = BrokerPlan(
            slot=0,
            supervisor_host="127.0.0.1",
            supervisor_port=self.control_port,
            token=self.supervisor.token,
            zookeeper="",
            host="127.0.0.1",
            log_dir_patterns=(f"{root}/broker-{{id}}/0",),
            log_file_pattern=f"{root}/logs/broker-{{id}}.log",
            settings=settings,
        )
        self.plans = [dataclasses.replace(plan, slot=slot) for slot in range(brokers)]

    def launch(self) -> None:
        self.supervisor.launch(self.plans, self.launcher)

    def pid(self, broker_id: int) -> int:
        return next(p.pid for p in self.supervisor.processes() if p.broker_id == broker_id)

    def wait_pid_other_than(self, pid: int, broker_id: int) -> int:
        while (now := self.pid(broker_id)) == pid:
            assert self.changes.acquire(timeout=60)
        return now


@pytest.fixture
def rig(tmp_path):
    rigs: list[Rig] = []

    def make(brokers: int = 1, **settings: str) -> Rig:
        rigs.append(Rig(tmp_path, brokers, **settings))
        return rigs[-1]

    yield make
    for made in rigs:
        made.supervisor.stop(5.0)
        made.reserved.release()


def test_brokers_are_launched_and_known_by_pid_port_and_epoch(rig):
    made = rig(2)
    made.launch()
    assert made.supervisor.wait_registered(20)
    first, second = made.supervisor.processes()
    assert (first.broker_id, second.broker_id) == (1, 2)
    assert [first.port, second.port] == made.ports
    assert first.epoch == first.pid != second.pid
    assert first.log_dirs == (f"{made.root}/broker-1/0",)
    assert first.metrics_port == 9404
    socket.create_connection(("127.0.0.1", first.port), 5).close()


def test_the_broker_of_a_decommissioned_executor_stops_in_order_and_is_launched_again(rig):
    made = rig()
    made.launch()
    assert made.supervisor.wait_registered(20)
    pid, (job,) = made.pid(1), made.supervisor.jobs()
    made.supervisor.leave_executor(job)
    assert made.notices.get(timeout=10) == "broker 1 stops: its executor is decommissioned"
    why = "stopped (its executor is decommissioned); it is launched again"
    assert made.notices.get(timeout=20) == f"broker 1 (process {pid}) {why}"
    made.wait_pid_other_than(pid, 1)
    made.supervisor.leave_executor(job)  # it is another job now
    assert made.supervisor.wait_registered(20)
    assert (made.root / "broker-1/0/stopped").read_text() == str(pid)
    assert made.deaths.empty()


def test_a_killed_broker_is_reported_and_launched_anew(rig):
    made = rig()
    made.launch()
    assert made.supervisor.wait_registered(20)
    old = made.pid(1)
    os.kill(old, signal.SIGKILL)
    assert made.deaths.get(timeout=60) == (1, old)
    new = made.wait_pid_other_than(old, 1)
    assert new != old
    assert made.supervisor.wait_registered(20)
    told = made.notices.get(timeout=5)
    assert told in [
        f"broker 1 (process {old}) {how}; it is launched again"
        for how in ("was killed by SIGKILL", "has died")  # kernels before 6.15 do not tell the signal
    ]
    assert made.notices.get(timeout=5).startswith(f"broker 1 is back as process {new} after ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_a_broker_tidily_and_another_takes_its_place(rig, number):
    made = rig()
    made.launch()
    assert made.supervisor.wait_registered(20)
    old = made.pid(1)
    os.kill(old, number)
    made.wait_pid_other_than(old, 1)
    assert (made.root / "broker-1/0/stopped").read_text() == str(old)
    assert made.deaths.empty()
    name = signal.Signals(number).name
    assert made.notices.get(timeout=5) == f"broker 1 (process {old}) stopped ({name}); it is launched again"


def test_a_stop_lets_brokers_end_by_themselves_and_leaves_no_process(rig):
    made = rig(2)
    made.launch()
    assert made.supervisor.wait_registered(20)
    pids = [made.pid(1), made.pid(2)]
    assert made.supervisor.stop(20) is True
    assert not any(is_alive(pid) for pid in pids)
    assert (made.root / "broker-2/0/stopped").exists()
    assert made.launcher.outcomes.get(timeout=60) in [(0, f"broker {n} stopped: stop") for n in (1, 2)]


def test_a_broker_that_does_not_stop_is_cancelled(rig):
    made = rig(behaviour="hangs")
    made.launch()
    assert made.supervisor.wait_registered(20)
    pid = made.pid(1)
    assert made.supervisor.stop(0.3) is False
    assert not is_alive(pid)


def test_a_job_that_waits_for_an_executor_does_not_hold_up_a_stop(rig):
    made, jobs = rig(), NoExecutors()
    made.supervisor.launch(made.plans, jobs)
    assert jobs.submitted.wait(60)
    assert made.supervisor.stop(timeout_s=10)
    assert jobs.cancelled.is_set()


def test_a_process_with_threads_left_behind_exits_instead_of_returning(rig):
    made = rig(behaviour="leaves a thread")
    made.launch()
    assert made.supervisor.wait_registered(20)
    made.supervisor.stop(20)
    assert made.launcher.outcomes.get(timeout=60) == (0, "")


def test_a_broker_that_stops_by_itself_is_launched_anew(rig):
    made = rig(behaviour="fails later")
    made.launch()
    while made.launcher.launches < 2:
        assert made.changes.acquire(timeout=60)
    assert "its disk broke" in (made.root / "logs/broker-1.log").read_text()


def test_a_broker_whose_session_expired_starts_again_in_its_process_under_its_new_epoch(rig):
    made = rig(behaviour="loses its session once")
    made.launch()
    assert made.supervisor.wait_registered(20)
    while made.supervisor.processes()[0].epoch != made.pid(1) + 1:
        assert made.changes.acquire(timeout=60)
    assert made.launcher.launches == 1
    assert made.deaths.empty()
    assert (
        "starts again in this process: its session expired" in (made.root / "logs/broker-1.log").read_text()
    )
    assert made.supervisor.stop(20) is True


def test_a_setting_that_cannot_work_ends_the_wait_at_once(rig):
    made = rig(behaviour="misconfigured")
    made.launch()
    assert not made.supervisor.wait_registered(20)
    failure = made.supervisor.failed()
    assert (type(failure), str(failure)) == (
        SparklogError,
        "behaviour=misconfigured: must be something else",
    )
    assert made.launcher.launches == 1


def test_a_start_that_a_broker_refuses_for_safety_is_told_apart(rig):
    made = rig(behaviour="unsafe")
    made.launch()
    assert not made.supervisor.wait_registered(20)
    failure = made.supervisor.failed()
    assert (type(failure), str(failure)) == (
        UnsafeStartError,
        "behaviour=unsafe: its certificate has expired",
    )
    assert made.launcher.launches == 1


def test_what_may_pass_is_tried_three_times(rig):
    made = rig(behaviour="locked")
    made.launch()
    assert not made.supervisor.wait_registered(20)
    assert str(made.supervisor.failed()) == "the directory is locked by process 1"
    assert made.launcher.launches == 3


def test_a_broker_that_cannot_even_say_hello_reports_why_once(rig):
    made = rig()
    in_the_way = made.root / "broker-1/0"
    in_the_way.parent.mkdir()
    in_the_way.write_text("")
    made.launch()
    assert not made.supervisor.wait_registered(60)
    reason = f"{in_the_way} is no directory, and log.dirs needs one there: move it away"
    assert str(made.supervisor.failed()) == reason
    assert made.launcher.launches == 3
    unknown = "the broker of slot 0, whose id is not known yet,"
    assert made.notices.get(timeout=5) == f"{unknown} cannot run: {reason}"
    assert made.notices.empty()


def test_a_broker_that_ends_again_and_again_is_a_crash_loop_with_its_reason(rig, monkeypatch):
    monkeypatch.setattr(start_history, "PAUSE_MIN_S", 0.001)
    made = rig(behaviour="fails later")
    made.launch()
    notice = ""
    while "starts in a row" not in notice:
        notice = made.notices.get(timeout=60)
    assert notice == (
        "broker 1: 5 starts in a row did not serve for 20 s (each time: broker: its disk broke); "
        "it is started again, after 5 minutes at most"
    )


def test_the_reason_of_an_end_counts_also_if_it_is_read_after_the_job_has_ended(rig, monkeypatch):
    monkeypatch.setattr(start_history, "PAUSE_MIN_S", 0.001)
    made = rig(behaviour="fails later")
    read = made.supervisor._on_message

    def read_late(slot, connection, message):
        if message["type"] == "bye":
            with made.supervisor._changed:
                made.supervisor._changed.wait_for(lambda: not slot.machine.job_runs, 0.3)
        read(slot, connection, message)

    monkeypatch.setattr(made.supervisor, "_on_message", read_late)
    made.launch()
    notice = ""
    while "starts in a row" not in notice:
        notice = made.notices.get(timeout=60)
    assert "(each time: broker: its disk broke)" in notice


def test_a_stop_while_brokers_start_leaves_no_process(rig):
    made = rig(2)
    made.launch()
    while len(made.launcher.children) < 2:
        time.sleep(0.001)
    assert made.supervisor.stop(20) is True
    assert all(child.poll() is not None for child in made.launcher.children.values())


@pytest.mark.parametrize(
    "line",
    [
        {"type": "hello", "token": "guess", "slot": 0, "pid": 1, "found": []},
        {"type": "registered"},
        {"type": "proof", "nonce": "00" * 32, "mac": "00" * 32},
    ],
)
def test_a_stranger_gets_a_challenge_and_nothing_else(rig, line):
    made = rig()
    made.supervisor.launch([], made.launcher)
    stranger = ControlConnection.open("127.0.0.1", made.control_port, 5)
    stranger.send(line)
    assert stranger.receive()["type"] == "challenge"
    assert stranger.receive() is None
    stranger.close()
    assert made.supervisor.processes() == []


def test_a_broker_taken_for_dead_when_its_connection_broke_is_replaced_tidily(rig):
    made = rig()
    made.launch()
    assert made.supervisor.wait_registered(20)
    pid = made.pid(1)
    for connection in made.supervisor.connections():
        connection.close()
    assert made.deaths.get(timeout=60) == (1, pid)
    made.wait_pid_other_than(pid, 1)
    assert (made.root / "broker-1/0/stopped").read_text() == str(pid)
    assert made.supervisor.wait_registered(20)
    assert made.deaths.empty()


class NoJobs:
    """Launches nothing: the test plays the broker's process itself."""

    def __init__(self) -> None:
        self.is_over = threading.Event()

    def run(self, plan: BrokerPlan) -> None:
        self.is_over.wait()

    def cancel(self, slot: int) -> None:
        self.is_over.set()


def test_how_far_a_broker_s_recovery_is_reaches_the_people_who_wait_for_the_start(rig):
    made = rig()
    jobs = NoJobs()
    made.supervisor.launch(made.plans, jobs)
    broker = ControlConnection.open("127.0.0.1", made.control_port, 5)
    join(broker, made.supervisor.token)
    broker.send({"type": "hello", "slot": 0, "pid": os.getpid(), "found": []})
    assert broker.receive()["type"] == "welcome"
    broker.send({"type": "recovering", "text": "recovering 3 of 120 logs, 1.2 of 8.0 GB in /data"})
    assert made.notices.get(timeout=60) == "broker 1: recovering 3 of 120 logs, 1.2 of 8.0 GB in /data"
    broker.send({"type": "bye", "clean": True})
    broker.close()
    jobs.is_over.set()
