"""SaslHandshake (key 17, KIP-43): choose the mechanism by which a client authenticates itself."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class SaslHandshakeRequest:
    API_KEY: ClassVar[int] = 17

    mechanism: str


@dataclass(slots=True, kw_only=True)
class SaslHandshakeResponse:
    """``mechanisms`` are those that the listener has."""

    API_KEY: ClassVar[int] = 17

    error_code: ErrorCode = ErrorCode.none
    mechanisms: list[str] = field(default_factory=list)
