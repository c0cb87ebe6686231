"""ListGroups (key 16): the groups that a broker coordinates; version 4 has their states (KIP-518)."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ListGroupsRequest:
    """An empty ``states_filter`` asks for groups in every state."""

    API_KEY: ClassVar[int] = 16

    states_filter: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str = ""


@dataclass(slots=True, kw_only=True)
class ListGroupsResponse:
    API_KEY: ClassVar[int] = 16

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    groups: list[ListedGroup] = field(default_factory=list)
