"""Keeps the rules of a broker or a controller as they are in ZooKeeper.

The rules of a pattern are read again when a notification names it (``notified_nodes``).
"""

import logging
from collections.abc import Callable, Collection, Iterable
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
from sparklog.model.zookeeper import Node, ZooKeeper
from sparklog.zookeeper.notified_nodes import NotifiedNodes

logger: Final = logging.getLogger(__name__)

OnChange = Callable[[Collection[Pattern]], None]


class RuleWatch:
    """``on_change`` is called with the patterns whose rules were read again."""

    def __init__(
        self, zookeeper: ZooKeeper, authorizer: Authorizer, on_change: OnChange = lambda patterns: None
    ) -> None:
        self._zookeeper = zookeeper
        self._authorizer = authorizer
        self._on_change = on_change
        self._nodes = NotifiedNodes(zookeeper, "access rules", self._read_whole, self._follow)
        self.read_all = self._nodes.read_all
        self.loop = self._nodes.loop
        self._last = dict.fromkeys(PatternType, "")
        """The last notification of each kind that was followed."""

    def _read_whole(self) -> None:
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
                        self._read_whole()
                        return
            if paths:
                self._last[kind] = max(paths).rpartition("/")[2]
        if changed:
            self._take(self._authorizer.book, changed)
            self._on_change(changed.keys())

    def _notifications(self, kind: PatternType) -> list[str]:
        return self._nodes.notifications(CHANGES[kind], CHANGE_PREFIX)

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
