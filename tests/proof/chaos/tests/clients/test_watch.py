"""A client that stands still is noticed, and restarted as an operator would."""

import threading
from random import Random

import pytest

from chaos.access import Access
from chaos.clients import workload as module
from chaos.clients.watch import STUCK_S, Answers, Watch
from chaos.clients.workload import CLIENTS, ClientPlan, Workload
from chaos.teams import BLUE, RED


class _Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return _Clock()


@pytest.fixture
def watch(clock):
    watch = Watch(clock)
    watch.begin("member-1")
    return watch


def test_a_client_without_an_answer_for_too_long_is_stuck(watch, clock):
    clock.now += STUCK_S
    assert not watch.is_stuck("member-1", 0)
    clock.now += 1
    assert watch.is_stuck("member-1", 0)


def test_each_answer_counts_from_the_beginning(watch, clock):
    for answers in range(1, 4):
        clock.now += STUCK_S - 1
        assert not watch.is_stuck("member-1", answers)
    clock.now += STUCK_S + 1
    assert watch.is_stuck("member-1", 3)


def test_another_life_has_as_much_time_as_the_one_before(watch, clock):
    clock.now += STUCK_S + 1
    assert watch.is_stuck("member-1", 0)
    watch.begin("member-1")
    assert not watch.is_stuck("member-1", 0)


def test_answers_are_counted_in_whole_lines_of_all_lives(tmp_path):
    answers, first, second = Answers('"ok"'), tmp_path / "m-0.jsonl", tmp_path / "m-1.jsonl"
    assert answers.count([first, second]) == 0
    first.write_text('{"type":"ok"}\n{"type":"info"}\n{"type":"ok"')
    assert answers.count([first, second]) == 1
    with first.open("a") as more:
        more.write('}\n{"type":"ok"}\n')
    second.write_text('{"type":"ok"}\n')
    assert answers.count([first, second]) == 4
    assert answers.count([first, second]) == 4


def test_libraries_that_hang_are_watched_and_no_other():
    assert {plan.kind for plan in CLIENTS if plan.is_watched} == {"groups", "transactions"}
    assert not any(plan.is_watched for plan in CLIENTS if plan.library == "sparklog" or plan.isolation)


def test_a_stuck_client_tells_where_it_is_and_another_takes_its_place(tmp_path, monkeypatch):
    script = tmp_path / "client.py"
    script.write_text(
        "import faulthandler, json, pathlib, signal, sys\n"
        "settings = json.loads(sys.argv[1])\n"
        "faulthandler.register(signal.SIGUSR1)\n"
        "pathlib.Path(settings['folder'], settings['name'].replace('/', '-')).touch()\n"
        "signal.pause()\n"
    )
    monkeypatch.setattr(module, "_CLIENT", script)
    monkeypatch.setattr(module, "Watch", lambda: Watch(clock))
    clock = _Clock()
    plan = ClientPlan("member-1", "member", "kafka-python", 1.0)
    workload = Workload(lambda team: Access(""), {"t": 1}, tmp_path, Random(1), 1.0, [plan])
    workload.start()
    try:
        _await(tmp_path / "histories" / "member-1-0")
        clock.now += STUCK_S + 1
        _await(tmp_path / "histories" / "member-1-1")
        assert workload.restarts == {"member-1": 1}
        assert "most recent call first" in (tmp_path / "logs" / "member-1.log").read_text()
    finally:
        workload.stop(60, 0)


@pytest.mark.integration
def test_clients_whose_access_changes_leave_in_good_order_and_come_back_with_the_new_one(
    tmp_path, monkeypatch
):
    script = tmp_path / "client.py"
    script.write_text(
        "import json, pathlib, signal, sys\n"
        "settings = json.loads(sys.argv[1])\n"
        "name = settings['name'].replace('/', '-')\n"
        "def leave(*_):\n"
        "    pathlib.Path(settings['folder'], name + '-has-left').touch()\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "pathlib.Path(settings['folder'], name + '-by-' + settings['access']['password']).touch()\n"
        "while True: signal.pause()\n"
    )
    monkeypatch.setattr(module, "_CLIENT", script)
    passwords = {RED: "old", BLUE: "old"}
    plans = [
        ClientPlan("red-1", "tail", "confluent", 1.0),
        ClientPlan("blue-1", "tail", "confluent", 1.0, user=BLUE),
    ]
    workload = Workload(
        lambda team: Access("", "ca.pem", team, passwords[team]), {"t": 1}, tmp_path, Random(1), 1.0, plans
    )
    workload.start()
    workload.crash_nobody_more()
    try:
        for name in ("red-1-0-by-old", "blue-1-0-by-old"):
            _await(tmp_path / "histories" / name)
        passwords[RED] = "new"
        for name in ("red-1-0-has-left", "red-1-1-by-new"):
            _await(tmp_path / "histories" / name)
        assert not (tmp_path / "histories" / "blue-1-0-has-left").exists()
    finally:
        workload.stop(60, 0)


def _await(path, timeout_s=60):
    waited = threading.Event()
    for _ in range(int(timeout_s / 0.05)):
        if path.exists():
            return
        waited.wait(0.05)
    raise AssertionError(f"{path.name} has not come")
