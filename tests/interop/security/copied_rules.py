"""Rules in ZooKeeper that one system wrote, in the ZooKeeper of another."""

from collections.abc import Iterable

from sparklog.core.security.rule_nodes import CHANGES, change_path, decode_change, rules_path
from sparklog.core.security.rules import Pattern
from sparklog.model.zookeeper import Create, ZooKeeper


def copy_rules(written: ZooKeeper, read: ZooKeeper, patterns: Iterable[Pattern]) -> None:
    """Copy the nodes of these patterns, and the notifications that name them, byte for byte."""
    for pattern in patterns:
        path = rules_path(pattern)
        notification = Create(change_path(pattern.kind), _notification(written, pattern), sequential=True)
        read.multi([Create(path, _content(written, path)), notification])


def _notification(zookeeper: ZooKeeper, pattern: Pattern) -> bytes:
    directory = CHANGES[pattern.kind]
    for name in zookeeper.children(directory):
        data = _content(zookeeper, f"{directory}/{name}")
        if decode_change(pattern.kind, name, data) == pattern:
            return data
    raise AssertionError(f"no notification names {pattern}")


def _content(zookeeper: ZooKeeper, path: str) -> bytes:
    node = zookeeper.get(path)
    assert node is not None, path
    return node.data
