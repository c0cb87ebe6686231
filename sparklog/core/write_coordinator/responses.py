"""The answers to requests about writes. An ``outcome`` counts only without an ``error``."""

from dataclasses import dataclass
from typing import Final

from sparklog.core.write_coordinator.records import NO_VERSION
from sparklog.model.errors import ErrorCode
from sparklog.model.write_outcomes import EndOutcome, OpenOutcome

NO_PRODUCER_ID: Final = -1


@dataclass(frozen=True, slots=True)
class OpenedWrite:
    """``version`` is that of ALREADY_COMMITTED and OLDER_VERSION."""

    error: ErrorCode = ErrorCode.none
    outcome: OpenOutcome = OpenOutcome.MEMBER
    producer_id: int = NO_PRODUCER_ID
    version: int = NO_VERSION


@dataclass(frozen=True, slots=True)
class EndedWrite:
    """``version`` is that of ALREADY_COMMITTED and OLDER_VERSION; ``topic`` is the lost one."""

    error: ErrorCode = ErrorCode.none
    outcome: EndOutcome = EndOutcome.COMMITTED
    version: int = NO_VERSION
    producer_id: int = NO_PRODUCER_ID
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Agreed:
    """``value`` is the first one of its name, which may be the request's; None if there is none yet."""

    error: ErrorCode = ErrorCode.none
    value: bytes | None = None
