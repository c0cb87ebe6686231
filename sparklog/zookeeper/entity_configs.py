"""The settings of users, clients and addresses as ZooKeeper has them: quotas, and credentials of logins.

All nodes are read before their owner listens, and after each reconnect, because notifications may have come
and gone meanwhile. Else a node is read again when a notification names it (``config_change_N`` below
``/config/changes``, as in Kafka). An owner that is cut off from ZooKeeper goes on with what it knows.

A node that cannot be read counts as empty, and the log names it.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from sparklog.core.controller.state.entity_changes import CHANGE_PREFIX, changed_path
from sparklog.core.controller.state.quota_nodes import (
    CLIENTS_OF_USER,
    ENTITY_DIRECTORIES,
    USER_CONFIGS,
)
from sparklog.core.controller.state.znodes import CONFIG_CHANGES, decode_configs
from sparklog.model.errors import SparklogError
from sparklog.model.loops import Await, Loop, Signal
from sparklog.model.zookeeper import Node, SessionEvent, ZooKeeper, ZooKeeperError

logger: Final = logging.getLogger(__name__)

LOOK_AGAIN_MS: Final = 1_000
"""Pause after ZooKeeper did not answer."""

Configs = Mapping[str, str]


class ConfigsReader(Protocol):
    """Is given what was read, on the thread of the loop."""

    def replace(self, nodes: Mapping[str, Configs]) -> None:
        """``nodes``, by path, are all that there are."""

    def put(self, path: str, configs: Configs) -> None:
        """The settings at ``path`` may have changed; none if the node is gone."""


class EntityConfigs:
    """Gives ``readers`` what ZooKeeper has."""

    def __init__(self, zookeeper: ZooKeeper, readers: Sequence[ConfigsReader]) -> None:
        self._zookeeper = zookeeper
        self._readers = readers
        self._changed = Signal()
        self._is_watching = False
        self._followed: frozenset[str] = frozenset()
        """The notifications that were there at the last look."""
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
                logger.info("cannot read users and quotas in ZooKeeper, going on with those known: %s", error)
                yield Await(self._changed, LOOK_AGAIN_MS)
                continue
            yield Await(self._changed)

    def _read_all(self) -> None:
        """Notifications are looked at first, so that none that comes meanwhile is missed."""
        self._zookeeper.sync()
        self._followed = self._notifications()
        nodes = read_entity_nodes(self._zookeeper)
        configs = {path: configs_of(path, node) for path, node in nodes.items()}
        for reader in self._readers:
            reader.replace(configs)

    def _follow(self) -> None:
        """Read again what the notifications that have come name."""
        before, self._followed = self._followed, self._notifications()
        notifications = sorted(f"{CONFIG_CHANGES}/{name}" for name in self._followed - before)
        changed: dict[str, None] = {}
        for notification, node in zip(notifications, self._get(notifications), strict=True):
            path = None if node is None else changed_path(node.data)
            if path is not None:
                changed[path] = None
            elif node is not None:
                logger.info("%s names nothing that is followed: %r", notification, node.data[:200])
        for path, node in zip(changed, self._get(changed), strict=True):
            for reader in self._readers:
                reader.put(path, configs_of(path, node))

    def _get(self, paths: Iterable[str]) -> list[Node | None]:
        return self._zookeeper.get_many(list(paths))

    def _notifications(self) -> frozenset[str]:
        """The names of the notifications; their next change gives the signal."""
        if not self._is_watching:
            self._is_watching = True
            try:
                self._zookeeper.watch_children(CONFIG_CHANGES, self._on_fired)
            except ZooKeeperError:
                self._is_watching = False
                raise
        names = self._zookeeper.children(CONFIG_CHANGES)
        return frozenset(name for name in names if name.startswith(CHANGE_PREFIX))

    def _on_fired(self) -> None:
        self._is_watching = False
        self._changed.give()


def configs_of(path: str, node: Node | None) -> dict[str, str]:
    if node is None or not node.data:
        return {}
    try:
        return decode_configs(path, node.data)
    except SparklogError as error:
        logger.error("settings have no effect: %s", error)
        return {}


def read_entity_nodes(zookeeper: ZooKeeper) -> dict[str, Node]:
    """Every node below the directories of users, clients and addresses, by its path."""
    paths = [
        f"{directory}/{name}" for directory in ENTITY_DIRECTORIES for name in zookeeper.children(directory)
    ]
    for path in [one for one in paths if one.startswith(USER_CONFIGS)]:
        for child in zookeeper.children(path):
            paths.append(f"{path}/{child}")
            if child == CLIENTS_OF_USER:
                paths += [f"{path}/{child}/{client}" for client in zookeeper.children(f"{path}/{child}")]
    nodes = zip(paths, zookeeper.get_many(paths), strict=True)
    return {path: node for path, node in nodes if node is not None}
