"""Grants of nodes as kazoo has them, and back."""

from collections.abc import Iterable
from typing import Any

from kazoo.security import ACL, Id

from sparklog.model.zookeeper_access import Acl, Grant, Permissions


def to_kazoo(acl: Acl) -> list[Any]:
    return [ACL(int(grant.permissions), Id(grant.scheme, grant.identity)) for grant in sorted(acl)]


def from_kazoo(acls: Iterable[Any]) -> Acl:
    return frozenset(Grant(one.id.scheme, one.id.id, Permissions(one.perms)) for one in acls)
