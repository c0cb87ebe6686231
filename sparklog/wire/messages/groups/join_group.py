"""JoinGroup (key 11): become a member of a group, and wait for the group's next generation.

Version 1 adds the rebalance time-out (KIP-62), version 5 static members (KIP-345), version 7 the protocol's
type in the response (KIP-559), version 8 a reason (KIP-800), version 9 ``skip_assignment`` (KIP-814).
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class JoinGroupRequestProtocol:
    """``metadata`` is opaque to the coordinator: a consumer's subscription, for example."""

    name: str
    metadata: bytes | memoryview


@dataclass(slots=True, kw_only=True)
class JoinGroupRequest:
    """``rebalance_timeout_ms`` -1, in version 0, stands for the session time-out."""

    API_KEY: ClassVar[int] = 11
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"rebalance_timeout_ms", "reason"})

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str
    protocols: list[JoinGroupRequestProtocol] = field(default_factory=list)
    reason: str | None = None


@dataclass(slots=True, kw_only=True)
class JoinGroupResponseMember:
    member_id: str
    group_instance_id: str | None = None
    metadata: bytes | memoryview


@dataclass(slots=True, kw_only=True)
class JoinGroupResponse:
    """``members`` is for the leader alone. ``skip_assignment``: the leader must not assign anew."""

    API_KEY: ClassVar[int] = 11

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list)
