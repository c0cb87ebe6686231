"""``sparklog acls``: list, add and remove access rules, on a cluster with an authorizer.

A resource that is listed by its name shows every rule about it: those of prefixes of the name, and of ``*``.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog.cli.action_parsers import Actions, add_action, add_actions, run_action
from sparklog.cli.command import DONE, FAILED, Command, UsageError
from sparklog.cli.connect import wants_json
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.client.access_rules import create_rules, delete_rules, list_rules
from sparklog.client.cluster import ClusterClient
from sparklog.core.controller.commands.acl_commands import AclBinding, AclFilter, PatternMatch
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import (
    ANYWHERE,
    CLUSTER_NAME,
    Pattern,
    PatternType,
    Permission,
    Rule,
)

EXAMPLES = (
    "sparklog acls list --root /tmp/sparklog",
    "sparklog acls list --topic events --bootstrap-server 127.0.0.1:9092",
    "sparklog acls add --principal User:alice --operation read,describe --topic team-a- --prefixed "
    "--root /tmp/sparklog",
    "sparklog acls add --principal User:bob --operation all --group reports --deny --root /tmp/sparklog",
    "sparklog acls remove --principal User:alice --operation read --topic events --root /tmp/sparklog",
)

OPERATIONS: Final = {one.name.replace("_", ""): one for one in AclOperation}


@dataclass(frozen=True, slots=True)
class _Resource:
    """What the options name."""

    kind: ResourceType
    name: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser, "list|add|remove")
    listing = add_action(actions, "list", "show access rules", list_, EXAMPLES)
    listing.add_argument("--principal", metavar="P", help="rules of this principal alone, such as User:alice")
    _add_resource(listing)
    _add_change(actions, "add", "add access rules", add)
    _add_change(actions, "remove", "remove access rules", remove)


def _add_change(actions: Actions, name: str, summary: str, do: Any) -> None:
    parser = add_action(actions, name, summary, do, EXAMPLES)
    parser.add_argument(
        "--principal",
        required=True,
        metavar="P",
        help="a type and a name, such as User:alice; User:* for everybody",
    )
    parser.add_argument(
        "--operation",
        required=True,
        type=_operations,
        metavar="OP[,OP]",
        help=f"of {', '.join(one.name.replace('_', '-') for one in AclOperation)}",
    )
    parser.add_argument("--host", default=ANYWHERE, metavar="H", help="only from this address")
    parser.add_argument("--deny", action="store_true", help="deny it; a denial beats every other rule")
    _add_resource(parser)


def _add_resource(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--topic", metavar="N", help="the topic with this name; '*' for all")
    group.add_argument("--group", metavar="N", help="the group with this name; '*' for all")
    group.add_argument("--transactional-id", metavar="N", help="this transactional id; '*' for all")
    group.add_argument("--cluster", action="store_true", help="the cluster as a whole")
    parser.add_argument("--prefixed", action="store_true", help="all names that begin with N")


def _operations(text: str) -> list[AclOperation]:
    found = []
    for word in text.split(","):
        operation = OPERATIONS.get(word.strip().lower().replace("-", "").replace("_", ""))
        if operation is None:
            known = ", ".join(one.name.replace("_", "-") for one in AclOperation)
            raise argparse.ArgumentTypeError(f"{word!r} is no operation; there are {known}")
        found.append(operation)
    return found


def run(arguments: argparse.Namespace) -> int:
    return run_action(arguments, _check)


def _check(arguments: argparse.Namespace) -> None:
    resource = _resource(arguments)
    if arguments.prefixed and (resource is None or resource.kind is ResourceType.cluster):
        raise UsageError("--prefixed needs a name: --topic N, --group N or --transactional-id N")
    if arguments.action != "list" and resource is None:
        raise UsageError("what is it about? give --topic N, --group N, --transactional-id N or --cluster")


def _resource(arguments: argparse.Namespace) -> _Resource | None:
    if arguments.cluster:
        return _Resource(ResourceType.cluster, CLUSTER_NAME)
    named = {
        ResourceType.topic: arguments.topic,
        ResourceType.group: arguments.group,
        ResourceType.transactional_id: arguments.transactional_id,
    }
    return next((_Resource(kind, name) for kind, name in named.items() if name is not None), None)


def list_(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    resource = _resource(arguments)
    wanted = AclFilter(principal=arguments.principal)
    if resource is not None:
        kind: PatternMatch = PatternType.prefixed if arguments.prefixed else "match"
        wanted = AclFilter(resource.kind, resource.name, kind, arguments.principal)
    with patience("asking for the access rules"):
        found = list_rules(cluster, wanted)
    if found or wants_json(arguments):
        _print(found, arguments)
    else:
        print("there are no access rules" + (" about that" if resource or arguments.principal else ""))
    return DONE


def add(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    bindings = _bindings(arguments)
    with patience("adding access rules"):
        create_rules(cluster, bindings)
    _print(bindings, arguments)
    return DONE


def remove(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    bindings = _bindings(arguments)
    with patience("removing access rules"):
        removed = delete_rules(cluster, bindings)
    if removed or wants_json(arguments):
        _print(removed, arguments)
    else:
        print("there was no such access rule")
    return DONE if len(removed) == len(bindings) else FAILED


def _bindings(arguments: argparse.Namespace) -> Sequence[AclBinding]:
    resource = _resource(arguments)
    assert resource is not None, "checked before"
    kind = PatternType.prefixed if arguments.prefixed else PatternType.literal
    permission = Permission.deny if arguments.deny else Permission.allow
    pattern = Pattern(resource.kind, resource.name, kind)
    return [
        AclBinding(pattern, Rule(arguments.principal, operation, permission, arguments.host))
        for operation in dict.fromkeys(arguments.operation)
    ]


def _print(bindings: Iterable[AclBinding], arguments: argparse.Namespace) -> None:
    rows = [_as_json(one) for one in bindings]
    if wants_json(arguments):
        print(json.dumps({"acls": rows}))
    else:
        headers = ["RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"]
        print(render_table(headers, [list(row.values()) for row in rows]))


def _as_json(binding: AclBinding) -> dict[str, str]:
    pattern, rule = binding.pattern, binding.rule
    return {
        "resource_type": pattern.resource.name.upper(),
        "resource_name": pattern.name,
        "pattern_type": pattern.kind.name.upper(),
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation.name.upper(),
        "permission_type": rule.permission.name.upper(),
    }


COMMAND = Command(
    name="acls",
    summary="list, add and remove access rules",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
