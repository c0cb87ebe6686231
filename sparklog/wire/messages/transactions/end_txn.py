"""EndTxn (key 26): commit or abort the open transaction of a transactional id."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class EndTxnRequest:
    """``committed`` False aborts."""

    API_KEY: ClassVar[int] = 26

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


@dataclass(slots=True, kw_only=True)
class EndTxnResponse:
    API_KEY: ClassVar[int] = 26

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
