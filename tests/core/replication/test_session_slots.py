"""Slots of a fetch session: both sides count alike, and no slot comes twice."""

from sparklog.core.replication.session_slots import EPOCH_MAX, SessionSlots, epoch_after


def test_partitions_get_slots_in_the_order_in_which_they_are_named() -> None:
    slots = SessionSlots("abc")
    slots.give("b")
    slots.give("d")
    assert [slots.slot_of(key) for key in "abcd"] == [0, 1, 2, 3]
    assert [slots.key_of(slot) for slot in range(4)] == ["a", "b", "c", "d"]


def test_a_partition_that_returns_gets_another_slot_and_its_former_one_is_nobodys() -> None:
    slots = SessionSlots("ab")
    slots.forget("a")
    slots.forget("a")
    assert (slots.slot_of("a"), slots.key_of(0)) == (None, None)
    slots.give("a")
    assert (slots.slot_of("a"), slots.slot_of("b"), slots.key_of(0)) == (2, 1, None)


def test_the_epoch_after_the_greatest_is_1_because_0_opens_sessions() -> None:
    assert [epoch_after(epoch) for epoch in (0, 1, EPOCH_MAX)] == [1, 2, 1]
