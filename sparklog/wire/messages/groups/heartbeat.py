"""Heartbeat (key 12): a member's sign of life, answered by whether the group rebalances."""

from dataclasses import dataclass
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class HeartbeatRequest:
    API_KEY: ClassVar[int] = 12

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@dataclass(slots=True, kw_only=True)
class HeartbeatResponse:
    API_KEY: ClassVar[int] = 12

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
