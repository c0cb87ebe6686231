"""``sparklog quotas``: list, set and remove quotas of users, clients and addresses."""

import argparse
import json
from typing import Final

from sparklog.cli.action_parsers import add_action, add_actions, run_action
from sparklog.cli.command import DONE, Command, UsageError
from sparklog.cli.connect import wants_json
from sparklog.cli.table import render_table
from sparklog.cli.values import setting
from sparklog.client.cluster import ClusterClient
from sparklog.client.security.quota_admin import QuotaAdmin
from sparklog.core.client_quotas.quota_keys import OF_ADDRESSES, OF_CLIENTS
from sparklog.model.errors import SparklogError
from sparklog.model.quota_entity import CLIENT_ID, IP, USER, QuotaEntity

DESCRIPTION: Final = f"""\
Quotas of users, of clients, of a client of a user, and of addresses. '' in place of a name stands for
every name without a quota of its own. A quota counts at once, at each broker by itself.

of users and clients: {", ".join(OF_CLIENTS)}
of addresses: {", ".join(OF_ADDRESSES)}"""

EXAMPLES: Final = (
    "sparklog quotas list --root /tmp/sparklog",
    "sparklog quotas set --user alice producer_byte_rate=1000000 --root /tmp/sparklog",
    "sparklog quotas set --user '' --client-id '' consumer_byte_rate=500000 --root /tmp/sparklog",
    "sparklog quotas remove --user alice producer_byte_rate --root /tmp/sparklog",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser, "list|set|remove")
    add_action(actions, "list", "all quotas that are set", _list, EXAMPLES)
    setting_one = add_action(actions, "set", "set quotas of one entity", _set, EXAMPLES)
    setting_one.add_argument("quotas", nargs="+", type=setting, metavar="KEY=VALUE", help="a quota")
    removing = add_action(actions, "remove", "remove quotas of one entity", _remove, EXAMPLES)
    removing.add_argument("keys", nargs="+", metavar="KEY", help="the name of a quota")
    for action in (setting_one, removing):
        action.add_argument("--user", metavar="N", help="the user, without User:")
        action.add_argument("--client-id", metavar="C", help="the client.id")
        action.add_argument("--ip", metavar="A", help="the address")


def check(arguments: argparse.Namespace) -> None:
    """Raises UsageError unless the options name one entity."""
    if arguments.action == "list":
        return
    of_client = arguments.user is not None or arguments.client_id is not None
    if of_client == (arguments.ip is not None):
        raise UsageError("name one entity: --user N, --client-id C, both of these, or --ip A")


def run(arguments: argparse.Namespace) -> int:
    return run_action(arguments, check)


def _list(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    found = QuotaAdmin(cluster).quotas()
    if wants_json(arguments):
        listed = [{"entity": one.entity.by_type, "values": dict(one.values)} for one in found]
        print(json.dumps({"quotas": listed}))
    else:
        rows = [(str(one.entity), key, f"{value:g}") for one in found for key, value in one.values.items()]
        print(render_table(("entity", "quota", "value"), rows))
    return DONE


def _set(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    entity = _entity(arguments)
    values = {key: _number(key, value) for key, value in arguments.quotas}
    QuotaAdmin(cluster).put(entity, values)
    for key, value in values.items():
        print(f"{entity}: {key}={value:g}")
    return DONE


def _remove(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    entity, admin = _entity(arguments), QuotaAdmin(cluster)
    present = {key for one in admin.quotas() if one.entity.by_type == entity.by_type for key in one.values}
    missing = [key for key in arguments.keys if key not in present]
    if missing:
        raise SparklogError(f"{entity} has no quota {', '.join(missing)}; see: sparklog quotas list")
    admin.remove(entity, arguments.keys)
    for key in arguments.keys:
        print(f"{entity}: {key} removed")
    return DONE


def _entity(arguments: argparse.Namespace) -> QuotaEntity:
    named = ((USER, arguments.user), (CLIENT_ID, arguments.client_id), (IP, arguments.ip))
    return QuotaEntity(tuple((kind, name or None) for kind, name in named if name is not None))


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{key}={text}: a quota is a number of at least 0") from None


COMMAND: Final = Command(
    name="quotas",
    summary="quotas of users, clients and addresses: list, set and remove them",
    add_arguments=add_arguments,
    run=run,
    description=DESCRIPTION,
    examples=EXAMPLES,
)
