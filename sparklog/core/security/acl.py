"""The words of access control lists, with Kafka's numbers (KIP-11, KIP-140)."""

import enum
from dataclasses import dataclass

from sparklog.core.security.conditions import Condition


class AclOperation(enum.IntEnum):
    """What somebody may be allowed to do to a resource."""

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

    ``condition`` says which requests of an API need this right.
    """

    operation: AclOperation
    resource: ResourceType
    condition: Condition = Condition.always

    def __str__(self) -> str:
        name = f"{self.operation.name.upper()} on {self.resource.name.upper()}"
        return name if self.condition is Condition.always else f"{name} ({self.condition.value})"
