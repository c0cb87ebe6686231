"""How a transaction ended, as its markers say."""

from typing import NamedTuple


class TransactionEnd(NamedTuple):
    """What a transaction marker says. ``coordinator_epoch``: of the coordinator that decided."""

    is_commit: bool
    coordinator_epoch: int
