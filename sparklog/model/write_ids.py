"""Producer ids of a write's members.

    2^62 + write number * 2^20 + member number

A write number is unique for ever: it is taken from the blocks of producer ids that the controller gives out.
So is each producer id of a member; its epoch is always 0. Every batch and marker in a log shows whose it is.

An election may lose the records of the last members, whose rows are in logs. So a new coordinator leaves out
LOST_MEMBERS_MAX numbers of each open write. Behind 63 coordinators that gave members ids the numbers are used
up, and the next member is refused.
"""

from typing import Final

FIRST_PRODUCER_ID: Final = 1 << 62
"""The least producer id of a member. Those that the controller gives out are below it."""

_MEMBER_BITS: Final = 20

MEMBER_NUMBERS: Final = 1 << _MEMBER_BITS
"""Member numbers are below it."""

MEMBERS_MAX: Final = 100_000
"""Of one write: its winners fit into one record."""

LOST_MEMBERS_MAX: Final = 1 << 14
"""Members of a write of which one election may lose the records, without a producer id that comes again."""

WRITE_NUMBER_MAX: Final = (1 << 42) - 1
"""The producer ids of the next write would not fit into 63 bits."""

MEMBER_EPOCH: Final = 0


def producer_id_of(write_number: int, member_number: int) -> int:
    return FIRST_PRODUCER_ID + (write_number << _MEMBER_BITS) + member_number


def is_of_a_write(producer_id: int) -> bool:
    return producer_id >= FIRST_PRODUCER_ID


def write_and_member(producer_id: int) -> tuple[int, int]:
    """The write number and the member number of a member's producer id."""
    return divmod(producer_id - FIRST_PRODUCER_ID, 1 << _MEMBER_BITS)
