"""Which records a reader sees while transactions are open."""

from enum import IntEnum


class IsolationLevel(IntEnum):
    """As the protocol numbers them."""

    READ_UNCOMMITTED = 0
    """Everything up to the high watermark."""
    READ_COMMITTED = 1
    """Up to the last stable offset, without what aborted transactions wrote."""
