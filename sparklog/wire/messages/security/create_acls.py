"""CreateAcls (key 30, KIP-140): add access control rules, each answered for itself."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.describe_acls import LITERAL


@dataclass(slots=True, kw_only=True)
class AclCreation:
    resource_type: int
    resource_name: str
    resource_pattern_type: int = LITERAL
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(slots=True, kw_only=True)
class CreateAclsRequest:
    API_KEY: ClassVar[int] = 30

    creations: list[AclCreation] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AclCreationResult:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class CreateAclsResponse:
    """``results`` in the order of the request."""

    API_KEY: ClassVar[int] = 30

    throttle_time_ms: int = 0
    results: list[AclCreationResult] = field(default_factory=list)
