"""The settings of users, clients and addresses as ZooKeeper has them: quotas, and credentials of logins.

A node is read again when a notification names it (``config_change_N`` below ``/config/changes``, as in Kafka;
``notified_nodes``).

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
from sparklog.model.zookeeper import Node, ZooKeeper
from sparklog.zookeeper.notified_nodes import NotifiedNodes

logger: Final = logging.getLogger(__name__)

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
        self._nodes = NotifiedNodes(zookeeper, "users and quotas", self._read_whole, self._follow)
        self.read_all = self._nodes.read_all
        self.loop = self._nodes.loop
        self._followed: frozenset[str] = frozenset()
        """The notifications that were there at the last look."""

    def _read_whole(self) -> None:
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
            try:
                path = None if node is None else changed_path(notification, node.data)
            except SparklogError as unreadable:
                logger.error("%s; reading all users and quotas", unreadable)
                self._read_whole()
                return
            if path is not None:
                changed[path] = None
        for path, node in zip(changed, self._get(changed), strict=True):
            configs = configs_of(path, node)
            for reader in self._readers:
                reader.put(path, configs)

    def _notifications(self) -> frozenset[str]:
        return frozenset(self._nodes.notifications(CONFIG_CHANGES, CHANGE_PREFIX))

    def _get(self, paths: Iterable[str]) -> list[Node | None]:
        return self._zookeeper.get_many(list(paths))


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
