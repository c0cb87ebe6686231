"""Rules: who may do what to which resources, or may not (KIP-11, prefixes KIP-290).

A rule stands under a pattern, which covers resources of one type: the one that it names, those whose names
begin with it, or, for the literal ``*``, all of them.
"""

import enum
from dataclasses import dataclass
from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType

ANYBODY: Final = "User:*"
"""The principal of a rule for everybody, also for those who have not logged in."""

ANYWHERE: Final = "*"
"""The host of a rule that holds wherever a request comes from."""

EVERY_NAME: Final = "*"
"""The name of a literal pattern that covers all resources of its type."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type ``cluster``."""


class PatternType(enum.IntEnum):
    """With Kafka's numbers."""

    literal = 3
    prefixed = 4


class Permission(enum.IntEnum):
    """With Kafka's numbers."""

    deny = 2
    allow = 3


@dataclass(frozen=True, slots=True)
class Pattern:
    """The resources that rules are about."""

    resource: ResourceType
    name: str
    kind: PatternType = PatternType.literal

    def __str__(self) -> str:
        return f"{self.kind.name} {self.resource.name} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Rule:
    """``principal`` is a type and a name (``User:alice``), or ``User:*``; ``host`` an address, or ``*``."""

    principal: str
    operation: AclOperation
    permission: Permission = Permission.allow
    host: str = ANYWHERE


Rules = frozenset[Rule]

CLOSED: Final[Rules] = frozenset({Rule(ANYBODY, AclOperation.all, Permission.deny)})
"""What stands for rules that cannot be read: nobody but super users gets at what their pattern covers."""
