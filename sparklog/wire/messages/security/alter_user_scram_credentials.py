"""AlterUserScramCredentials (key 51, KIP-554): set and delete users' passwords for SCRAM."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ScramCredentialDeletion:
    name: str
    mechanism: int


@dataclass(slots=True, kw_only=True)
class ScramCredentialUpsertion:
    """``salted_password`` is worth the password, and is shown nowhere."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes | memoryview
    salted_password: bytes | memoryview = field(repr=False)


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsRequest:
    """``mechanism``: 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""

    API_KEY: ClassVar[int] = 51

    deletions: list[ScramCredentialDeletion] = field(default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsResult:
    user: str
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsResponse:
    API_KEY: ClassVar[int] = 51

    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = field(default_factory=list)
