"""DescribeDelegationToken (key 41, KIP-48): the tokens of owners, of all of them if none is named."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenOwner:
    principal_type: str
    principal_name: str


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenRequest:
    """``owners``: null for all of them."""

    API_KEY: ClassVar[int] = 41

    owners: list[DescribeDelegationTokenOwner] | None = None


@dataclass(slots=True, kw_only=True)
class DescribedDelegationTokenRenewer:
    principal_type: str
    principal_name: str


@dataclass(slots=True, kw_only=True)
class DescribedDelegationToken:
    """Times in wall-clock ms."""

    IGNORABLE: ClassVar[frozenset[str]] = frozenset(
        {"token_requester_principal_type", "token_requester_principal_name"}
    )

    principal_type: str
    principal_name: str
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
    token_id: str
    hmac: bytes | memoryview
    renewers: list[DescribedDelegationTokenRenewer] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenResponse:
    API_KEY: ClassVar[int] = 41

    error_code: ErrorCode = ErrorCode.none
    tokens: list[DescribedDelegationToken] = field(default_factory=list)
    throttle_time_ms: int = 0
