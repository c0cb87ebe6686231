"""ExpireDelegationToken (key 40, KIP-48): the owner or a renewer shortens a token's life.

A negative time ends it at once.
"""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ExpireDelegationTokenRequest:
    API_KEY: ClassVar[int] = 40

    hmac: bytes | memoryview
    expiry_time_period_ms: int


@dataclass(slots=True, kw_only=True)
class ExpireDelegationTokenResponse:
    """``expiry_timestamp_ms`` in wall-clock ms; -1 beside an error."""

    API_KEY: ClassVar[int] = 40

    error_code: ErrorCode = ErrorCode.none
    expiry_timestamp_ms: int = -1
    throttle_time_ms: int = 0
