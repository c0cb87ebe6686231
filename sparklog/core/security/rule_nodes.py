"""Rules in ZooKeeper, as Kafka's AclAuthorizer stores them.

    /kafka-acl/Topic/NAME                        rules of a literal pattern
    /kafka-acl-extended/prefixed/Topic/NAME      of a prefix
        {"version": 1, "acls": [{"principal": "User:dave", "permissionType": "Allow", "operation": "Read",
                                 "host": "*"}]}

A pattern without rules has no node. A node that cannot be decoded closes what its pattern covers: its rules
may deny something.

Each change leaves a notification, a sequential node that names the pattern:

    /kafka-acl-changes/acl_changes_N             TOPIC:NAME
    /kafka-acl-extended-changes/acl_changes_N    {"version": 1, "resourceType": "TOPIC", "name": NAME,
                                                  "patternType": "PREFIXED"}
"""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule, Rules
from sparklog.model.errors import SparklogError

LITERAL_RULES: Final = "/kafka-acl"
PREFIXED_RULES: Final = "/kafka-acl-extended/prefixed"
LITERAL_CHANGES: Final = "/kafka-acl-changes"
PREFIXED_CHANGES: Final = "/kafka-acl-extended-changes"
CHANGE_PREFIX: Final = "acl_changes_"

ROOTS: Final[Mapping[PatternType, str]] = MappingProxyType(
    {PatternType.literal: LITERAL_RULES, PatternType.prefixed: PREFIXED_RULES}
)
CHANGES: Final[Mapping[PatternType, str]] = MappingProxyType(
    {PatternType.literal: LITERAL_CHANGES, PatternType.prefixed: PREFIXED_CHANGES}
)


def _camel(name: str) -> str:
    return name.title().replace("_", "")


_RESOURCES: Final = {_camel(one.name): one for one in ResourceType}
_OPERATIONS: Final = {_camel(one.name): one for one in AclOperation}
_PERMISSIONS: Final = {_camel(one.name): one for one in Permission}
_CHANGED_RESOURCES: Final = {one.name: one for one in ResourceType}
_CHANGED_KINDS: Final = {one.name: one for one in PatternType}

RULE_PATHS: Final = (
    *(f"{root}/{_camel(one.name)}" for root in ROOTS.values() for one in ResourceType),
    *CHANGES.values(),
)
"""Parents of all nodes of rules."""

VERSION: Final = 1

NAME_LENGTH_MAX: Final = 1_000
"""Characters of a resource's name, which is a step of a path in ZooKeeper."""

_UNFIT: Final = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
"""Characters that no step of a path in ZooKeeper may have."""


class UnreadableRules(SparklogError):  # noqa: N818 (says what is the case)
    """A node has no rules that can be decoded; the message names it."""


def fits_a_path(name: str) -> bool:
    """Whether rules about a resource of this name can have a node."""
    return 0 < len(name) <= NAME_LENGTH_MAX and name not in (".", "..") and _UNFIT.search(name) is None


def rules_path(pattern: Pattern) -> str:
    return f"{type_path(pattern.kind, pattern.resource)}/{pattern.name}"


def type_path(kind: PatternType, resource: ResourceType) -> str:
    """The parent of the nodes of these patterns."""
    return f"{ROOTS[kind]}/{_camel(resource.name)}"


def encode_rules(rules: Rules) -> bytes:
    """In an order of their own, so that equal rules are equal bytes."""
    acls = [
        {
            "principal": rule.principal,
            "permissionType": _camel(rule.permission.name),
            "operation": _camel(rule.operation.name),
            "host": rule.host,
        }
        for rule in sorted(rules, key=lambda one: (one.principal, one.operation, one.permission, one.host))
    ]
    return json.dumps({"version": VERSION, "acls": acls}, separators=(",", ":")).encode()


def decode_rules(path: str, data: bytes) -> Rules:
    """Raises UnreadableRules, which names ``path``."""
    document = _json(path, data)
    acls = document.get("acls")
    if document.get("version") != VERSION or not isinstance(acls, list):
        raise UnreadableRules(f"{path} has no rules of version {VERSION}: {_shown(data)}")
    try:
        return frozenset(map(_rule, acls))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnreadableRules(f"{path} has a rule that cannot be read ({error!r}): {_shown(data)}") from None


def _rule(acl: dict[str, Any]) -> Rule:
    principal, host = acl["principal"], acl["host"]
    if not isinstance(principal, str) or not isinstance(host, str) or ":" not in principal:
        raise ValueError("principal and host are texts, and a principal has a type")
    return Rule(principal, _OPERATIONS[acl["operation"]], _PERMISSIONS[acl["permissionType"]], host)


def change_path(kind: PatternType) -> str:
    """Where a notification is created; ZooKeeper adds its number."""
    return f"{CHANGES[kind]}/{CHANGE_PREFIX}"


def encode_change(pattern: Pattern) -> bytes:
    if pattern.kind is PatternType.literal:
        return f"{pattern.resource.name.upper()}:{pattern.name}".encode()
    document = {
        "version": VERSION,
        "resourceType": pattern.resource.name.upper(),
        "name": pattern.name,
        "patternType": pattern.kind.name.upper(),
    }
    return json.dumps(document, separators=(",", ":")).encode()


def decode_change(kind: PatternType, path: str, data: bytes) -> Pattern:
    """The pattern whose rules have changed. Raises UnreadableRules."""
    try:
        if kind is PatternType.literal:
            resource, colon, name = data.decode().partition(":")
            if not colon:
                raise ValueError("no colon")
            return Pattern(_CHANGED_RESOURCES[_snake(resource)], _fit(name))
        document = _json(path, data)
        kind = _CHANGED_KINDS[document["patternType"].lower()]
        return Pattern(_CHANGED_RESOURCES[_snake(document["resourceType"])], _fit(document["name"]), kind)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnreadableRules(f"{path} names no pattern ({error!r}): {_shown(data)}") from None


def _fit(name: object) -> str:
    if not isinstance(name, str) or not fits_a_path(name):
        raise ValueError(f"{str(name)[:60]!r} is no name of a resource")
    return name


def _snake(resource: str) -> str:
    """A type as some of Kafka's versions write it: TOPIC, Topic, TRANSACTIONAL_ID, TransactionalId."""
    known = {"transactionalid": "transactional_id", "delegationtoken": "delegation_token"}
    lower = resource.lower()
    return known.get(lower, lower)


def _json(path: str, data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableRules(f"{path} is no JSON ({type(error).__name__}): {_shown(data)}") from None
    if not isinstance(document, dict):
        raise UnreadableRules(f"{path} is no JSON object: {_shown(data)}")
    return document


def _shown(data: bytes) -> str:
    return repr(data[:80])
