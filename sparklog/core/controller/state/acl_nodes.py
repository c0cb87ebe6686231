"""The rules of a pattern as the controller read them from ZooKeeper, with their node's version."""

from dataclasses import dataclass

from sparklog.core.security.rule_nodes import UnreadableRules, decode_rules
from sparklog.core.security.rules import CLOSED, Rules
from sparklog.model.zookeeper import Node


@dataclass(frozen=True, slots=True)
class AclNode:
    rules: Rules
    version: int
    problem: str = ""
    """Why the node's bytes are no rules; empty if they are. ``rules`` is ``CLOSED`` then."""


def acl_node(path: str, node: Node) -> AclNode:
    try:
        return AclNode(decode_rules(path, node.data), node.stat.version)
    except UnreadableRules as unreadable:
        return AclNode(CLOSED, node.stat.version, str(unreadable))
