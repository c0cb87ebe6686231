"""AddOffsetsToTxn (key 25): a producer is about to commit a group's offsets in its transaction."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnRequest:
    API_KEY: ClassVar[int] = 25

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnResponse:
    API_KEY: ClassVar[int] = 25

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
