"""The ZooKeeper port: nodes, compare-and-set operations, one-shot watches, session events.

ZooKeeper stores a cluster's decisions: the live brokers (ephemeral nodes), the controller, and the leaders of
partitions. Every write is a compare-and-set: ``multi`` applies all of its operations or none.

Failures, and their meaning:

- ``OperationRefused`` and ``MultiFailed``: ZooKeeper refused the operation for a ``reason``; nothing changed.
- ``AccessRefused``: the grants of a node do not allow it (``sparklog.model.zookeeper_access``); nothing
  changed.
- ``ConnectionLost``: no answer arrived. A write may have happened, may still happen while this session lives,
  or may never happen: read again and compare before doing anything else.
- ``SessionExpired``: ZooKeeper ended this session; its ephemeral nodes are gone. The client continues with a
  new session and a higher ``generation``, and owners of ephemeral nodes must create them again.

Callbacks of watches and session events run on the client's own thread, in the order of the events. A callback
must only put something into its owner's queue, because an operation inside it could wait for itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, Protocol

from sparklog.model.errors import SparklogError
from sparklog.model.zookeeper_access import Acl

ANY_VERSION: Final = -1
"""Matches every version of a node: an unconditional write."""

Reason = Literal["no_node", "node_exists", "bad_version", "not_empty", "no_children_for_ephemerals", "other"]
"""Why ZooKeeper refused an operation."""

SessionEvent = Literal["connected", "suspended", "expired"]
"""``connected``: the session is usable. ``suspended``: the connection is lost, but the session may live.
``expired``: ZooKeeper reported the end of the session; another ``connected`` means a new session."""


@dataclass(frozen=True, slots=True)
class Stat:
    """A node's metadata in ZooKeeper.

    ``version`` counts changes of the data since the node was created, so a node that was deleted and created
    again starts at 0: compare ``czxid`` to detect that. ``czxid`` and ``mzxid`` are the transactions that
    created and last changed it; all the operations of one ``multi`` share one transaction.
    """

    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: int = 0
    """The session that keeps the node alive, or 0 for a persistent node."""


@dataclass(frozen=True, slots=True)
class Node:
    data: bytes
    stat: Stat


@dataclass(frozen=True, slots=True)
class Create:
    """Create a node; refused with ``node_exists``, or ``no_node`` if its parent is missing."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False
    """Whether ZooKeeper appends ten digits to ``path``: how many children its parent has had so far."""


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace a node's data if it has this version."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a node if it has this version and no children."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing, but fail the multi unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


class ZooKeeperError(SparklogError):
    """A failed operation or connection of ZooKeeper."""


class ConnectionLost(ZooKeeperError):  # noqa: N818 (the field's word)
    """No answer arrived: the outcome of a write is unknown."""


class SessionExpired(ZooKeeperError):  # noqa: N818 (the field's word)
    """The session ended and its ephemeral nodes are gone; this operation did not happen."""


class AccessRefused(ZooKeeperError):  # noqa: N818 (the field's word)
    """A node belongs to another user than this client shows, and its grants do not allow this; nothing
    changed. It is no ``OperationRefused``, because trying again helps nothing."""


class OperationRefused(ZooKeeperError):  # noqa: N818 (the field's word)
    """ZooKeeper refused a single operation; nothing changed."""

    def __init__(self, operation: Operation, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{type(operation).__name__} {operation.path}: {detail or reason}")
        self.operation = operation
        self.reason: Reason = reason


class MultiFailed(OperationRefused):
    """The operation ``index`` of a multi was refused, so no operation of the multi happened."""

    def __init__(self, index: int, operation: Operation, reason: Reason, detail: str = "") -> None:
        super().__init__(operation, reason, detail)
        self.index = index


class ZooKeeper(Protocol):
    """The port to ZooKeeper. Paths are absolute, below the client's chroot.

    Safe to call from any thread but the one that runs its callbacks. Every call ends within the client's
    operation timeout, with ConnectionLost if no answer arrived; reads are repeated after short interruptions.
    """

    @property
    def session_id(self) -> int:
        """The id of the current session, as in ``Stat.ephemeral_owner``; 0 without a session."""

    @property
    def generation(self) -> int:
        """Grows by one whenever a session expires; ephemeral nodes of an older generation are gone."""

    def sync(self) -> None:
        """Let the server learn all that was written before. A server may lag the others: without this a
        read may find an old state, though never one older than this client has seen before.
        """

    def get(self, path: str) -> Node | None:
        """The node, or None if it does not exist."""

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """``get`` of each path, in few round trips; not one transaction."""

    def exists(self, path: str) -> Stat | None: ...

    def children(self, path: str) -> list[str]:
        """The names of the children, sorted; empty if the node does not exist."""

    def multi(self, operations: Sequence[Operation], *, generation: int | None = None) -> list[Stat | None]:
        """Apply all operations or none. The result has the new Stat of each SetData and None for the others.

        With ``generation``, SessionExpired is raised and nothing is sent unless the session still has that
        generation, so that an ephemeral node never belongs to a later session than its owner expects.
        """

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None: ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat: ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    def ensure_path(self, path: str) -> None:
        """Create the persistent node and its parents if they are missing."""

    def watch_data(self, path: str, callback: Callable[[], None]) -> None:
        """Call ``callback`` once when the node is created, changed or deleted, or the watch is lost with the
        connection. Set the watch before reading the node, so that no change is missed."""

    def watch_children(self, path: str, callback: Callable[[], None]) -> None:
        """Call ``callback`` once when a child or the node itself is created or deleted, or the watch is lost
        with the connection. The node may be missing: its creation fires the watch."""

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        """Call ``callback`` for every session event from now on."""

    def close(self) -> None:
        """End the session, which deletes its ephemeral nodes at once. No callback is called afterwards."""


class Unread(Enum):
    """Why nothing is known of a node, or nothing was done with it."""

    MISSING = "missing"
    CLOSED = "closed"


class ZooKeeperAdmin(ZooKeeper, Protocol):
    """The port of a program that changes the grants of nodes. Each call takes few round trips."""

    @property
    def identity(self) -> str:
        """The digest that this client shows, as grants have it: ``USER:HASH``; empty without one."""

    def children_many(self, paths: Sequence[str]) -> list[list[str] | Unread]:
        """The names of each node's children, sorted."""

    def acls(self, paths: Sequence[str]) -> list[Acl | Unread]:
        """The grants of each node."""

    def set_acls(self, changes: Mapping[str, Acl]) -> dict[str, Unread | None]:
        """Give each node its grants; None where that was done. Grants to the scheme ``auth`` are for the
        digest that this client shows. May be repeated.
        """
