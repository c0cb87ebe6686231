"""Simulated time: who is looked at, and when."""

import pytest

from simulation.schedule import US_PER_MS, Escaped, Process, ProcessTimer, Schedule


def test_a_process_that_waits_within_an_event_is_checked_before_others_act() -> None:
    """A controller elects the broker that has just registered; what its log lost must be known by then."""
    schedule = Schedule()
    broker, controller = Process(schedule, "broker"), Process(schedule, "controller")
    happened: list[str] = []
    schedule.on_step = lambda process: happened.append(f"look at {process}")

    def start() -> None:
        happened.append("broker recovers its log")
        schedule.block(broker, 5 * US_PER_MS)
        happened.append("broker is registered")

    schedule.after(0, broker, start)
    schedule.after(2 * US_PER_MS, controller, lambda: happened.append("controller elects"))
    schedule.run_until(10 * US_PER_MS)
    assert happened == [
        "broker recovers its log",
        "look at broker",
        "controller elects",
        "look at controller",
        "broker is registered",
        "look at broker",
    ]


def test_a_clock_that_drifts_neither_jumps_nor_goes_back_and_its_timers_follow_it() -> None:
    schedule = Schedule()
    fast, slow = Process(schedule, "fast"), Process(schedule, "slow")
    fired: list[tuple[Process, int]] = []
    schedule.run_until(1_000 * US_PER_MS)
    fast.drift(0.05)
    slow.drift(-0.05)
    assert (fast.monotonic_ms(), slow.monotonic_ms()) == (1_000, 1_000)
    for process in (fast, slow):
        ProcessTimer(process).after(950, lambda process=process: fired.append((process, schedule.now_ms)))
    schedule.run_until(2_000 * US_PER_MS)
    assert (fast.monotonic_ms(), slow.monotonic_ms()) == (2_050, 1_950)
    assert fired == [(fast, 1_904), (slow, 2_000)]
    fast.drift(-0.05)
    assert fast.monotonic_ms() == 2_050
    schedule.run_until(3_000 * US_PER_MS)
    assert fast.monotonic_ms() == 3_000


@pytest.mark.parametrize("whose", ["client", "nobody"])
def test_who_waits_does_not_handle_what_fails_meanwhile(whose) -> None:
    """It is of another process, and was swallowed by a broker's start that waited for ZooKeeper (905551)."""
    schedule, handled = Schedule(), []
    broker, client = Process(schedule, "broker"), Process(schedule, "client")

    def start() -> None:
        try:
            schedule.block(broker, 5 * US_PER_MS)
        except ValueError as error:
            handled.append(error)

    def fail() -> None:
        raise ValueError("malformed")

    schedule.after(0, broker, start)
    schedule.after(2 * US_PER_MS, client if whose == "client" else None, fail)
    with pytest.raises(Escaped, match="ValueError: malformed"):
        schedule.run_until(10 * US_PER_MS)
    assert handled == []


def test_who_waits_does_not_handle_what_looking_at_it_finds() -> None:
    def look(process: Process | None) -> None:
        raise OSError("a disk that cannot be read")

    schedule, broker = Schedule(), Process(Schedule(), "broker")
    schedule.on_step = look
    with pytest.raises(Escaped):
        schedule.block(broker, 5)


def test_who_stands_still_in_the_middle_of_a_change_is_looked_at_beside_it() -> None:
    schedule, looked = Schedule(), []
    broker = Process(schedule, "broker")
    schedule.on_step = lambda process: looked.append(f"at {process}")
    schedule.on_standstill = lambda process: looked.append(f"beside the change of {process}")
    schedule.after(0, broker, lambda: schedule.block(broker, 5, is_looked_at=False))
    schedule.run_until(10 * US_PER_MS)
    assert looked == ["beside the change of broker", "at broker"]
