"""Why a broker's process stops: told by signals, which come in the middle of anything, also of each other."""

import sys
import threading

import pytest

from sparklog_runtime.broker_process.broker_task import StopReason

NESTED_S = 10.0


def struck_at(event_number, work):
    """Run ``work(reason)`` on a thread that a signal strikes at its n-th line or return; whether it was
    struck, and the reason. A handler that waits for what the struck code holds never comes back."""
    reason, events, struck = StopReason(), [], []

    def trace(frame, event, arg):
        events.append(event)
        if len(events) == event_number:
            struck.append(event)
            reason.give("SIGTERM")
        return trace

    def run():
        sys.settrace(trace)
        try:
            work(reason)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(NESTED_S)
    assert not thread.is_alive(), f"stuck since the signal at event {event_number}"
    return bool(struck), reason


@pytest.mark.bug("B62", "away", "A broker that cannot be stopped keeps its directories.")
@pytest.mark.parametrize(
    "work",
    [lambda reason: reason.give("SIGHUP"), lambda reason: reason.wait(0.001)],
    ids=["within another's handler", "within a wait"],
)
def test_a_signal_may_strike_anywhere(work):
    number, is_struck = 0, True
    while is_struck:
        number += 1
        is_struck, reason = struck_at(number, work)
        if is_struck:
            assert reason.is_given()
            assert reason.wait(0.0)
    assert number > 3


def test_all_who_wait_hear_of_the_first_reason():
    reason, heard = StopReason(), []
    waiting = [threading.Thread(target=lambda: heard.append(reason.wait(60))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    reason.give("parent")
    reason.give("stop")
    for thread in waiting:
        thread.join(60)
    assert heard == [True] * 3
    assert reason.text == "parent"


def test_a_wait_without_a_reason_ends_in_time():
    assert not StopReason().wait(0.001)
