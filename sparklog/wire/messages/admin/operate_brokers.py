"""OperateBrokers (key 10006, sparklog's own): begin or cancel an operation on brokers.

The controller answers once the operation is written, and carries it out then; ClusterReport says how far it
is.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class OperateBrokersRequest:
    """``action``: start, stop, restart, drain, fill, remove, or cancel, which names an ``operation``.

    ``request``: drawn by the requester; one that is sent again begins nothing. ``is_all``: a restart of all
    brokers that are to serve. ``throttle``: bytes a second, 0 for none.
    """

    API_KEY: ClassVar[int] = 10_006

    action: str = ""
    brokers: list[int] = field(default_factory=list)
    is_all: bool = False
    operation: int = -1
    request: str = ""
    accepts_unavailable: bool = False
    throttle: int = 0


@dataclass(slots=True, kw_only=True)
class OperateBrokersResponse:
    """``operation``: the id of what has begun, or is being cancelled; -1 with an error."""

    API_KEY: ClassVar[int] = 10_006

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    operation: int = -1
