"""Brokers without an executor are reported after ten seconds, and then less and less often."""

import threading

from sparklog_runtime.supervision import executor_waits
from sparklog_runtime.supervision.executor_waits import DueReports, ExecutorWaits, WaitingBroker


def test_a_wait_is_reported_after_ten_seconds_and_then_less_and_less_often():
    reports, reported_at = DueReports(), []
    for second in range(1_500):
        for one in reports.due([WaitingBroker(3, 1.0, float(second))]):
            reported_at.append(second)
            reports.reported(one)
    assert reported_at == [10, 20, 40, 80, 160, 320, 620, 920, 1_220]


def test_a_line_that_could_not_be_made_yet_is_due_at_the_next_look():
    reports = DueReports()
    assert reports.due([WaitingBroker(3, 1.0, 10.0)])
    assert reports.due([WaitingBroker(3, 1.0, 11.0)])


def test_the_next_wait_of_a_broker_is_counted_anew():
    reports = DueReports()
    (one,) = reports.due([WaitingBroker(3, 1.0, 100.0)])
    reports.reported(one)
    assert reports.due([WaitingBroker(3, 2.0, 9.0)]) == []
    assert reports.due([WaitingBroker(3, 2.0, 10.0)])


def test_lines_are_reported_while_brokers_wait(monkeypatch):
    monkeypatch.setattr(executor_waits, "LOOK_INTERVAL_S", 0.01)
    lines, is_reported = [], threading.Event()

    def report(line):
        lines.append(line)
        is_reported.set()

    waits = ExecutorWaits(
        lambda: [WaitingBroker(3, 1.0, 40.0)], lambda broker, waited_s: f"{broker}: {waited_s:.0f} s", report
    )
    try:
        assert is_reported.wait(30)
    finally:
        waits.close()
    assert lines[0] == "broker 3: 40 s"
