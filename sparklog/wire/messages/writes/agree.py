"""Agree (key 10002, sparklog's own): the first value that was put under a name, the same for all who ask."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class AgreeRequest:
    """``value`` is put if there is none yet; null only asks."""

    API_KEY: ClassVar[int] = 10_002

    name: str
    value: bytes | None = None


@dataclass(slots=True, kw_only=True)
class AgreeResponse:
    """``value``: the first one that was put; null if there is none, or with an error."""

    API_KEY: ClassVar[int] = 10_002

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    value: bytes | None = None
