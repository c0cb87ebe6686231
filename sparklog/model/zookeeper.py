"""ZooKeeper as the shells see it: nodes, compare-and-set operations, one-shot watches, session events.

ZooKeeper is where a cluster's decisions are kept: who is alive (ephemeral nodes), who controls, who leads
which partition. Everything is a compare-and-set: ``multi`` applies all of its operations or none.

What can go wrong, and what it means:

- ``OperationRefused`` and ``MultiFailed``: ZooKeeper looked and said no; nothing changed, for a ``reason``.
- ``ConnectionLost``: no answer came. A write may have happened, may still happen while this session lives,
  or may never happen: read again and compare before doing anything else.
- ``SessionExpired``: ZooKeeper has forgotten this session; its ephemeral nodes are gone. The client goes on
  with a new session and a higher ``generation``, and whoever owned ephemeral nodes must start over.

Watches and session events are called on the client's own thread, in the order in which they happened. A
callback must only put something into its owner's queue: an operation inside it could wait for itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from sparklog.model.errors import SparklogError

ANY_VERSION: Final = -1
"""Matches every version of a node: an unconditional write."""

Reason = Literal["no_node", "node_exists", "bad_version", "not_empty", "no_children_for_ephemerals", "other"]
"""Why ZooKeeper refused an operation."""

SessionEvent = Literal["connected", "suspended", "expired"]
"""``connected``: the session is usable. ``suspended``: the connection is gone, the session may live.
``expired``: ZooKeeper said that the session is over; another ``connected`` means a new session."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What ZooKeeper knows about a node beside its data.

    ``version`` counts changes of the data since the node was created, so a node that was deleted and created
    again starts at 0: compare ``czxid`` where that matters. ``czxid`` and ``mzxid`` are the transactions that
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
    """Something that ZooKeeper, or the way to it, refused."""


class ConnectionLost(ZooKeeperError):  # noqa: N818 (the field's word)
    """No answer came: the outcome of a write is unknown."""


class SessionExpired(ZooKeeperError):  # noqa: N818 (the field's word)
    """The session is over and its ephemeral nodes are gone; this operation did not happen."""


class OperationRefused(ZooKeeperError):  # noqa: N818 (the field's word)
    """ZooKeeper refused a single operation; nothing changed."""

    def __init__(self, operation: Operation, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{type(operation).__name__} {operation.path}: {detail or reason}")
        self.operation = operation
        self.reason: Reason = reason


class MultiFailed(OperationRefused):
    """One operation of a multi was refused, so none of them happened. ``index`` says which one."""

    def __init__(self, index: int, operation: Operation, reason: Reason, detail: str = "") -> None:
        super().__init__(operation, reason, detail)
        self.index = index


class ZooKeeper(Protocol):
    """The port to ZooKeeper. Paths are absolute, below the client's chroot.

    Safe to call from any thread but the one that runs its callbacks. Every call ends within the client's
    operation timeout, with ConnectionLost if no answer came; reads are repeated over short interruptions.
    """

    @property
    def session_id(self) -> int:
        """The id of the current session, as in ``Stat.ephemeral_owner``; 0 while there is none."""

    @property
    def generation(self) -> int:
        """Grows by one whenever a session expires: a claim made under an older generation is void."""

    def get(self, path: str) -> Node | None:
        """The node, or None if there is none."""

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """``get`` of each path, in few round trips; not one transaction."""

    def exists(self, path: str) -> Stat | None: ...

    def children(self, path: str) -> list[str]:
        """The names of the children, sorted; empty if the node does not exist."""

    def multi(self, operations: Sequence[Operation], *, generation: int | None = None) -> list[Stat | None]:
        """All or nothing. The result has the new Stat for each SetData and None for the others.

        With ``generation`` nothing is sent, and SessionExpired raised, unless the session is still of that
        generation: an ephemeral node then never belongs to a session that its owner does not know of.
        """

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None: ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat: ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    def ensure_path(self, path: str) -> None:
        """Create the persistent node and its parents where they are missing."""

    def watch_data(self, path: str, callback: Callable[[], None]) -> None:
        """Call once when the node is created, changed or deleted, or when the watch was lost with the
        connection. Set the watch first and read afterwards, so that no change falls in between."""

    def watch_children(self, path: str, callback: Callable[[], None]) -> None:
        """Call once when a child comes or goes, or the node itself does, or the watch was lost with the
        connection. The node may be missing: its creation fires the watch."""

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        """Call for every session event from now on."""

    def close(self) -> None:
        """End the session: its ephemeral nodes vanish at once. No callback is called afterwards."""
