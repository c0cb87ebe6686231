"""``sparklog transactions``: transactional ids, their open transactions, and transactions that hang.

list                the transactional ids of the cluster, with their states
describe            a transactional id with its latest transaction and the partitions of that
describe-producers  the producers that a partition knows, and since where a transaction of each is open
find-hanging        transactions that are open in a partition, and that no coordinator will end
abort               the open transaction of a transactional id, or one that hangs in a partition
"""

import argparse
from typing import Final

from sparklog.cli.action_parsers import Actions, add_action, add_actions, run_action
from sparklog.cli.command import Command, UsageError
from sparklog.cli.coordinators.transactions import (
    abort,
    find_hanging,
    producers,
    transaction_description,
    transaction_listing,
)
from sparklog.cli.topic_names import topic_name
from sparklog.cli.values import (
    broker_id,
    coordinator_epoch,
    natural,
    offset,
    partition_number,
    producer_epoch,
    producer_id,
    transactional_id,
)

EXAMPLES = (
    "sparklog transactions list --state Ongoing --root /tmp/sparklog",
    "sparklog transactions describe billing --bootstrap-server 127.0.0.1:9092",
    "sparklog transactions describe-producers --topic orders --partition 0 --root /tmp/sparklog",
    "sparklog transactions find-hanging --root /tmp/sparklog",
    "sparklog transactions abort billing --root /tmp/sparklog",
    "sparklog transactions abort --topic orders --partition 0 --start-offset 4711 --root /tmp/sparklog",
)

MAX_TIMEOUT_MINUTES: Final = 15
"""``transaction.max.timeout.ms`` of a broker without settings, and the default of Kafka's tool."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser, "list|describe|describe-producers|find-hanging|abort")
    _add_list(actions)
    summary = "show a transactional id, with its latest transaction and the partitions of that"
    described = add_action(actions, "describe", summary, transaction_description.describe, EXAMPLES)
    described.add_argument("transactional_ids", nargs="+", type=transactional_id, metavar="ID")
    summary = "show the producers that a partition knows, and since which offset a transaction is open"
    of_partition = add_action(actions, "describe-producers", summary, producers.describe_producers, EXAMPLES)
    _add_partition(of_partition, required=True)
    _add_find_hanging(actions)
    _add_abort(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_action(arguments, _check)


def _add_list(actions: Actions) -> None:
    summary = "list the transactional ids and their states"
    parser = add_action(actions, "list", summary, transaction_listing.list_transactions, EXAMPLES)
    parser.add_argument(
        "--state",
        action="append",
        type=transaction_listing.state,
        metavar="STATE",
        help=f"only ids in this state; may be repeated; {', '.join(transaction_listing.STATES)}",
    )
    parser.add_argument(
        "--producer-id",
        action="append",
        type=producer_id,
        metavar="N",
        help="only ids that have this producer id; may be repeated",
    )


def _add_find_hanging(actions: Actions) -> None:
    summary = "find transactions that are open in a partition, and that no coordinator will end"
    parser = add_action(actions, "find-hanging", summary, find_hanging.find_hanging, EXAMPLES)
    _add_partition(parser, required=False)
    parser.add_argument(
        "--broker-id", type=broker_id, metavar="N", help="only partitions with a replica at this broker"
    )
    parser.add_argument(
        "--max-transaction-timeout",
        type=natural,
        default=MAX_TIMEOUT_MINUTES,
        metavar="MINUTES",
        help="only those whose last batch is older than that; default: %(default)s",
    )


def _add_abort(actions: Actions) -> None:
    summary = "abort the open transaction of a transactional id, or one that hangs in a partition"
    parser = add_action(actions, "abort", summary, abort.abort, EXAMPLES)
    parser.add_argument(
        "transactional_id",
        nargs="?",
        type=transactional_id,
        metavar="ID",
        help="its coordinator aborts in all partitions, and its producer is fenced",
    )
    _add_partition(parser, required=False)
    parser.add_argument(
        "--start-offset", type=offset, metavar="N", help="where the hanging transaction begins"
    )
    parser.add_argument(
        "--producer-id",
        type=producer_id,
        metavar="N",
        help="with the next two instead of --start-offset: a marker is written without any check",
    )
    parser.add_argument("--producer-epoch", type=producer_epoch, metavar="N")
    parser.add_argument("--coordinator-epoch", type=coordinator_epoch, metavar="N")


def _add_partition(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--topic", type=topic_name, required=required, metavar="T")
    parser.add_argument("--partition", type=partition_number, required=required, metavar="P")


def _check(arguments: argparse.Namespace) -> None:
    if arguments.action == "abort":
        abort.check(arguments)
    if arguments.action != "find-hanging":
        return
    if arguments.partition is not None and arguments.topic is None:
        raise UsageError(f"--partition {arguments.partition} needs a --topic")
    if arguments.partition is not None and arguments.broker_id is not None:
        raise UsageError(
            f"--partition and --broker-id {arguments.broker_id} are both given; give one of them"
        )


COMMAND: Final = Command(
    name="transactions",
    summary="list, describe and abort transactions, and find those that hang",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
