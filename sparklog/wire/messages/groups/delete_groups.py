"""DeleteGroups (key 42, KIP-229): remove groups without members, and their offsets."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class DeleteGroupsRequest:
    API_KEY: ClassVar[int] = 42

    groups_names: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeletableGroupResult:
    group_id: str
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponse:
    API_KEY: ClassVar[int] = 42

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = field(default_factory=list)
