"""A session with ZooKeeper as settings ask for it."""

from typing import TYPE_CHECKING

from sparklog.core.controller.state.node_acls import closed_acl
from sparklog.credentials.references import reveal
from sparklog.model.settings.zookeeper_settings import ZooKeeperSettings, refuse_unfit_digest
from sparklog.model.zookeeper_access import NodeAccess, open_to_all
from sparklog.zookeeper.kazoo_adapter import SESSION_TIMEOUT_MS
from sparklog.zookeeper.kazoo_admin import KazooAdmin

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient


def new_session(
    connect_string: str, settings: ZooKeeperSettings, session_timeout_ms: int = SESSION_TIMEOUT_MS
) -> KazooAdmin:
    """A session that has not started. ConfigError if what the settings name cannot be had here."""
    return KazooAdmin(connect_string, session_timeout_ms, access=node_access(settings), tls=tls_of(settings))


def tls_of(settings: ZooKeeperSettings) -> "TlsClient | None":
    """How connections are encrypted, if they are; ConfigError if stores do not work now."""
    if settings.tls is None:
        return None
    # Heavy, and most connections are in the clear.
    from sparklog.network.tls.from_settings import client_side

    return client_side(settings.tls)


def node_access(settings: ZooKeeperSettings) -> NodeAccess:
    """Whom a client shows, by references that are resolved at each connect, and who may change its nodes."""
    secret = settings.digest
    if secret is None:
        return NodeAccess()

    def digest() -> str:
        found = reveal(secret)
        refuse_unfit_digest(found)
        return found

    return NodeAccess(digest, closed_acl if settings.closes_nodes else open_to_all)
