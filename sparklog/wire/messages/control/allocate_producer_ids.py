"""AllocateProducerIds (key 67): a broker takes a block of producer ids from the controller."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class AllocateProducerIdsRequest:
    API_KEY: ClassVar[int] = 67

    broker_id: int
    broker_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class AllocateProducerIdsResponse:
    """The block is ``producer_id_len`` ids from ``producer_id_start`` on."""

    API_KEY: ClassVar[int] = 67

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    producer_id_start: int = -1
    producer_id_len: int = 0
