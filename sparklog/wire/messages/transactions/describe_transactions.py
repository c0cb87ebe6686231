"""DescribeTransactions (key 65): the state and the partitions of transactional ids (KIP-664)."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsRequest:
    API_KEY: ClassVar[int] = 65

    transactional_ids: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopicData:
    topic: str
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TransactionState:
    """``transaction_start_time_ms`` by the wall clock, -1 if no transaction has begun."""

    error_code: ErrorCode = ErrorCode.none
    transactional_id: str
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    topics: list[TopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsResponse:
    API_KEY: ClassVar[int] = 65

    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = field(default_factory=list)
