"""Brokers stop, stay stopped and start as is wished, with real broker processes and without Spark."""

import dataclasses
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sparklog.core.controller.state.wishes import Wish, WishedBroker
from sparklog.model.errors import ConfigError
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.supervision.id_assignment import FixedIds, IdsByData
from sparklog_runtime.supervision.slots import Slot
from sparklog_runtime.supervision.supervisor import Supervisor, SupervisorCallbacks
from sparklog_runtime.supervision.tcp_ports import PortReservation
from sparklog_runtime.supervision.wished_brokers import WishedBrokers
from tests.waiting import until

STOPPED = WishedBroker(Wish.stopped)


class Rig:
    """A supervisor of two brokers, whose jobs are children of the test."""

    def __init__(self, root: Path, program: Path, wished: dict[int, WishedBroker]) -> None:
        self.root, self.program = root, program
        self.changed = threading.Condition()
        self.settings: dict[str, str] = {}
        self.launched: list[dict[str, str]] = []
        self.children: dict[int, subprocess.Popen[str]] = {}
        self.refusal = ""
        self.reserved = PortReservation()
        ports = [self.reserved.reserve("127.0.0.1", 0) for _ in range(2)]
        self.supervisor = Supervisor(
            ids=FixedIds((1, 2)),
            ports_of=lambda broker_id: {"PLAINTEXT": ports[broker_id - 1]},
            callbacks=SupervisorCallbacks(
                broker_died=lambda broker_id, epoch, cause: None, on_change=self.notify
            ),
            wished=wished,
            renewed=self.renewed,
        )

    def notify(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def renewed(self, plan: BrokerPlan) -> BrokerPlan:
        if self.refusal:
            raise ConfigError(self.refusal)
        return dataclasses.replace(plan, settings=dict(self.settings))

    def launch(self) -> None:
        plan = BrokerPlan(
            slot=0,
            supervisor_host="127.0.0.1",
            supervisor_port=self.supervisor.listen("127.0.0.1"),
            token=self.supervisor.token,
            zookeeper="",
            host="127.0.0.1",
            log_dir_patterns=(f"{self.root}/broker-{{id}}/0",),
            log_file_pattern=f"{self.root}/logs/broker-{{id}}.log",
        )
        self.supervisor.launch([plan, dataclasses.replace(plan, slot=1)], self)
        assert self.supervisor.wait_registered(60)

    def run(self, plan: BrokerPlan) -> None:
        fields = {
            field.name: getattr(plan, field.name)
            for field in dataclasses.fields(plan)
            if field.name != "make_broker"
        }
        self.launched.append(dict(plan.settings))
        child = subprocess.Popen(
            [sys.executable, str(self.program), json.dumps(fields)], stdout=subprocess.PIPE, text=True
        )
        self.children[plan.slot] = child
        child.communicate()
        self.notify()

    def cancel(self, slot: int) -> None:
        self.children[slot].kill()

    def states(self) -> dict[int, str]:
        return {one.broker_id: one.state for one in self.supervisor.hosted()}

    def await_states(self, **states: str) -> None:
        wanted = {int(name.removeprefix("b")): state for name, state in states.items()}
        with self.changed:
            assert self.changed.wait_for(lambda: self.states() == wanted, 60), self.states()

    def processes(self) -> list[int]:
        return [one.broker_id for one in self.supervisor.processes()]


@pytest.fixture
def rig(tmp_path):
    rigs: list[Rig] = []

    def make(wished: dict[int, WishedBroker] | None = None) -> Rig:
        program = Path(__file__).with_name("fake_broker_process.py")
        rigs.append(Rig(tmp_path, program, wished or {}))
        rigs[-1].launch()
        return rigs[-1]

    yield make
    for made in rigs:
        made.supervisor.stop(5.0)
        made.reserved.release()


def test_a_broker_that_is_wished_to_stop_stops_and_is_launched_when_it_is_wished_to_serve(rig):
    made = rig()
    made.supervisor.obey({2: STOPPED})
    made.await_states(b1="serving", b2="stopped")
    assert made.processes() == [1]
    assert made.children[1].wait(60) == 0, "it stopped in order"
    made.supervisor.obey({2: WishedBroker(Wish.serving, starts=1)})
    made.await_states(b1="serving", b2="serving")
    assert made.processes() == [1, 2]
    assert [one.starts for one in made.supervisor.hosted()] == [0, 1]


def test_a_start_does_not_wait_for_a_broker_that_stays_stopped(rig):
    made = rig({1: WishedBroker(Wish.drained), 2: WishedBroker()})
    assert made.processes() == [2]
    assert made.states() == {1: "drained", 2: "serving"}
    assert made.supervisor.to_serve() == [2]
    made.supervisor.obey({1: WishedBroker(Wish.serving, starts=1)})
    made.await_states(b1="serving", b2="serving")


def test_a_broker_that_starts_again_gets_settings_as_they_are_by_then(rig):
    made = rig()
    made.settings = {"num.io.threads": "3"}
    made.supervisor.obey({2: STOPPED})
    made.await_states(b1="serving", b2="stopped")
    made.supervisor.obey({2: WishedBroker(Wish.serving, starts=1)})
    made.await_states(b1="serving", b2="serving")
    assert made.launched == [{}, {}, {"num.io.threads": "3"}]


def test_settings_that_cannot_be_are_the_reason_until_a_start_is_asked_for(rig):
    made = rig()
    made.refusal = "num.io.threads=0 is too small"
    made.supervisor.obey({2: STOPPED})
    made.await_states(b1="serving", b2="stopped")
    made.supervisor.obey({2: WishedBroker(Wish.serving, starts=1)})
    until(lambda: made.refusal in made.supervisor.hosted()[1].reason)
    made.refusal = ""
    made.supervisor.obey({2: WishedBroker(Wish.serving, starts=2)})
    made.await_states(b1="serving", b2="serving")


def test_slots_whose_broker_is_not_known_take_what_is_left_to_serve():
    plan = BrokerPlan(
        slot=0,
        supervisor_host="",
        supervisor_port=1,
        token="",
        zookeeper="",
        host=None,
        log_dir_patterns=(),
        log_file_pattern="",
    )
    slots = [Slot(dataclasses.replace(plan, slot=number)) for number in range(3)]
    wishes = WishedBrokers(IdsByData((1, 2, 3), started_ms=0), {2: STOPPED})
    assert [wishes.may_run(slot, slots) for slot in slots] == [True, True, False]
    wishes.note({2: WishedBroker(Wish.serving, 1)})
    assert [wishes.may_run(slot, slots) for slot in slots] == [True, True, True]


def test_a_host_with_the_data_of_a_stopped_broker_becomes_another():
    ids = IdsByData((1, 2, 3), started_ms=0)
    assert ids.claim(0, [2], 0, wanted=[1, 3]) is None, "the other slot may have data of broker 1"
    assert ids.claim(1, [3], 0, wanted=[1, 3]) == 3
    assert ids.claim(0, [2], 0, wanted=[1, 3]) == 1
