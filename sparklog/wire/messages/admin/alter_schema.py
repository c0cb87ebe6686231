"""AlterSchema (key 10008, sparklog's own): the next version of a typed topic's columns.

The request names the version that its author has seen. If there is another one by now, nothing is changed,
and the answer is INVALID_UPDATE_VERSION with the version that there is.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class AlterSchemaChange:
    """``operation``: ``add-column`` and so on; ``text``: what it is given (``sparklog/model/schema``)."""

    operation: str
    text: str


@dataclass(slots=True, kw_only=True)
class AlterSchemaRequest:
    """All ``changes`` are one version, made in their order, or none is."""

    API_KEY: ClassVar[int] = 10_008

    topic: str
    from_version: int
    changes: list[AlterSchemaChange] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterSchemaResponse:
    """``version``: the newest that there is now; 0 if that is not known."""

    API_KEY: ClassVar[int] = 10_008

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    version: int = 0
