"""``sparklog users``: list the users with passwords for SCRAM, add, alter and delete them."""

import argparse
import json
from pathlib import Path
from typing import Final

from sparklog.cli.action_parsers import add_action, add_actions
from sparklog.cli.cluster.users.passwords import read_password
from sparklog.cli.command import DONE, Command, UsageError
from sparklog.cli.connect import connect, wants_json
from sparklog.cli.table import render_table
from sparklog.cli.values import positive
from sparklog.client.cluster import ClusterClient
from sparklog.client.security.user_admin import ITERATIONS_DEFAULT, User, UserAdmin, salted
from sparklog.core.security.login.scram import SCRAM_MECHANISMS
from sparklog.model.errors import SparklogError

DESCRIPTION: Final = """\
Passwords of users who log in by SCRAM. They are kept in ZooKeeper as Kafka keeps them, salted: no
password can be read from there. A new or changed one counts at once at every broker; a deleted one
closes the connections that it has opened.

A password is read from the first line of --password-file, or asked for on the terminal."""

EXAMPLES: Final = (
    "sparklog users list --root /tmp/sparklog",
    "sparklog users add alice --mechanism SCRAM-SHA-512 --root /tmp/sparklog",
    "sparklog users alter alice --mechanism SCRAM-SHA-512 --password-file new.txt --root /tmp/sparklog",
    "sparklog users delete alice --root /tmp/sparklog",
    "sparklog users add broker --mechanism SCRAM-SHA-512 --password-file broker.txt --zookeeper zk1:2181/log",
    "sparklog users add broker --mechanism SCRAM-SHA-512 --zookeeper zk1:2181/log "
    "--settings server.properties",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser, "list|add|alter|delete")
    add_action(actions, "list", "all users with a password", _list, EXAMPLES)
    adding = add_action(actions, "add", "give a user a password for a mechanism", _add, EXAMPLES)
    adding.add_argument(
        "--zookeeper",
        metavar="HOST:PORT,...[/PATH]",
        help="write there, before the cluster's first start: brokers that log in need a user",
    )
    adding.add_argument(
        "--settings",
        dest="settings_file",
        type=Path,
        metavar="FILE",
        help="with --zookeeper: a file of brokers' settings, whose zookeeper.* say how to connect",
    )
    altering = add_action(actions, "alter", "change a user's password for a mechanism", _alter, EXAMPLES)
    for action in (adding, altering):
        _add_name(action)
        action.add_argument("--mechanism", required=True, choices=tuple(SCRAM_MECHANISMS))
        action.add_argument(
            "--iterations", type=positive, default=ITERATIONS_DEFAULT, metavar="N",
            help="4096 to 16384; default: %(default)s",
        )  # fmt: skip
        action.add_argument(
            "--password-file", type=Path, metavar="FILE", help="its first line is the password"
        )
    deleting = add_action(actions, "delete", "take a user's passwords away", _delete, EXAMPLES)
    _add_name(deleting)
    deleting.add_argument("--mechanism", choices=tuple(SCRAM_MECHANISMS), help="this one alone")


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the user, without User:")


def run(arguments: argparse.Namespace) -> int:
    zookeeper: str | None = getattr(arguments, "zookeeper", None)
    if zookeeper is not None:
        return _add_before_start(zookeeper, arguments)
    if getattr(arguments, "settings_file", None) is not None:
        raise UsageError("--settings goes with --zookeeper; a cluster that runs takes --command-config")
    with connect(arguments) as cluster:
        done: int = arguments.do(cluster, arguments)
    return done


def _list(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    users = UserAdmin(cluster).users()
    if wants_json(arguments):
        print(json.dumps({"users": [_json(user) for user in users]}))
    else:
        rows = [(user.name, one, n) for user in users for one, n in sorted(user.credentials.items())]
        print(render_table(("user", "mechanism", "iterations"), rows))
    return DONE


def _json(user: User) -> dict[str, object]:
    infos = [{"mechanism": one, "iterations": n} for one, n in sorted(user.credentials.items())]
    return {"user": user.name, "credential_infos": infos}


def _add(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    known = UserAdmin(cluster).user(arguments.name)
    if known is not None and arguments.mechanism in known.credentials:
        raise SparklogError(
            f"user {arguments.name!r} has a password for {arguments.mechanism} already; change it with: "
            "sparklog users alter"
        )
    return _set(cluster, arguments, "has a")


def _alter(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    known = UserAdmin(cluster).user(arguments.name)
    if known is None or arguments.mechanism not in known.credentials:
        raise SparklogError(
            f"user {arguments.name!r} has no password for {arguments.mechanism}; give one with: sparklog "
            "users add"
        )
    return _set(cluster, arguments, "has another")


def _set(cluster: ClusterClient, arguments: argparse.Namespace, has: str) -> int:
    password = read_password(arguments.password_file, arguments.name)
    UserAdmin(cluster).set_password(arguments.name, arguments.mechanism, password, arguments.iterations)
    print(f"user {arguments.name!r} {has} password for {arguments.mechanism}")
    return DONE


def _delete(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    admin = UserAdmin(cluster)
    known = admin.user(arguments.name)
    mechanisms = [] if known is None else sorted(known.credentials)
    if arguments.mechanism is not None:
        mechanisms = [one for one in mechanisms if one == arguments.mechanism]
    if not mechanisms:
        what = arguments.mechanism or "any mechanism"
        raise SparklogError(f"user {arguments.name!r} has no password for {what}; see: sparklog users list")
    admin.delete(arguments.name, mechanisms)
    print(f"user {arguments.name!r} has no password any more for {', '.join(mechanisms)}")
    return DONE


def _add_before_start(zookeeper: str, arguments: argparse.Namespace) -> int:
    if getattr(arguments, "bootstrap_server", None) or getattr(arguments, "root", None):
        raise UsageError("--zookeeper is for a cluster that does not run; leave it out, or the cluster")
    # start time: they are for this way of writing alone
    from sparklog.cli.cluster.users.before_start import write_user
    from sparklog.cli.zookeeper.command_session import session_of

    password = read_password(arguments.password_file, arguments.name)
    upsertion = salted(arguments.name, arguments.mechanism, password, arguments.iterations)
    with session_of(zookeeper, arguments.settings_file) as session:
        write_user(session, upsertion, arguments.mechanism)
    print(f"user {arguments.name!r} has a password for {arguments.mechanism}, in ZooKeeper")
    return DONE


COMMAND: Final = Command(
    name="users",
    summary="passwords of users who log in by SCRAM: list, add, alter and delete them",
    add_arguments=add_arguments,
    run=run,
    description=DESCRIPTION,
    examples=EXAMPLES,
)
