"""The words of access control lists, with Kafka's numbers (KIP-11, KIP-140)."""

import enum
from dataclasses import dataclass

from sparklog.core.security.conditions import Condition


class AclOperation(enum.IntEnum):
    """What a rule allows or denies, and what a request needs. A request never needs ``all``, which only rules
    have: it stands for every operation.
    """

    all = 2
    read = 3
    write = 4
    create = 5
    delete = 6
    alter = 7
    describe = 8
    cluster_action = 9
    describe_configs = 10
    alter_configs = 11
    idempotent_write = 12
    create_tokens = 13
    describe_tokens = 14


class ResourceType(enum.IntEnum):
    """What a right is about. There is one resource of type ``cluster``; the others have names."""

    topic = 2
    group = 3
    cluster = 4
    transactional_id = 5
    delegation_token = 6
    user = 7


@dataclass(frozen=True, slots=True)
class Right:
    """An operation on a resource, or on each resource of that type that a request names.

    ``condition`` says which requests of an API need this right. ``or_else`` suffices for a request that lacks
    it. With ``is_of_any``, the right on a single resource suffices, whichever it is (KIP-679).
    """

    operation: AclOperation
    resource: ResourceType
    condition: Condition = Condition.always
    or_else: "Right | None" = None
    is_of_any: bool = False

    @property
    def alternatives(self) -> "tuple[Right, ...]":
        """This right, and those that suffice without it."""
        return (self, *(self.or_else.alternatives if self.or_else else ()))

    @property
    def refusal(self) -> "Right":
        """The right whose lack is reported, of those that suffice: the last one with a name."""
        return next(one for one in reversed(self.alternatives) if not one.is_of_any)

    def __str__(self) -> str:
        any_ = "any " if self.is_of_any else ""
        name = f"{self.operation.name.upper()} on {any_}{self.resource.name.upper()}"
        case = f" ({self.condition.value})" if self.condition.value else ""
        return f"{name}{case}, or else {self.or_else}" if self.or_else else f"{name}{case}"
