"""What a replica's machine tells its shell to do.

*Log effects* (``AssignEpoch``, ``TruncateTo``, ``RestartAt``, ``RaiseLogStart``) are part of the step that
returned them: the shell carries them out under the partition's lock, before anything else, so that machine
and log never disagree. All others are *outward effects*: they leave, in order, after the lock is released.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.epoch_history import EarlierHistory
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True)
class AssignEpoch:
    """Log effect: note in the epoch history that ``epoch`` begins at ``start_offset``."""

    epoch: LeaderEpoch
    start_offset: int


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Log effect: remove every record at or above ``offset``."""

    offset: int


@dataclass(frozen=True, slots=True)
class RestartAt:
    """Log effect: drop the whole log and begin again, empty, at ``offset``.

    ``producers`` is what its leader knows of producers from before that offset, if it said so. ``history``
    is what the remote store has before that offset; without it the log start is there too.
    """

    offset: int
    producers: ProducerStates | None = field(default=None, repr=False)
    history: EarlierHistory | None = None


@dataclass(frozen=True, slots=True)
class RaiseLogStart:
    """Log effect: nothing below ``offset`` is readable any more."""

    offset: int


@dataclass(frozen=True, slots=True)
class CompleteProduce:
    """Answer the produce that waits under ``token``."""

    token: int
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class CompleteDeletion:
    """Answer the deletion of records that waits under ``token``: no live replica has any below
    ``low_watermark``."""

    token: int
    error: ErrorCode
    low_watermark: int = -1


@dataclass(frozen=True, slots=True)
class WakeFetch:
    """Look again at the fetch that waits under ``token``: there may be bytes, or an error, for it."""

    token: int


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Ask the controller to change the ISR (AlterPartition v3, KIP-903: members with broker epochs)."""

    proposal: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    members: tuple[tuple[BrokerId, BrokerEpoch], ...]


@dataclass(frozen=True, slots=True)
class StartFetching:
    """Fetch from ``leader``; whatever fetched for this partition before stops."""

    leader: BrokerId
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Fetch no more: this replica leads, or its leader is not known."""


@dataclass(frozen=True, slots=True)
class BeganLeading:
    """Notify listeners: this replica leads since ``leader_epoch``. A ``CeasedLeading`` of it follows."""

    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class CeasedLeading:
    """Notify listeners: this replica leads no more in ``leader_epoch``. Its successor may lead already."""

    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class AskLeaderOffsets:
    """The fetch offset is outside the leader's log: ask for the offsets at which that starts and ends."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """Leave this partition out of fetches for a while; ``error`` says why."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class FlushLog:
    """Bring the log to disk, soon: somebody waits for it, or enough has gathered."""


@dataclass(frozen=True, slots=True)
class ReportLogFailure:
    """The disk failed under this replica's log: it is served here no more until the broker starts again.

    ``is_suspect``: an fsync failed, so what the log holds now may not be what the disk has.
    """

    reason: str
    is_suspect: bool = False


@dataclass(frozen=True, slots=True)
class CheckLog:
    """A follower asks for the same again and again: see whether it is intact from ``offset`` on."""

    offset: int


@dataclass(frozen=True, slots=True)
class HandOver:
    """Part of this leader's log is damaged, and others in the ISR have it: have one of them lead instead."""


LogEffect = AssignEpoch | TruncateTo | RestartAt | RaiseLogStart
OutwardEffect = (
    CompleteProduce
    | CompleteDeletion
    | WakeFetch
    | ProposeIsr
    | StartFetching
    | StopFetching
    | BeganLeading
    | CeasedLeading
    | AskLeaderOffsets
    | BackOff
    | FlushLog
    | ReportLogFailure
    | CheckLog
    | HandOver
)
Action = LogEffect | OutwardEffect

LOG_EFFECTS = (AssignEpoch, TruncateTo, RestartAt, RaiseLogStart)


def split_actions(actions: Sequence[Action]) -> tuple[list[LogEffect], list[OutwardEffect]]:
    """The effects on the log, and those that leave after the lock; each in its order."""
    log_effects = [action for action in actions if isinstance(action, LOG_EFFECTS)]
    outward = [action for action in actions if not isinstance(action, LOG_EFFECTS)]
    return log_effects, outward
