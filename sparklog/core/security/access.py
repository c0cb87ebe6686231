"""What one requester may do, as handlers ask for it.

Without an authorizer everybody may do everything. Rights that a request needs are logged when they lack;
what a list leaves out is no denial.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType, Right
from sparklog.core.security.authorizer import Authorizer, bits
from sparklog.core.security.requester import Requester
from sparklog.core.security.rules import CLUSTER_NAME

OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = MappingProxyType(
    {
        ResourceType.topic: (
            AclOperation.read,
            AclOperation.write,
            AclOperation.create,
            AclOperation.delete,
            AclOperation.alter,
            AclOperation.describe,
            AclOperation.describe_configs,
            AclOperation.alter_configs,
        ),
        ResourceType.group: (AclOperation.read, AclOperation.delete, AclOperation.describe),
        ResourceType.cluster: (
            AclOperation.create,
            AclOperation.alter,
            AclOperation.describe,
            AclOperation.cluster_action,
            AclOperation.describe_configs,
            AclOperation.alter_configs,
            AclOperation.idempotent_write,
        ),
    }
)
"""What can be done to a resource, by its type: as in Kafka's AclEntry."""

OnDenial = Callable[[Requester, AclOperation, ResourceType, str], None]


def every_operation(resource: ResourceType) -> int:
    """All that can be done to a resource of this type, as bits: what a cluster without rules answers."""
    return bits(OPERATIONS[resource])


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of one requester, by the rules of now."""

    authorizer: Authorizer
    requester: Requester
    on_denial: OnDenial

    def allows(self, operation: AclOperation, resource: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Whether the request may go on; a denial is reported."""
        is_allowed = self.authorizer.allows(self.requester, operation, resource, name)
        if not is_allowed:
            self.on_denial(self.requester, operation, resource, name)
        return is_allowed

    def sees(self, operation: AclOperation, resource: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """As ``allows``, of what is left out without it."""
        return self.authorizer.allows(self.requester, operation, resource, name)

    def filter(self, operation: AclOperation, resource: ResourceType, names: Iterable[str]) -> frozenset[str]:
        """Those of ``names`` that a list may show."""
        return frozenset(name for name in set(names) if self.sees(operation, resource, name))

    def has(self, right: Right, name: str = CLUSTER_NAME) -> bool:
        """Whether the requester has the right on ``name``, or one that suffices without it."""
        if self.shows(right, name):
            return True
        lacking = right.refusal
        self.on_denial(self.requester, lacking.operation, lacking.resource, self._name(lacking, name))
        return False

    def shows(self, right: Right, name: str = CLUSTER_NAME) -> bool:
        """As ``has``, of what is left out without it."""
        return any(self._has(one, name) for one in right.alternatives)

    def _has(self, right: Right, name: str) -> bool:
        if right.is_of_any:
            return self.authorizer.allows_any(self.requester, right.operation, right.resource)
        return self.sees(right.operation, right.resource, self._name(right, name))

    @staticmethod
    def _name(right: Right, name: str) -> str:
        return CLUSTER_NAME if right.resource is ResourceType.cluster else name

    def operations(self, resource: ResourceType, name: str = CLUSTER_NAME) -> int:
        """What the requester may do to the resource, as bits."""
        return self.authorizer.operations(self.requester, OPERATIONS[resource], resource, name)
