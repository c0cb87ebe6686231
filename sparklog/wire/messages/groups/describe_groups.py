"""DescribeGroups (key 15): the state and the members of groups."""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparklog.model.errors import ErrorCode

OPERATIONS_NOT_ASKED: Final = -(2**31)
"""``authorized_operations`` when the request did not ask for them (KIP-430)."""


@dataclass(slots=True, kw_only=True)
class DescribeGroupsRequest:
    API_KEY: ClassVar[int] = 15

    groups: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False


@dataclass(slots=True, kw_only=True)
class DescribedGroupMember:
    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    member_metadata: bytes | memoryview
    member_assignment: bytes | memoryview


@dataclass(slots=True, kw_only=True)
class DescribedGroup:
    """``protocol_data`` is the name of the protocol that the members have agreed on, "" without one.

    ``authorized_operations`` has bit n set for the operation with Kafka's number n.
    """

    error_code: ErrorCode = ErrorCode.none
    group_id: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default_factory=list)
    authorized_operations: int = OPERATIONS_NOT_ASKED


@dataclass(slots=True, kw_only=True)
class DescribeGroupsResponse:
    API_KEY: ClassVar[int] = 15

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)
