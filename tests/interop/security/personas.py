"""Users of dialogues: for each operation on each type of resource a user who has that right alone.

A persona is named by its right, ``topic.read``; it has the right to all resources of that type, by one rule.
So the same request, asked by each of them, shows which rights it needs and what each of them is answered.
"""

from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import CLUSTER_NAME, EVERY_NAME

ADMIN: Final = "admin"
"""The super user, who is also the broker's."""
NOBODY: Final = "nobody"
"""No rule is about this user."""
TOPIC_OPERATIONS: Final = (
    "read",
    "write",
    "create",
    "delete",
    "alter",
    "describe",
    "describe_configs",
    "alter_configs",
)
CLUSTER_OPERATIONS: Final = (
    "create",
    "alter",
    "describe",
    "describe_configs",
    "alter_configs",
    "idempotent_write",
)
OPERATIONS: Final = {
    ResourceType.topic: TOPIC_OPERATIONS,
    ResourceType.group: ("read", "delete", "describe"),
    ResourceType.cluster: CLUSTER_OPERATIONS,
    ResourceType.transactional_id: ("write", "describe"),
}
RIGHTS: Final = {
    f"{kind.name}.{operation}": (kind, AclOperation[operation])
    for kind, operations in OPERATIONS.items()
    for operation in operations
}
PERSONAS: Final = tuple(RIGHTS)
COUPLES: Final = {
    "reader": ("topic.read", "group.read"),
    "writer": ("topic.write", "transactional_id.write"),
    "transactor": ("topic.read", "group.read", "transactional_id.write"),
}
"""Users with several of the rights: what a consumer has, and producers."""
OTHERS: Final = ("alice", "bob", "witness")
"""Users about whom each dialogue makes rules of its own; ``witness`` sees when these bind."""
USERS: Final = (ADMIN, NOBODY, *PERSONAS, *COUPLES, *OTHERS)
PASSWORD: Final = "secret"


def rule(principal: str, right: str) -> dict[str, object]:
    """The entry of CreateAcls that gives the right."""
    kind, operation = RIGHTS[right]
    return {
        "resource_type": int(kind),
        "resource_name": CLUSTER_NAME if kind is ResourceType.cluster else EVERY_NAME,
        "resource_pattern_type": LITERAL,
        "principal": f"User:{principal}",
        "host": "*",
        "operation": int(operation),
        "permission_type": ALLOW,
    }


LITERAL: Final = 3
PREFIXED: Final = 4
DENY: Final = 2
ALLOW: Final = 3


def all_rules() -> list[dict[str, object]]:
    """The rules of all personas."""
    of_couples = [rule(user, right) for user, rights in COUPLES.items() for right in rights]
    return [*(rule(right, right) for right in PERSONAS), *of_couples]
