"""DescribeUserScramCredentials (key 50, KIP-554): which users have passwords for SCRAM."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class UserName:
    name: str


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest:
    """``users``: null or empty for all of them."""

    API_KEY: ClassVar[int] = 50

    users: list[UserName] | None = None


@dataclass(slots=True, kw_only=True)
class CredentialInfo:
    """``mechanism``: 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""

    mechanism: int
    iterations: int


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResult:
    user: str
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    credential_infos: list[CredentialInfo] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse:
    """An error of a user is in its result."""

    API_KEY: ClassVar[int] = 50

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)
