"""Operators bring to its end what they began, have everybody serve again, and tell what hangs."""

from random import Random

import pytest

from chaos.access import Access
from chaos.faults import operators as module
from chaos.faults.operator_commands import CommandHangs, Refused
from chaos.faults.operators import OperatorDrains, OperatorRestarts, OperatorStops
from chaos.nemesis import Broker, Controller


class Cluster:
    """Four brokers; whoever is stopped is registered no more."""

    access = Access("127.0.0.1:1")
    folder = None

    def __init__(self):
        self.registered = {number: number for number in (1, 2, 3, 4)}

    def broker_ids(self):
        return [1, 2, 3, 4]

    def brokers(self):
        return {one: Broker(one, 100 + one, "h", 1, ()) for one in (1, 2, 3, 4)}

    def controllers(self):
        return [Controller(201, is_active=False, hosts_brokers=True), Controller(202, True, False)]

    def registration(self, broker):
        return self.registered[broker]


class Line:
    """An operator's commands upon that cluster; ``ends`` are the states in which operations end."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.begun, self.ends = [], {}
        self.wishes = dict.fromkeys((1, 2, 3, 4), "serving")
        self.replicas = dict.fromkeys((1, 2, 3, 4), 5)
        self.running = []

    def begin(self, action, brokers):
        self.begun.append((action, brokers))
        return {"id": len(self.begun), "state": "running"}

    def insist(self, action, brokers, timeout_s):
        return self.begin(action, brokers)

    def ended(self, number, timeout_s):
        action, brokers = self.begun[number - 1]
        state = self.ends.get(action, "done")
        if state == "done":
            self._do(action, brokers or self._cluster.broker_ids())
        return {"id": number, "kind": action, "brokers": brokers, "state": state, "waiting_for": ["broker 3"]}

    def _do(self, action, brokers):
        for one in brokers:
            if action in ("stop", "drain"):
                self._cluster.registered[one], self.wishes[one] = None, f"{action}ed"
            if action in ("start", "restart"):
                self._cluster.registered[one], self.wishes[one] = 1_000 + len(self.begun), "serving"
            if action in ("drain", "fill"):
                self.replicas[one] = 0 if action == "drain" else 4

    def brokers(self, timeout_s):
        return {one: {"wish": self.wishes[one], "replicas": self.replicas[one]} for one in self.wishes}

    def still_running(self, timeout_s):
        return self.running


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def line(cluster, monkeypatch):
    made = Line(cluster)
    monkeypatch.setattr(module, "Operator", lambda access, folder: made)
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    monkeypatch.setattr(module, "TROUBLES", ("none",))
    return made


def struck(kind, cluster, seed=1):
    nemesis = kind()
    nemesis.begin(cluster, Random(seed))
    nemesis.end()
    return nemesis


@pytest.mark.parametrize(
    ("kind", "actions"),
    [(OperatorStops, ["stop", "start"]), (OperatorDrains, ["drain", "start", "fill"])],
)
def test_what_was_stopped_serves_again(cluster, line, kind, actions):
    nemesis = struck(kind, cluster)
    assert nemesis.settle() == []
    assert [action for action, _ in line.begun] == actions
    assert len({tuple(brokers) for _, brokers in line.begun}) == 1
    assert nemesis.operations == {f"{action} done": 1 for action in actions}
    assert nemesis.settle() == ()


def test_a_restart_is_of_one_broker_or_of_all(cluster, line):
    for seed in range(12):
        assert struck(OperatorRestarts, cluster, seed).settle() == []
    assert {len(brokers) for _, brokers in line.begun} == {0, 1}


def test_an_operation_that_hangs_is_told_with_what_it_waits_for(cluster, line):
    line.ends["stop"] = "running"
    (told, *_) = struck(OperatorStops, cluster).settle()
    assert "operation 1 (stop" in told
    assert told.endswith("it waits for: broker 3")


def test_an_operation_that_nobody_reports_is_told(cluster, line):
    line.ends["stop"] = "unknown"
    assert "nobody reports operation 1" in struck(OperatorStops, cluster).settle()


def test_an_operation_that_failed_has_ended(cluster, line):
    line.ends["drain"] = "failed"
    nemesis = struck(OperatorDrains, cluster)
    assert nemesis.settle() == []
    assert nemesis.operations == {"drain failed": 1, "fill done": 1}


def test_a_start_that_fails_is_told(cluster, line):
    line.ends["start"] = "failed"
    (told,) = struck(OperatorStops, cluster).settle()
    assert told.startswith("operator-stop: operation 2 (start")


def test_a_stopped_broker_that_is_registered_is_told(cluster, line, monkeypatch):
    monkeypatch.setattr(cluster, "registration", lambda broker: 7)
    assert any(
        "which were stopped, some are there" in told for told in struck(OperatorStops, cluster).settle()
    )


def test_a_restarted_broker_that_never_registered_anew_is_told(cluster, line, monkeypatch):
    monkeypatch.setattr(cluster, "registration", lambda broker: 7)
    (told,) = struck(OperatorRestarts, cluster).settle()
    assert told.endswith("were restarted, and never registered anew")


def test_a_drained_broker_with_replicas_is_told(cluster, line, monkeypatch):
    monkeypatch.setattr(line, "replicas", dict.fromkeys((1, 2, 3, 4), 5))
    monkeypatch.setattr(Line, "_do", lambda *_: None)
    found = struck(OperatorDrains, cluster).settle()
    assert any(told.endswith("were drained, and have replicas") for told in found)


def test_operations_that_still_run_in_the_end_are_told(cluster, line):
    line.running = [{"id": 9, "kind": "stop", "brokers": [2], "state": "running", "waiting_for": []}]
    (told,) = struck(OperatorStops, cluster).settle()
    assert told.endswith("it waits for: nothing that it names")


def test_a_strike_that_was_refused_still_has_everybody_serve(cluster, line, monkeypatch):
    line.wishes[3] = "stopped"

    def refuse(action, brokers):
        raise Refused("another operation is under way")

    nemesis = OperatorDrains()
    monkeypatch.setattr(line, "begin", refuse)
    with pytest.raises(Refused):
        nemesis.begin(cluster, Random(1))
    monkeypatch.undo()
    monkeypatch.setattr(module, "Operator", lambda access, folder: line)
    assert nemesis.settle() == []
    assert line.begun == [("start", [3])]


def test_a_command_that_hangs_is_told(cluster, line, monkeypatch):
    def hang(timeout_s):
        raise CommandHangs("`brokers list` has not ended after 90 s")

    nemesis = struck(OperatorStops, cluster)
    monkeypatch.setattr(line, "brokers", hang)
    assert nemesis.settle() == ["operator-stop: `brokers list` has not ended after 90 s"]


@pytest.mark.parametrize(
    ("trouble", "killed"),
    [("broker", {101, 102, 103, 104}), ("controller", {202}), ("driver", {201})],
)
def test_somebody_is_killed_while_an_operation_is_under_way(cluster, line, monkeypatch, trouble, killed):
    sent = []
    monkeypatch.setattr(module, "TROUBLES", (trouble,))
    monkeypatch.setattr(module, "TROUBLE_AFTER_S", (0.0, 0.0))
    monkeypatch.setattr(module, "send", lambda pid, number: sent.append(pid))
    told = OperatorStops().begin(cluster, Random(1))
    assert set(sent) <= killed
    assert str(sent[0]) in told
