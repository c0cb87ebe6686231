"""The fence of leader epochs: whether a request and a replica mean the same leader (KIP-320)."""

from typing import Final

from sparklog.model.errors import ErrorCode

NO_EPOCH_NAMED: Final = -1
"""What a request says that does not know the leader epoch; it is not fenced."""


def check_leader_epoch(named: int, current: int) -> ErrorCode:
    """What to answer a request that names the leader epoch ``named`` at a replica in epoch ``current``.

    FENCED_LEADER_EPOCH to an older epoch, so that the client refreshes its metadata; UNKNOWN_LEADER_EPOCH to
    a newer one, of which this replica has not been notified yet.
    """
    if named in (NO_EPOCH_NAMED, current):
        return ErrorCode.none
    return ErrorCode.fenced_leader_epoch if named < current else ErrorCode.unknown_leader_epoch
