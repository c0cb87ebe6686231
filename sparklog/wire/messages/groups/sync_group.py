"""SyncGroup (key 14): the leader hands in the assignment of every member, and each member gets its own."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class SyncGroupRequestAssignment:
    member_id: str
    assignment: bytes | memoryview


@dataclass(slots=True, kw_only=True)
class SyncGroupRequest:
    """``assignments`` is empty but for the leader's. Version 5 names the protocol (KIP-559)."""

    API_KEY: ClassVar[int] = 14
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"protocol_type", "protocol_name"})

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class SyncGroupResponse:
    API_KEY: ClassVar[int] = 14

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes | memoryview = b""
