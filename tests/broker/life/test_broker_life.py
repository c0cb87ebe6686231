"""The order in which a broker starts and ends, with every step faked: the simulation runs the real ones."""

import errno
import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.disks.log_dirs import DirectoryFailed
from sparklog.broker.life import broker_life
from sparklog.broker.life.broker_life import BrokerLife
from sparklog.model.errors import SparklogError
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch, BrokerId
from sparklog.model.loops import Await, CallController, go_on
from sparklog.model.settings.config import BrokerConfig

END = ["stop chores", "stop loops", "stop listening", "close logs", "end session"]
START = [
    "connect",
    "open logs",
    "compose",
    "read quotas",
    "listen",
    "start loops",
    "register",
    "start chores",
]


class FakeBroker:
    """Ports and body of a life; ``steps`` has what happened, in order."""

    def __init__(self, monkeypatch) -> None:
        self.steps: list[str] = []
        self.meanwhile: dict[str, object] = {}
        """What happens within a step, by its name."""
        self.sessions: list = []
        self.zookeeper = SimpleNamespace(on_session=self.sessions.append)
        self.zookeeper_loops = SimpleNamespace(start=self.start_loop)
        self.begun: list = []
        self.entity_configs = SimpleNamespace(read_all=lambda: self.step("read quotas"), loop=None)
        self.host, self.host_id = SimpleNamespace(boot_id="boot"), "host"
        self.clean_epochs: list[int | None] = []
        self.close_error: DirectoryFailed | None = None
        self.dispatcher = SimpleNamespace(close=lambda: self.step("refuse requests"))
        self.replication = SimpleNamespace(
            broker_epoch=NO_BROKER_EPOCH,
            registered=self.registered,
            reports=SimpleNamespace(withdrawal=self.withdrawal),
        )
        self.parts = SimpleNamespace(chores=SimpleNamespace(close=self.close_logs))
        self.context = SimpleNamespace(
            producer_ids=SimpleNamespace(look_ahead=lambda epoch: None),
            roles=SimpleNamespace(stop_serving=lambda why: self.step("give up roles")),
        )
        monkeypatch.setattr(broker_life, "read_or_create_cluster_id", lambda zookeeper: "a-cluster")
        monkeypatch.setattr(broker_life, "open_directories", lambda *_: self.step("open logs") or self)
        monkeypatch.setattr(broker_life.BrokerBody, "compose", lambda *_: self.step("compose") or self)
        monkeypatch.setattr(broker_life, "register", lambda *_, **__: self.step("register") or BrokerEpoch(7))
        monkeypatch.setattr(
            broker_life, "report_suspect", lambda zookeeper, broker, uuid, epoch: self.step(f"report {uuid}")
        )
        self.life = BrokerLife(BrokerId(1), ["/data"], BrokerConfig.parse({}), self, threading.Lock())

    def start_loop(self, name, begin) -> None:
        if name != "entity-configs":
            self.begun.append(begin())

    def step(self, name: str) -> None:
        self.steps.append(name)
        if (happens := self.meanwhile.get(name)) is not None:
            happens()

    def registered(self, epoch, on_lost) -> None:
        self.replication.broker_epoch = epoch

    def withdrawal(self, uuid, on_reported):
        self.step(f"withdraw for {uuid}")
        on_reported()
        yield from ()

    def close_logs(self, clean_epoch) -> bool:
        self.clean_epochs.append(clean_epoch)
        self.step("close logs")
        if self.close_error is not None:
            raise self.close_error
        return clean_epoch is not None

    def close(self) -> None:
        self.step("close directories")

    def connect(self) -> None:
        self.step("connect")

    def body_ports(self, cluster_id) -> None:
        assert cluster_id == "a-cluster"

    rule_watch = None

    def read_rules(self) -> None:
        """There is no authorizer."""

    def listen(self, body):
        self.step("listen")
        return SimpleNamespace()

    def start_loops(self, body) -> None:
        self.step("start loops")

    def start_chores(self, body) -> None:
        self.step("start chores")

    def on_released(self) -> None:
        self.step("released")

    def stop_chores(self) -> None:
        self.step("stop chores")

    def stop_loops(self) -> None:
        self.step("stop loops")

    def stop_listening(self) -> None:
        self.step("stop listening")

    def end_session(self) -> None:
        self.step("end session")


@pytest.fixture
def broker(monkeypatch) -> FakeBroker:
    return FakeBroker(monkeypatch)


@pytest.fixture
def up(broker):
    """The loop of a broker that is up; what it has done so far is forgotten."""
    loop = broker.life.run(lambda: broker.step("is up"))
    assert isinstance(go_on(loop), Await)
    assert broker.steps == [*START, "is up"]
    broker.steps.clear()
    return loop


def test_a_clean_stop_asks_for_other_leaders_before_anything_ends(broker, up) -> None:
    broker.life.stop(clean=True)
    assert isinstance(go_on(up, True), CallController)
    assert broker.steps == []
    assert go_on(up, error=ConnectionError("no controller")) is None
    assert broker.steps == ["refuse requests", *END]
    assert broker.clean_epochs == [7]
    assert broker.life.has_stopped_cleanly


def test_another_stop_marks_no_directory_as_clean(broker, up) -> None:
    broker.life.stop(clean=False)
    broker.life.stop(clean=True)
    assert go_on(up, True) is None
    assert broker.clean_epochs == [None]
    assert not broker.life.has_stopped_cleanly


def test_a_broker_that_fails_while_it_stops_cleanly_marks_no_directory(broker, up) -> None:
    broker.life.stop(clean=True)
    go_on(up, True)
    broker.life.lose_session("expired")
    assert broker.steps == ["refuse requests"]
    assert go_on(up, error=ConnectionError("no controller")) is None
    assert broker.clean_epochs == [None]


def test_of_several_failures_the_first_counts_and_refuses_requests_at_once(broker, up) -> None:
    broker.life.fail("the disk")
    broker.life.lose_session("expired")
    assert broker.steps == ["refuse requests"]
    assert broker.life.failure.why == "the disk"
    assert not broker.life.failure.lost_session
    assert go_on(up, True) is None
    assert broker.steps == ["refuse requests", "give up roles", "refuse requests", *END]


def test_a_suspect_disk_is_reported_before_loops_and_session_end(broker, up) -> None:
    broker.life.fail("an fsync failed", "a-directory")
    question = go_on(up, True)
    assert isinstance(question, Await)
    assert go_on(broker.begun.pop()) is None
    assert go_on(up, question.signal.take()) is None
    assert broker.steps[1:3] == ["give up roles", "withdraw for a-directory"]
    assert broker.steps[-len(END) :] == END
    assert not broker.life.unreported


def test_a_stop_ends_the_wait_for_a_report_and_reports_while_the_disk_is_locked(broker, up) -> None:
    broker.life.fail("an fsync failed", "a-directory")
    go_on(up, True)
    broker.life.stop(clean=True)
    assert go_on(up, True) is None
    assert broker.steps[-3:] == ["report a-directory", "close logs", "end session"]
    assert broker.clean_epochs == [None]


def test_a_disk_that_fails_when_its_logs_are_closed_is_reported_before_the_session_ends(broker, up) -> None:
    directory = SimpleNamespace(uuid="a-directory", path="/data")
    broker.close_error = DirectoryFailed(directory, OSError(errno.EIO, "an fsync failed"))
    broker.close_error.is_suspect = True
    broker.life.stop(clean=False)
    assert go_on(up, True) is None
    assert broker.steps[-3:] == ["close logs", "report a-directory", "end session"]


@pytest.mark.parametrize("how", ["stop", "fail", "error"])
@pytest.mark.parametrize("step", START)
def test_a_start_that_is_cut_short_ends_in_the_same_order(broker, step, how) -> None:
    def refuse() -> None:
        raise SparklogError("it does not work")

    broker.meanwhile[step] = {
        "stop": lambda: broker.life.stop(clean=True),
        "fail": lambda: broker.life.fail("the disk"),
        "error": refuse,
    }[how]
    assert go_on(broker.life.run(lambda: pytest.fail("it is not up"))) is None
    begun = broker.steps[: broker.steps.index("stop chores")]
    assert [one for one in begun if one != "refuse requests"] == START[
        : len(begun) - begun.count("refuse requests")
    ]
    assert broker.steps[-1] == "end session"
    assert broker.clean_epochs in ([], [None])
    assert ("does not work" if how == "error" else "was stopped while it started") in str(broker.life.error)


def test_a_step_of_the_end_that_fails_keeps_no_other_from_running(broker, up) -> None:
    def fail() -> None:
        raise OSError("no such socket")

    broker.meanwhile["stop loops"] = fail
    broker.life.stop(clean=False)
    assert go_on(up, True) is None
    assert broker.steps == ["refuse requests", *END]


@pytest.mark.parametrize("error", [OSError("no such socket"), RuntimeError("a bug")])
@pytest.mark.parametrize("step", ["give up roles", "stop chores"])
def test_a_failure_ends_in_order_also_where_a_step_of_it_fails(broker, up, step, error) -> None:
    def fail() -> None:
        raise error

    broker.meanwhile[step] = fail
    broker.life.fail("the disk")
    assert go_on(up, True) is None
    assert broker.steps[-len(END) :] == END


def test_an_owner_whose_driver_gave_the_loop_up_ends_it_in_order_and_once(broker, up) -> None:
    broker.life.stop(clean=True)
    go_on(up, True)
    up.close()
    broker.life.end()
    broker.life.end()
    assert broker.steps == ["refuse requests", *END]


def test_each_of_two_suspect_disks_is_reported(broker, up) -> None:
    broker.life.fail("an fsync failed", "a-directory")
    go_on(up, True)
    broker.life.fail("another fsync failed", "another-directory")
    broker.life.stop(clean=False)
    assert go_on(up, True) is None
    reports = [step for step in broker.steps if step.startswith("report")]
    assert reports == ["report a-directory", "report another-directory"]
    assert not broker.life.unreported


def test_a_failure_after_the_end_is_none(broker, up) -> None:
    broker.life.stop(clean=False)
    assert go_on(up, True) is None
    broker.life.lose_session("expired")
    assert broker.life.failure is None
