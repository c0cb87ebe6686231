"""Who may do what with a node of ZooKeeper, and who a client of it is.

Each node has a list of grants of its own (an ACL), and none passes to its children. A grant gives permissions
to an identity of a scheme: ``world:anyone`` is everybody, ``digest:USER:HASH`` whoever showed that user's
password. A client shows ``USER:PASSWORD`` after each connect; ZooKeeper accepts any, and hashes it. A wrong
password therefore shows at the first closed node.

What each operation needs, as ZooKeeper 3.9 checks it:

    create    CREATE at the parent      get, children, exists, check    READ, as do watches when they fire
    delete    DELETE at the parent      read the grants                 READ or ADMIN
    set       WRITE                     set the grants                  ADMIN
"""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

WORLD: Final = "world"
ANYONE: Final = "anyone"
DIGEST: Final = "digest"
AUTH: Final = "auth"


class Permissions(IntFlag):
    """ZooKeeper's bits."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    scheme: str
    identity: str
    permissions: Permissions


Acl = frozenset[Grant]
"""The grants of a node."""

OPEN: Final[Acl] = frozenset({Grant(WORLD, ANYONE, Permissions.ALL)})
"""Everybody may do everything, ZooKeeper's default."""

CREATOR_ALONE: Final[Acl] = frozenset({Grant(AUTH, "", Permissions.ALL)})
"""Everything to the digest that the client which writes this list shows. ZooKeeper itself would take its
certificate for an identity, too, and everybody with that for the creator."""

CREATOR_WRITES: Final[Acl] = CREATOR_ALONE | {Grant(WORLD, ANYONE, Permissions.READ)}
"""The same, and others read."""


def hashed(digest: str) -> str:
    """``USER:HASH`` of ``USER:PASSWORD``, by the algorithm that ZooKeeper has unless it is configured."""
    user = digest.partition(":")[0]
    return f"{user}:{base64.b64encode(hashlib.sha1(digest.encode()).digest()).decode()}"


def written_down(acl: Acl, identity: str) -> Acl:
    """``acl`` with the identity ``USER:HASH`` in the place of ``auth``."""
    return frozenset(Grant(DIGEST, identity, one.permissions) if one.scheme == AUTH else one for one in acl)


AclOfPath = Callable[[str], Acl]


def open_to_all(path: str) -> Acl:
    """The grants of nodes that are nobody's."""
    return OPEN


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """How a client of ZooKeeper shows who it is, and what it lets others do with the nodes that it creates.

    ``digest`` gives ``USER:PASSWORD``, anew at each connect, as a password may change; None shows nothing.
    ``acl_of`` takes a path below the client's chroot.
    """

    digest: Callable[[], str] | None = None
    acl_of: AclOfPath = open_to_all


OPEN_ACCESS: Final = NodeAccess()
"""A client that shows nothing, and whose nodes are everybody's."""
