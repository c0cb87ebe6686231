"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

Version 4 asks about many keys at once (``coordinator_keys``, ``coordinators``); earlier ones about one
(``key``, and the answer in the response's own fields).
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparklog.model.errors import ErrorCode

GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1


@dataclass(slots=True, kw_only=True)
class FindCoordinatorRequest:
    API_KEY: ClassVar[int] = 10

    key: str = ""
    key_type: int = GROUP_KEY
    coordinator_keys: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Coordinator:
    key: str
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class FindCoordinatorResponse:
    API_KEY: ClassVar[int] = 10

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    node_id: int = -1
    host: str = ""
    port: int = -1
    coordinators: list[Coordinator] = field(default_factory=list)
