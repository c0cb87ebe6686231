"""InitProducerId (key 22): a producer id and epoch for an idempotent or transactional producer."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class InitProducerIdRequest:
    """Without a transactional id the timeout means nothing: clients send -1, 0 or 2^31-1."""

    API_KEY: ClassVar[int] = 22

    transactional_id: str | None = None
    transaction_timeout_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class InitProducerIdResponse:
    API_KEY: ClassVar[int] = 22

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    producer_id: int = -1
    producer_epoch: int = -1
