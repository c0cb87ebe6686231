import time

from sparklog.network.clock import SystemClock


def test_the_clock_tells_both_kinds_of_time_in_milliseconds():
    clock = SystemClock()
    assert abs(clock.wall_ms() - time.time() * 1_000) < 5_000
    assert abs(clock.monotonic_ms() - time.monotonic() * 1_000) < 5_000
    assert isinstance(clock.monotonic_ms(), int)
