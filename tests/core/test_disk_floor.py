"""The floor of a disk's free space."""

from sparklog.core.disk_floor import floor_bytes


def test_the_floor_is_a_twentieth_of_a_small_disk_and_a_gigabyte_of_a_large_one() -> None:
    assert floor_bytes(-1, 64 << 20) == (64 << 20) // 20
    assert floor_bytes(-1, 10**12) == 10**9
    assert (floor_bytes(0, 10**12), floor_bytes(7, 10**12)) == (0, 7)
