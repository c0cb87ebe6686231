"""Whether this client may use the nodes of its cluster, asked before anything depends on it.

ZooKeeper accepts any digest, so that a wrong password shows at the first closed node alone.
"""

from typing import Final

from sparklog.core.controller.state.quota_nodes import USER_CONFIGS
from sparklog.core.controller.state.znodes import BROKER_IDS
from sparklog.model.zookeeper import (
    AccessRefused,
    Check,
    Create,
    MultiFailed,
    Unread,
    ZooKeeper,
    ZooKeeperAdmin,
)
from sparklog.model.zookeeper_access import CREATOR_ALONE

_BRIEF: Final = "access_check"
_NO_VERSION: Final = 2**31 - 1


def check_access(zookeeper: ZooKeeper) -> None:
    """Raises AccessRefused if nodes are closed to this client. Changes nothing."""
    _check_create(zookeeper, "/")
    if zookeeper.exists(USER_CONFIGS) is not None:
        zookeeper.children(USER_CONFIGS)
    if zookeeper.exists(BROKER_IDS) is not None:
        _check_create(zookeeper, BROKER_IDS)


def check_digest(zookeeper: ZooKeeperAdmin) -> None:
    """Raises AccessRefused if what this client closes would be closed to itself: a server may hash passwords
    by another algorithm. Makes a node for a moment.
    """
    path = f"/{_BRIEF}-{zookeeper.session_id:x}"
    zookeeper.create(path, ephemeral=True)
    refusal = zookeeper.set_acls({path: CREATOR_ALONE})[path]
    (acl,) = zookeeper.acls([path])
    zookeeper.delete(path)
    if refusal is not None or isinstance(acl, Unread):
        raise AccessRefused(
            "ZooKeeper does not know zookeeper.digest by its SHA-1 hash: let its servers have the default of "
            "zookeeper.DigestAuthenticationProvider.digestAlg"
        )


def _check_create(zookeeper: ZooKeeper, parent: str) -> None:
    """Ask for a node, together with a check that fails: so rights are judged, and nothing is made."""
    path = f"{parent.rstrip('/')}/{_BRIEF}"
    try:
        zookeeper.multi([Create(path), Check("/", _NO_VERSION)])
    except MultiFailed:
        return  # the check, as it was meant to
