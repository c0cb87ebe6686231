"""DeleteAcls (key 31, KIP-140): delete the access control rules that each of several filters takes."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.describe_acls import LITERAL


@dataclass(slots=True, kw_only=True)
class DeleteAclsFilter:
    resource_type_filter: int
    resource_name_filter: str | None = None
    pattern_type_filter: int = LITERAL
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int
    permission_type: int


@dataclass(slots=True, kw_only=True)
class DeleteAclsRequest:
    API_KEY: ClassVar[int] = 31

    filters: list[DeleteAclsFilter] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteAclsMatchingAcl:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    resource_type: int
    resource_name: str
    pattern_type: int = LITERAL
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(slots=True, kw_only=True)
class DeleteAclsFilterResult:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteAclsResponse:
    """``filter_results`` in the order of the request."""

    API_KEY: ClassVar[int] = 31

    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = field(default_factory=list)
