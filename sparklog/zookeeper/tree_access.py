"""Closing all nodes of a cluster to others, and opening them again, while the cluster uses them.

With a chroot its node and all below it are the cluster's. Without one they are the cluster's own roots; and
where nobody else has nodes, the server's root and ``/zookeeper`` as well: whoever may change a node may
create and delete its children, such as ``/controller``.

Each node is one change, so that a cut loses nothing: a later run passes over what is done. Brokers that run
create nodes meanwhile, so the tree is walked again until a walk changes nothing. Parents come first.

A cluster must run with the right settings before: brokers without the digest would be locked out of closed
nodes, and brokers that close what they create would never let the tree be open. Their registrations show it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sparklog.core.controller.state.applications import APPLICATIONS
from sparklog.core.controller.state.node_acls import ROOTS, closed_acl
from sparklog.core.controller.state.znodes import BROKER_IDS, CONTROLLER
from sparklog.model.errors import SparklogError
from sparklog.model.zookeeper import Unread, ZooKeeperAdmin
from sparklog.model.zookeeper_access import DIGEST, OPEN, Acl, written_down

SERVERS_OWN: Final = "/zookeeper"
NODES_AT_A_TIME: Final = 500
WALKS_MAX: Final = 20


class Goal(Enum):
    """``done`` is what has become of a node."""

    SECURE = "closed"
    OPEN = "opened"


class NotPrepared(SparklogError):  # noqa: N818 (says what is the case)
    """The cluster runs with settings that do not fit."""


@dataclass(slots=True)
class Conversion:
    """What was done, and what is left."""

    changed: int = 0
    unchanged: int = 0
    """Nodes of the last walk that were as they should be."""
    left: dict[str, str] = field(default_factory=dict)
    """Nodes that stay as they are, each with the reason."""

    @property
    def is_complete(self) -> bool:
        return not self.left


def convert(
    zookeeper: ZooKeeperAdmin, goal: Goal, *, has_chroot: bool, on_progress: Callable[[int], None]
) -> Conversion:
    """``on_progress`` gets how many more nodes were looked at.

    Raises NotPrepared before anything changes; ConnectionLost, or another ZooKeeperError, half way.
    """
    roots, others = _roots(zookeeper, has_chroot=has_chroot)
    _refuse_unprepared(zookeeper, goal)
    conversion = Conversion()
    walk = _Walk(zookeeper, goal, conversion, on_progress)
    for _ in range(WALKS_MAX):
        before = conversion.changed
        conversion.unchanged = 0
        conversion.left = dict(others) if goal is Goal.SECURE else {}
        walk.run(roots)
        if conversion.changed == before:
            return conversion
    conversion.left["/"] = "others change its nodes all the time; run this again"
    return conversion


def is_open(acl: Acl | Unread) -> bool:
    """Whether everybody may do everything with a node."""
    return isinstance(acl, frozenset) and acl >= OPEN


def _roots(zookeeper: ZooKeeperAdmin, *, has_chroot: bool) -> tuple[list[str], dict[str, str]]:
    """The nodes where walks begin, and what is no business of this cluster, with the reason."""
    names = [f"/{name}" for name in zookeeper.children("/")]
    if has_chroot:
        return ["/"], {}
    own = [path for path in names if path in ROOTS]
    foreign = [path for path in names if path not in ROOTS and path != SERVERS_OWN]
    if not foreign:
        return ["/"], {}
    shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
    why = f"others have nodes there ({shown}), and may delete /controller; give a cluster a path of its own"
    return own, {"/": why}


def _refuse_unprepared(zookeeper: ZooKeeperAdmin, goal: Goal) -> None:
    paths = [CONTROLLER]
    for parent in (BROKER_IDS, APPLICATIONS):
        paths += [f"{parent}/{name}" for name in zookeeper.children(parent)]
    found = zip(paths, zookeeper.acls(paths), strict=True)
    unfit = [
        path for path, acl in found if acl is not Unread.MISSING and is_open(acl) is (goal is Goal.SECURE)
    ]
    if not unfit:
        return
    names = ", ".join(unfit[:5]) + (", …" if len(unfit) > 5 else "")
    if goal is Goal.SECURE:
        raise NotPrepared(
            f"what has written {names} runs without zookeeper.set.acl, and would be locked out; restart it "
            "with zookeeper.digest and zookeeper.set.acl=true first. Nothing is changed"
        )
    raise NotPrepared(
        f"what has written {names} runs with zookeeper.set.acl=true, and closes what it creates; restart it "
        "with zookeeper.set.acl=false and the same zookeeper.digest first. Nothing is changed"
    )


class _Walk:
    """Goes through trees, parents first, and changes what is not as it should be."""

    def __init__(
        self,
        zookeeper: ZooKeeperAdmin,
        goal: Goal,
        conversion: Conversion,
        on_progress: Callable[[int], None],
    ) -> None:
        self._zookeeper = zookeeper
        self._goal = goal
        self._conversion = conversion
        self._on_progress = on_progress

    def run(self, roots: Sequence[str]) -> None:
        waiting = list(roots)
        while waiting:
            paths = waiting[-NODES_AT_A_TIME:]
            del waiting[-NODES_AT_A_TIME:]
            self._change(paths)
            waiting += self._below(paths)
            self._on_progress(len(paths))

    def _below(self, paths: Sequence[str]) -> Iterator[str]:
        for path, names in zip(paths, self._zookeeper.children_many(paths), strict=True):
            if isinstance(names, Unread):
                if names is Unread.CLOSED:
                    self._conversion.left[path] = "it is closed to this user, with all below it"
                continue
            for name in names:
                yield f"{path.rstrip('/')}/{name}"

    def _change(self, paths: Sequence[str]) -> None:
        found = dict(zip(paths, self._zookeeper.acls(paths), strict=True))
        wanted: dict[str, Acl] = {}
        for path, acl in found.items():
            if acl is Unread.MISSING:
                continue  # deleted meanwhile
            if self._is_right(path, acl):
                self._conversion.unchanged += 1
            elif self._is_ours_to_change(path, acl):
                wanted[path] = OPEN if self._goal is Goal.OPEN else closed_acl(path)
        for path, refusal in self._zookeeper.set_acls(wanted).items():
            if refusal is None:
                self._conversion.changed += 1
            elif refusal is Unread.CLOSED:
                self._conversion.left[path] = f"it belongs to {_owners(found[path])}"

    def _is_right(self, path: str, acl: Acl | Unread) -> bool:
        if self._goal is Goal.OPEN:
            return is_open(acl)
        return acl == written_down(closed_acl(path), self._zookeeper.identity)

    def _is_ours_to_change(self, path: str, acl: Acl | Unread) -> bool:
        """The servers keep nodes of their own, with grants of their own."""
        if not (path + "/").startswith(SERVERS_OWN + "/"):
            return True
        if self._goal is Goal.SECURE:
            return is_open(acl)
        return acl == written_down(closed_acl(path), self._zookeeper.identity)


def _owners(acl: Acl | Unread) -> str:
    """Who may change the grants of a node, for people."""
    if isinstance(acl, Unread):
        return "another user"
    names = sorted(
        one.identity.partition(":")[0] if one.scheme == DIGEST else f"{one.scheme}:{one.identity}"
        for one in acl
        if one.scheme != "world"
    )
    return (
        " and ".join(f"user {name!r}" for name in names) + ", with a password of its own"
        if names
        else "nobody"
    )
