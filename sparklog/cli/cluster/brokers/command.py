"""``sparklog brokers``: list brokers and operations; stop, start, restart, drain, fill and remove brokers."""

import argparse
from collections.abc import Callable
from typing import Final

from sparklog.cli.action_parsers import Actions, add_actions, add_plain_action
from sparklog.cli.cluster.brokers.begin_and_watch import begin, cancel
from sparklog.cli.cluster.brokers.listing import list_brokers, list_operations
from sparklog.cli.command import Command, UsageError
from sparklog.cli.connect import bootstrap_servers_of
from sparklog.cli.values import broker_id, natural, positive

EXAMPLES: Final = (
    "sparklog brokers list --root /tmp/sparklog",
    "sparklog brokers stop 3 --root /tmp/sparklog",
    "sparklog brokers start 3 --root /tmp/sparklog",
    "sparklog brokers restart --all --root /tmp/sparklog",
    "sparklog brokers drain 3 --throttle 10000000 --bootstrap-server 127.0.0.1:9092",
    "sparklog brokers fill 4 --root /tmp/sparklog",
    "sparklog brokers remove 3 --root /tmp/sparklog",
    "sparklog brokers operations --json --root /tmp/sparklog",
    "sparklog brokers cancel 12 --root /tmp/sparklog",
)

Run = Callable[[argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser, "list|operations|cancel|start|stop|restart|drain|fill|remove")
    add_plain_action(
        actions, "list", "every broker that has registered, and what is wished of it", EXAMPLES, list_brokers
    )
    _operations = "operations under way, and the last hundred that ended"
    add_plain_action(actions, "operations", _operations, EXAMPLES, list_operations)
    cancelling = add_plain_action(
        actions, "cancel", "revert what an operation has not done, and end it", EXAMPLES, cancel
    )
    cancelling.add_argument("operation", type=natural, metavar="ID")
    _add(actions, "start", "start brokers that were stopped, or that their application would start later")
    stopping = _add(actions, "stop", "stop brokers in order; they stay stopped until they are started")
    _add_accept(stopping)
    restarting = _add(
        actions, "restart", "restart brokers one at a time, with their settings read again", names="*"
    )
    restarting.add_argument("--all", action="store_true", help="every broker that is to serve")
    _add_accept(restarting)
    for action, summary in (
        ("drain", "move everything from brokers to others, then stop them"),
        ("fill", "move a fair share of replicas to new brokers"),
    ):
        _add(actions, action, summary).add_argument(
            "--throttle",
            type=positive,
            metavar="BYTES_PER_S",
            help="what a broker sends and fetches at most for these moves",
        )
    removing = add_plain_action(actions, "remove", "forget brokers that were drained", EXAMPLES, begin)
    removing.add_argument("brokers", type=broker_id, nargs="+", metavar="N")


def _add(actions: Actions, name: str, summary: str, *, names: str = "+") -> argparse.ArgumentParser:
    parser = add_plain_action(actions, name, summary, EXAMPLES, begin)
    parser.add_argument("brokers", type=broker_id, nargs=names, metavar="N")
    parser.add_argument("--no-wait", action="store_true", help="begin the operation, and do not watch it")
    return parser


def _add_accept(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accept-unavailable",
        action="store_true",
        help="also where partitions cannot be written meanwhile, because they have too few replicas",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "restart" and bool(arguments.brokers) == arguments.all:
        raise UsageError("which brokers? give their ids, or --all")
    bootstrap_servers_of(arguments)  # so that options without a cluster are refused at once
    do: Run = arguments.do
    return do(arguments)


COMMAND = Command(
    name="brokers",
    summary="list, stop, start, restart, drain, fill and remove brokers",
    description="An operation is carried out by the controller, and survives the end of this command, of a "
    "broker\nand of the driver. A broker that was stopped stays stopped until it is started.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
