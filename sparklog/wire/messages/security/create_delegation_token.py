"""CreateDelegationToken (key 38, KIP-48): a token with which others act for its owner.

Version 3 names an owner other than who asks (KIP-373).
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class CreatableRenewers:
    principal_type: str
    principal_name: str


@dataclass(slots=True, kw_only=True)
class CreateDelegationTokenRequest:
    """``max_lifetime_ms`` -1 stands for the broker's own maximum."""

    API_KEY: ClassVar[int] = 38

    owner_principal_type: str | None = None
    owner_principal_name: str | None = None
    renewers: list[CreatableRenewers] = field(default_factory=list)
    max_lifetime_ms: int


@dataclass(slots=True, kw_only=True)
class CreateDelegationTokenResponse:
    """Times in wall-clock ms; -1, and no id and HMAC, beside an error."""

    API_KEY: ClassVar[int] = 38
    IGNORABLE: ClassVar[frozenset[str]] = frozenset(
        {"token_requester_principal_type", "token_requester_principal_name"}
    )

    error_code: ErrorCode = ErrorCode.none
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = -1
    expiry_timestamp_ms: int = -1
    max_timestamp_ms: int = -1
    token_id: str = ""
    hmac: bytes | memoryview = b""
    throttle_time_ms: int = 0
