"""Records of members whose write is over are removed a piece at a time, and none is lost to a refusal."""

from sparklog.core.write_coordinator.garbage import KEYS_PER_PIECE, Garbage
from sparklog.core.write_coordinator.records import MemberKey

A, B, C = (MemberKey("app", 1, number) for number in range(3))


def keys(tombstones):
    assert all(one.value is None for one in tombstones)
    return [one.key for one in tombstones]


def test_nothing_is_written_without_garbage():
    assert Garbage().begin_removal() == ()


def test_what_comes_while_tombstones_are_under_way_waits_for_the_next_piece():
    garbage = Garbage()
    garbage.add([A])
    assert keys(garbage.begin_removal()) == [A]
    garbage.add([B, C])
    assert garbage.begin_removal() == ()
    garbage.end_removal(is_removed=True)
    assert keys(garbage.begin_removal()) == [B, C]


def test_refused_tombstones_are_written_again_before_the_others():
    garbage = Garbage()
    garbage.add([A, B])
    garbage.begin_removal()
    garbage.add([C])
    garbage.end_removal(is_removed=False)
    assert keys(garbage.begin_removal()) == [A, B, C]


def test_a_piece_has_a_bounded_number_of_tombstones():
    garbage = Garbage()
    garbage.add(MemberKey("app", 1, number) for number in range(KEYS_PER_PIECE + 1))
    assert len(garbage.begin_removal()) == KEYS_PER_PIECE
    garbage.end_removal(is_removed=True)
    assert keys(garbage.begin_removal()) == [MemberKey("app", 1, KEYS_PER_PIECE)]
