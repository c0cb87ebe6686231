"""Commands about access rules."""

from dataclasses import dataclass
from typing import Literal

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule
from sparklog.model.errors import ErrorCode

PatternMatch = Literal["any", "match"] | PatternType
"""Which kinds of patterns a filter takes. ``match``: those that cover the resource of the filter's name."""


@dataclass(frozen=True, slots=True)
class AclBinding:
    """A rule with the pattern that it stands under."""

    pattern: Pattern
    rule: Rule


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Takes the bindings that have all of these; None takes every value."""

    resource: ResourceType | None = None
    name: str | None = None
    kind: PatternMatch = "any"
    principal: str | None = None
    host: str | None = None
    operation: AclOperation | None = None
    permission: Permission | None = None


@dataclass(frozen=True, slots=True)
class CreateAcls:
    """Each is a binding, or the reason for which what was sent is none."""

    bindings: tuple[AclBinding | str, ...]


@dataclass(frozen=True, slots=True)
class DeleteAcls:
    """Each is a filter, or the reason for which what was sent is none."""

    filters: tuple[AclFilter | str, ...]


@dataclass(frozen=True, slots=True)
class DescribeAcls:
    filter: AclFilter | str


@dataclass(frozen=True, slots=True)
class AclResult:
    """The result of a binding that was to be created, or of a filter, with the bindings that it deleted."""

    error: ErrorCode = ErrorCode.none
    message: str = ""
    deleted: tuple[AclBinding, ...] = ()


@dataclass(frozen=True, slots=True)
class AclResults:
    """In the order of the request."""

    results: tuple[AclResult, ...]


@dataclass(frozen=True, slots=True)
class DescribedAcls:
    bindings: tuple[AclBinding, ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str = ""
