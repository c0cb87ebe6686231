"""ListTransactions (key 66): the transactional ids that a broker coordinates (KIP-664)."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ListTransactionsRequest:
    """An empty filter lets everything pass."""

    API_KEY: ClassVar[int] = 66

    state_filters: list[str] = field(default_factory=list)
    producer_id_filters: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TransactionState:
    transactional_id: str
    producer_id: int
    transaction_state: str


@dataclass(slots=True, kw_only=True)
class ListTransactionsResponse:
    """``unknown_state_filters``: filters that name no state."""

    API_KEY: ClassVar[int] = 66

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    unknown_state_filters: list[str] = field(default_factory=list)
    transaction_states: list[TransactionState] = field(default_factory=list)
