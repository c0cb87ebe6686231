"""Producer ids of a write's members.

    2^62 + write number * 2^20 + member number

A write number is unique for ever: it is taken from the blocks of producer ids that the controller gives out.
So is each producer id of a member; its epoch is always 0. Every batch and marker in a log shows whose it is.

An election may lose the records of the last members, whose rows are in logs, and perhaps those of several
coordinators. So each leader epoch of the coordinator's log has LOST_MEMBERS_MAX numbers of its own in an open
write: the n-th one after that in which the write was opened begins at n * LOST_MEMBERS_MAX. In the 64th the
numbers are used up, and the next member is refused. Leader epochs are in ZooKeeper, so that none comes again.
"""

from typing import Final

from sparklog.model.ids import LeaderEpoch

FIRST_PRODUCER_ID: Final = 1 << 62
"""The least producer id of a member. Those that the controller gives out are below it."""

_MEMBER_BITS: Final = 20

MEMBER_NUMBERS: Final = 1 << _MEMBER_BITS
"""Member numbers are below it."""

MEMBERS_MAX: Final = 100_000
"""Most members of one write, so that its winners fit into one record."""

LOST_MEMBERS_MAX: Final = 1 << 14
"""Members that one leader epoch may give numbers, of which elections may lose all records, without a producer
id that comes again.
"""

WRITE_NUMBER_MAX: Final = (1 << 42) - 1
"""The producer ids of the next write would not fit into 63 bits."""

MEMBER_EPOCH: Final = 0


def producer_id_of(write_number: int, member_number: int) -> int:
    return FIRST_PRODUCER_ID + (write_number << _MEMBER_BITS) + member_number


def first_number(after_known: int, opened_in: LeaderEpoch, leader_epoch: LeaderEpoch) -> int:
    """The first member number that a new coordinator may give. ``after_known``: the first one after the
    members that it knows. ``opened_in``: the leader epoch in which the write was opened, -1 if unknown.
    """
    epochs = leader_epoch - opened_in if opened_in >= 0 else 0
    return max(after_known + LOST_MEMBERS_MAX, epochs * LOST_MEMBERS_MAX)


def is_of_a_write(producer_id: int) -> bool:
    return producer_id >= FIRST_PRODUCER_ID


def write_and_member(producer_id: int) -> tuple[int, int]:
    """The write number and the member number of a member's producer id."""
    return divmod(producer_id - FIRST_PRODUCER_ID, 1 << _MEMBER_BITS)
