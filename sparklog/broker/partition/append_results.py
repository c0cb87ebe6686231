"""What becomes of batches that a leader is asked to append. Each outcome is a value of its own.

Those of a produce that succeeds are named tuples: they are made for every batch, and frozen dataclasses take
several times as long.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from sparklog.core.producers.latest_connections import Late
from sparklog.core.producers.producer_state import RefusedSequence
from sparklog.model.errors import ErrorCode

AFTER_A_REFUSED_ONE: Final = (
    "an earlier batch of this producer was refused, and has not been repeated: send that one first"
)


class Appended(NamedTuple):
    """The batches are in the log, from ``base_offset`` up to ``end_offset`` (exclusive). No replica is
    awaited, or all in sync have them.
    """

    base_offset: int
    log_start_offset: int
    end_offset: int
    log_append_time_ms: int = -1
    """The time that all its records got, where the topic goes by the leader's clock."""

    @property
    def waits(self) -> bool:
        return False

    @property
    def error(self) -> ErrorCode:
        return ErrorCode.none

    @property
    def message(self) -> str:
        return ""


class AwaitsReplicas(NamedTuple):
    """The batches are in this leader's log, and replicas are awaited."""

    appended: Appended
    """The result once they have the batches."""

    @property
    def waits(self) -> bool:
        return True

    @property
    def error(self) -> ErrorCode:
        return ErrorCode.none

    @property
    def message(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The wait for replicas ended with an error. The batches are in this leader's log up to ``end_offset``,
    and may still be committed; no offset is given, because they may be cut.
    """

    error: ErrorCode
    end_offset: int

    waits: ClassVar[bool] = False
    message: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The batches were not appended; with KAFKA_STORAGE_ERROR the disk may have failed in the middle."""

    error: ErrorCode
    message: str = ""
    record_errors: tuple[tuple[int, str], ...] = ()
    """Index within the batch and reason, where single records are at fault."""

    waits: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class HeldUp:
    """The batches were refused only because they follow a batch that was refused."""

    waits: ClassVar[bool] = False
    error: ClassVar[ErrorCode] = ErrorCode.not_enough_replicas
    message: ClassVar[str] = AFTER_A_REFUSED_ONE


@dataclass(frozen=True, slots=True)
class LateRequest:
    """The batches came late (``latest_connections``): their connection is closed without an answer."""

    waits: ClassVar[bool] = False
    error: ClassVar[ErrorCode] = ErrorCode.network_exception
    """What their client concludes from the closed connection."""
    message: ClassVar[str] = ""


AppendResult = Appended | AwaitsReplicas | InDoubt | Refused | HeldUp | LateRequest


def decided(result: AppendResult, error: ErrorCode) -> AppendResult:
    """A result that waited, with the outcome of replication."""
    assert isinstance(result, AwaitsReplicas), result
    if error is ErrorCode.none:
        return result.appended
    return InDoubt(error, result.appended.end_offset)


def objected(objection: RefusedSequence | Late) -> Refused | LateRequest:
    """The result of batches that ``ProducerGate.check`` objects to."""
    if isinstance(objection, Late):
        return LateRequest()
    return Refused(objection.code, objection.message)
