"""DescribeAcls (key 29, KIP-140): the access control rules that a filter takes.

The numbers are those of ``sparklog.core.security.acl``; 1 stands for any, and null for any text.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode

LITERAL = 3
"""The pattern type of a resource that is named as it is (KIP-290)."""


@dataclass(slots=True, kw_only=True)
class DescribeAclsRequest:
    API_KEY: ClassVar[int] = 29

    resource_type_filter: int
    resource_name_filter: str | None = None
    pattern_type_filter: int = LITERAL
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int
    permission_type: int


@dataclass(slots=True, kw_only=True)
class AclDescription:
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(slots=True, kw_only=True)
class DescribeAclsResource:
    resource_type: int
    resource_name: str
    pattern_type: int = LITERAL
    acls: list[AclDescription] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeAclsResponse:
    API_KEY: ClassVar[int] = 29

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    resources: list[DescribeAclsResource] = field(default_factory=list)
