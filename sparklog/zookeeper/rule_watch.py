"""Keeps the rules of a broker or a controller as they are in ZooKeeper.

All rules are read before the owner listens, and after each reconnect, because notifications may have come and
gone meanwhile. Else the pattern that a notification names is read again. An owner that is cut off from
ZooKeeper goes on with the rules that it has.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final

from sparklog.core.controller.state.acl_nodes import acl_node
from sparklog.core.security.acl import ResourceType
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.rule_book import RuleBook
from sparklog.core.security.rule_nodes import (
    CHANGE_PREFIX,
    CHANGES,
    UnreadableRules,
    decode_change,
    rules_path,
    type_path,
)
from sparklog.core.security.rules import Pattern, PatternType, Rule
from sparklog.model.loops import Await, Loop, Signal
from sparklog.model.zookeeper import Node, SessionEvent, ZooKeeper, ZooKeeperError

logger: Final = logging.getLogger(__name__)

LOOK_AGAIN_MS: Final = 1_000
"""Pause after ZooKeeper did not answer."""

OnChange = Callable[[Collection[Pattern]], None]


class RuleWatch:
    """``on_change`` is called with the patterns whose rules were read again."""

    def __init__(
        self, zookeeper: ZooKeeper, authorizer: Authorizer, on_change: OnChange = lambda patterns: None
    ) -> None:
        self._zookeeper = zookeeper
        self._authorizer = authorizer
        self._on_change = on_change
        self._changed = Signal()
        self._is_watching = dict.fromkeys(PatternType, False)
        self._last = dict.fromkeys(PatternType, "")
        """The last notification of each kind that was followed."""
        self._must_read_all = True
        zookeeper.on_session(self._on_session)

    def _on_session(self, event: SessionEvent) -> None:
        if event == "connected":
            self._must_read_all = True
        self._changed.give()

    def read_all(self) -> None:
        """Raises ZooKeeperError if ZooKeeper does not answer."""
        self._must_read_all = False
        try:
            self._read_all()
        except ZooKeeperError:
            self._must_read_all = True
            raise

    def loop(self) -> Loop:
        while True:
            try:
                if self._must_read_all:
                    self.read_all()
                else:
                    self._follow()
            except ZooKeeperError as error:
                self._must_read_all = True
                logger.info("cannot read access rules in ZooKeeper, going on with those of before: %s", error)
                yield Await(self._changed, LOOK_AGAIN_MS)
                continue
            yield Await(self._changed)

    def _read_all(self) -> None:
        """Notifications are looked at first, so that none that comes meanwhile is missed."""
        self._zookeeper.sync()
        for kind in PatternType:
            self._last[kind] = max(self._notifications(kind), default="")
        patterns = [
            Pattern(resource, name, kind)
            for kind in PatternType
            for resource in ResourceType
            for name in self._zookeeper.children(type_path(kind, resource))
        ]
        book, before = RuleBook(), self._authorizer.book
        self._take(book, patterns)
        self._authorizer.book = book
        logger.info("read the access rules of %d resources", len(book))
        self._on_change({*before.patterns(), *patterns})

    def _follow(self) -> None:
        """Read again what the notifications since the last ones name."""
        changed: dict[Pattern, None] = {}
        for kind in PatternType:
            last = self._last[kind]
            paths = [f"{CHANGES[kind]}/{name}" for name in self._notifications(kind) if name > last]
            for path, node in zip(paths, self._zookeeper.get_many(paths), strict=True):
                if node is not None:
                    try:
                        changed[decode_change(kind, path, node.data)] = None
                    except UnreadableRules as unreadable:
                        logger.error("%s; reading all access rules", unreadable)
                        self._read_all()
                        return
            if paths:
                self._last[kind] = max(paths).rpartition("/")[2]
        if changed:
            self._take(self._authorizer.book, changed)
            self._on_change(changed.keys())

    def _notifications(self, kind: PatternType) -> list[str]:
        """The names of the notifications, in their order; their next change gives the signal."""
        if not self._is_watching[kind]:
            self._is_watching[kind] = True
            try:
                self._zookeeper.watch_children(CHANGES[kind], partial(self._fired, kind))
            except ZooKeeperError:
                self._is_watching[kind] = False
                raise
        names = self._zookeeper.children(CHANGES[kind])
        return [name for name in names if name.startswith(CHANGE_PREFIX)]

    def _fired(self, kind: PatternType) -> None:
        self._is_watching[kind] = False
        self._changed.give()

    def _take(self, book: RuleBook, patterns: Iterable[Pattern]) -> None:
        named = list(patterns)
        paths = [rules_path(pattern) for pattern in named]
        for pattern, path, node in zip(named, paths, self._zookeeper.get_many(paths), strict=True):
            book.put(pattern, frozenset() if node is None else self._rules(path, node))

    @staticmethod
    def _rules(path: str, node: Node) -> frozenset[Rule]:
        read = acl_node(path, node)
        if read.problem:
            logger.error("what this node covers is closed to all but super users: %s", read.problem)
        return read.rules
