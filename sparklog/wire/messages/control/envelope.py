"""Envelope (key 58): a client's request that a broker forwards to the controller, with who sent it."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class EnvelopeRequest:
    """``request_data`` is a whole request, header included, without the size prefix."""

    API_KEY: ClassVar[int] = 58

    request_data: bytes | memoryview
    request_principal: bytes | memoryview | None = None
    client_host_address: bytes | memoryview = b""


@dataclass(slots=True, kw_only=True)
class EnvelopeResponse:
    """``response_data`` is a whole response, header included, without the size prefix."""

    API_KEY: ClassVar[int] = 58

    response_data: bytes | memoryview | None = None
    error_code: ErrorCode = ErrorCode.none
