"""Who a session of a tree in memory is, and what grants let it do: as a ZooKeeper server judges."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sparklog.model.zookeeper_access import (
    DIGEST,
    WORLD,
    Acl,
    Grant,
    NodeAccess,
    Permissions,
    hashed,
    open_to_all,
    written_down,
)

_MASK: Final = "x"


@dataclass(frozen=True, slots=True)
class Shown:
    """``identity`` is ``USER:HASH``, and empty for a client that shows nothing."""

    identity: str = ""
    chosen: Callable[[str], Acl] = open_to_all

    @classmethod
    def by(cls, access: NodeAccess) -> "Shown":
        return cls("" if access.digest is None else hashed(access.digest()), access.acl_of)

    def acl_of(self, path: str) -> Acl:
        """The grants of a node that this client creates, as they are stored."""
        return written_down(self.chosen(path), self.identity)

    def may(self, acl: Acl, permission: Permissions) -> bool:
        return any(grant.permissions & permission and self._is(grant) for grant in acl)

    def masked(self, acl: Acl) -> Acl:
        return frozenset(
            Grant(one.scheme, f"{one.identity.partition(':')[0]}:{_MASK}", one.permissions)
            if one.scheme == DIGEST
            else one
            for one in acl
        )

    def _is(self, grant: Grant) -> bool:
        return grant.scheme == WORLD or (grant.scheme == DIGEST and grant.identity == self.identity)


STRANGER: Final = Shown()
