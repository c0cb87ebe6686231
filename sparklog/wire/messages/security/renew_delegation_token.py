"""RenewDelegationToken (key 39, KIP-48): the owner or a renewer prolongs a token."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class RenewDelegationTokenRequest:
    API_KEY: ClassVar[int] = 39

    hmac: bytes | memoryview
    renew_period_ms: int


@dataclass(slots=True, kw_only=True)
class RenewDelegationTokenResponse:
    """``expiry_timestamp_ms`` in wall-clock ms; -1 beside an error."""

    API_KEY: ClassVar[int] = 39

    error_code: ErrorCode = ErrorCode.none
    expiry_timestamp_ms: int = -1
    throttle_time_ms: int = 0
