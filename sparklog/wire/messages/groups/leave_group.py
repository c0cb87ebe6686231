"""LeaveGroup (key 13): members leave their group.

Up to version 2 a request names one member (``member_id``), from version 3 on several (``members``, KIP-345).
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class MemberIdentity:
    """A static member may be named by its ``group_instance_id`` alone, with an empty ``member_id``."""

    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"reason"})

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(slots=True, kw_only=True)
class LeaveGroupRequest:
    API_KEY: ClassVar[int] = 13

    group_id: str
    member_id: str = ""
    members: list[MemberIdentity] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MemberResponse:
    member_id: str
    group_instance_id: str | None = None
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class LeaveGroupResponse:
    API_KEY: ClassVar[int] = 13

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    members: list[MemberResponse] = field(default_factory=list)
