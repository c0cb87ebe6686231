"""What `sparklog brokers` says is taken as it is: a refusal is told, and patience has an end."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from chaos.access import Access
from chaos.faults import operator_commands as module
from chaos.faults.operator_commands import UNKNOWN, CommandHangs, Operator, Refused


class CommandLine:
    """Answers commands one after the other, the last answer again and again."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.commands = []

    def __call__(self, command, **_):
        self.commands.append(command)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def answered(name, *found):
    return SimpleNamespace(returncode=0, stdout=json.dumps({name: found}), stderr="")


def refused(words="refused"):
    return SimpleNamespace(returncode=1, stdout="", stderr=words)


def operation(number, state):
    return {"id": number, "kind": "stop", "state": state, "waiting_for": []}


@pytest.fixture
def operator(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "ASK_EVERY_S", 0.0)

    def make(*answers, access=None):
        line = CommandLine(*answers)
        monkeypatch.setattr(module.subprocess, "run", line)
        return Operator(access or Access("127.0.0.1:1"), tmp_path), line

    return make


def test_an_operation_is_begun_by_the_command_that_people_run(operator):
    ours, line = operator(answered("operations", operation(7, "running")))
    assert ours.begin("stop", [2])["id"] == 7
    words = ["--no-wait", "--accept-unavailable", "--bootstrap-server", "127.0.0.1:1", "--json"]
    assert line.commands[0][2:] == ["sparklog.cli.main", "brokers", "stop", "2", *words]
    ours.begin("restart", [])
    assert line.commands[1][4:6] == ["restart", "--all"]
    ours.begin("drain", [2])
    assert line.commands[2][4:7] == ["drain", "2", "--no-wait"]
    assert "--accept-unavailable" not in line.commands[2]


def test_an_operator_of_a_secured_cluster_logs_in(operator, tmp_path):
    access = Access("127.0.0.1:1", "ca.pem", "admin", "secret")
    ours, line = operator(answered("operations", operation(7, "running")), access=access)
    ours.begin("stop", [2])
    assert line.commands[0][-2:] == ["--command-config", str(tmp_path / "operator.properties")]
    assert "security.protocol=SASL_SSL" in (tmp_path / "operator.properties").read_text()


def test_a_refusal_is_told_in_the_command_s_words(operator):
    ours, _ = operator(refused("broker 9 is unknown"))
    with pytest.raises(Refused, match="`brokers drain 9 --no-wait`: broker 9 is unknown"):
        ours.begin("drain", [9])


def test_who_insists_is_refused_only_when_the_time_is_over(operator):
    ours, line = operator(refused(), refused(), answered("operations", operation(7, "running")))
    assert ours.insist("start", [2], 60.0)["id"] == 7
    assert len(line.commands) == 3
    ours, _ = operator(refused())
    with pytest.raises(Refused):
        ours.insist("start", [2], 0.0)


def test_an_operation_is_waited_for_while_it_runs_or_nobody_reports(operator):
    ours, _ = operator(
        answered("operations"),
        refused(),
        answered("operations", operation(7, "running")),
        answered("operations", operation(6, "done"), operation(7, "failed")),
    )
    assert ours.ended(7, 60.0)["state"] == "failed"


def test_an_operation_that_is_not_over_in_time_is_as_it_was_last_seen(operator):
    ours, _ = operator(answered("operations", operation(7, "running")))
    assert ours.ended(7, 0.0)["state"] == "running"
    assert ours.ended(8, 0.0)["state"] == UNKNOWN


def test_moves_of_kafka_s_tools_are_no_operations_of_ours(operator):
    moved = {**operation(8, "running"), "kind": "reassign"}
    ours, _ = operator(answered("operations", operation(6, "done"), operation(7, "running"), moved))
    assert [one["id"] for one in ours.still_running(0.0)] == [7]


def test_a_command_that_does_not_end_is_told(operator):
    ours, _ = operator(subprocess.TimeoutExpired("sparklog", 1.0))
    with pytest.raises(CommandHangs, match="`brokers list` has not ended"):
        ours.brokers(0.0)
