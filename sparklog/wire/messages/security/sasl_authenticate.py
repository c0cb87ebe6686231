"""SaslAuthenticate (key 36, KIP-152): one step of the mechanism that SaslHandshake has chosen."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class SaslAuthenticateRequest:
    API_KEY: ClassVar[int] = 36

    auth_bytes: bytes | memoryview


@dataclass(slots=True, kw_only=True)
class SaslAuthenticateResponse:
    """``session_lifetime_ms`` 0: the client need not authenticate itself again (KIP-368)."""

    API_KEY: ClassVar[int] = 36

    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    auth_bytes: bytes | memoryview = b""
    session_lifetime_ms: int = 0
