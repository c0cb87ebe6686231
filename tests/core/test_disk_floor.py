"""The floor of a disk's free space, and when a disk is asked what it has free."""

from sparklog.core.disk_floor import ASK_MS, FLOOR_MAX_BYTES, NEAR_BYTES, FreeBytes, floor_bytes
from sparklog.model.time import MonotonicMs

TOTAL = 10**12
BEGIN = MonotonicMs(5_000)


class Disk:
    """Answers whenever it is asked, and counts that."""

    def __init__(self, free_bytes: int) -> None:
        self.free_bytes, self.asked, self.known = free_bytes, 0, FreeBytes()

    def write(self, size_bytes: int, at_ms: int, setting: int = -1) -> None:
        if not self.known.on_write(size_bytes, setting, MonotonicMs(at_ms)):
            self.asked += 1
            self.known.on_answer(TOTAL, self.free_bytes, size_bytes)
        self.free_bytes -= size_bytes


def test_the_floor_is_a_twentieth_of_a_small_disk_and_a_gigabyte_of_a_large_one() -> None:
    assert floor_bytes(-1, 64 << 20) == (64 << 20) // 20
    assert floor_bytes(-1, 10**12) == 10**9
    assert (floor_bytes(0, 10**12), floor_bytes(7, 10**12)) == (0, 7)


def test_far_above_the_floor_a_disk_is_asked_ten_times_a_second_however_many_write() -> None:
    disk = Disk(TOTAL // 2)
    for after_ms in range(3_000):
        disk.write(1_000, BEGIN + after_ms)
    assert disk.asked == 3_000 // ASK_MS


def test_a_disk_is_asked_at_the_first_write_and_at_the_first_after_a_pause() -> None:
    disk = Disk(TOTAL // 2)
    for at_ms in (BEGIN, BEGIN + ASK_MS - 1, BEGIN + ASK_MS, BEGIN + 50 * ASK_MS):
        disk.write(1, at_ms)
    assert disk.asked == 3


def test_near_the_floor_each_write_asks() -> None:
    disk = Disk(FLOOR_MAX_BYTES + NEAR_BYTES + 10)
    asked = []
    for _ in range(6):
        disk.write(5, BEGIN)
        asked.append(disk.asked)
    assert asked == [1, 1, 2, 3, 4, 5]


def test_what_clients_write_brings_them_near_the_floor_before_the_next_answer() -> None:
    """One second's worth of a fast disk, in the moment after an answer."""
    disk = Disk(FLOOR_MAX_BYTES + 5 * NEAR_BYTES)
    written = 0
    while disk.asked < 2:
        disk.write(1_000_000, BEGIN)
        written += 1_000_000
    assert written == 4 * NEAR_BYTES + 1_000_000


def test_a_raised_floor_is_near_at_once() -> None:
    disk = Disk(TOTAL // 2)
    disk.write(1, BEGIN)
    disk.write(1, BEGIN, setting=TOTAL // 2)
    assert disk.asked == 2


def test_a_disk_that_did_not_answer_is_asked_again() -> None:
    known = FreeBytes()
    assert not known.on_write(1, -1, BEGIN)
    assert not known.on_write(1, -1, BEGIN)
