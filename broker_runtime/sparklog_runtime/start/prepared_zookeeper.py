"""Before a start uses ZooKeeper: is its password the right one, and are nodes closed as settings ask?"""

from collections.abc import Callable

from sparklog.model.settings.config import BrokerConfig
from sparklog.zookeeper.access_check import check_access, check_digest
from sparklog.zookeeper.configured_session import new_session
from sparklog.zookeeper.kazoo_admin import KazooAdmin
from sparklog.zookeeper.tree_access import Goal, NotPrepared, convert, is_open


def prepare_zookeeper(
    connect_string: str, config: BrokerConfig, *, is_own: bool, warn: Callable[[str], None]
) -> None:
    """Close a server that is this start's own; of another's open nodes ``warn`` alone.

    Raises AccessRefused for a wrong password, ConfigError if it cannot be had here.
    """
    settings = config.zookeeper
    if settings.digest is None:
        return
    timeout_ms = config.get_int("zookeeper.connection.timeout.ms")
    session = new_session(connect_string, settings, timeout_ms)
    with session.start(timeout_ms):
        check_access(session)
        if settings.closes_nodes:
            check_digest(session)
        (root,) = session.acls(["/"])
        if not settings.closes_nodes or not is_open(root):
            return
        if not is_own:
            warn(
                f"warning: the root of ZooKeeper at {connect_string} is open, as is what was there before; "
                f"close it with: sparklog zookeeper secure --zookeeper {connect_string} --settings FILE"
            )
            return
        _close(session, warn)


def _close(session: KazooAdmin, warn: Callable[[str], None]) -> None:
    """The server's root and its own nodes, and what earlier starts have left open."""
    try:
        convert(session, Goal.SECURE, has_chroot=False, on_progress=lambda count: None)
    except NotPrepared as error:
        warn(f"warning: nodes in ZooKeeper stay open: {error}")
