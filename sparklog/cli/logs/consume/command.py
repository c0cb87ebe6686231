"""``sparklog consume``: the values of a topic's records, a line each."""

import argparse
import sys

from sparklog.cli.command import DONE, Command, UsageError
from sparklog.cli.connect import add_cluster_arguments, connect
from sparklog.cli.logs.consume.alone import read_alone
from sparklog.cli.logs.consume.as_member import read_as_member
from sparklog.cli.logs.record_text.record_format import NAMES, RecordFormat
from sparklog.cli.topic_names import find_topic, topic_name
from sparklog.cli.values import group_name, natural, offset, partition_number
from sparklog.client.group.settings import ASSIGNORS, DEFAULT_ASSIGNORS
from sparklog.client.isolation import IsolationLevel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    parser.add_argument(
        "--topic", required=True, action="append", type=topic_name, metavar="T", help="may be repeated"
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        action="store_true",
        help="begin with the first record; default: with the next new one. With --group: only where the "
        "group has no committed offset",
    )
    start.add_argument("--offset", type=offset, metavar="N", help="begin with this offset of one --partition")
    parser.add_argument("--partition", type=partition_number, metavar="P", help="default: all partitions")
    parser.add_argument(
        "--max-messages",
        type=natural,
        metavar="N",
        help="end after so many records; default: go on until Ctrl-C",
    )
    parser.add_argument(
        "--timeout-ms",
        type=natural,
        metavar="MS",
        help="end when no record has come for so long; default: wait",
    )
    parser.add_argument(
        "--group",
        type=group_name,
        metavar="G",
        help="read as a member of this group: its members share the partitions, and it keeps the positions",
    )
    parser.add_argument(
        "--group-instance-id",
        type=group_name,
        metavar="ID",
        help="be a static member: keep the partitions over a restart that is shorter than 45 seconds",
    )
    parser.add_argument(
        "--assignor",
        action="append",
        choices=list(ASSIGNORS),
        help=f"how the group divides partitions; may be repeated; default: {', '.join(DEFAULT_ASSIGNORS)}",
    )
    parser.add_argument(
        "--isolation-level",
        choices=[level.name.lower() for level in IsolationLevel],
        default=IsolationLevel.READ_COMMITTED.name.lower(),
        help="read_uncommitted: also records of open and aborted transactions; default: %(default)s",
    )
    _add_shape_arguments(parser)


def _add_shape_arguments(parser: argparse.ArgumentParser) -> None:
    """How a record is shown."""
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--print-key", action="store_true", help="print each key before its value")
    shape.add_argument(
        "--format",
        type=RecordFormat,
        metavar="TEXT",
        help=f"print this for each record, with {', '.join(f'{{{name}}}' for name in NAMES)} for its parts, "
        r"and \t and \n; timestamps are milliseconds since 1970, bytes that are no UTF-8 \xNN",
    )
    shape.add_argument(
        "--json",
        action="store_true",
        help="print each record as a JSON object, with all of its parts; produce --json takes it",
    )
    parser.add_argument(
        "--key-separator", default=r"\t", metavar="SEP", help="between key and value; default: a tab"
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    names: list[str] = list(dict.fromkeys(arguments.topic))
    with connect(arguments) as cluster:
        topics = [find_topic(cluster, arguments, name) for name in names]
        if arguments.group is None:
            read_alone(cluster, arguments, topics)
        else:
            read_as_member(cluster, arguments, names)
    return DONE


def _check(arguments: argparse.Namespace) -> None:
    """UsageError for options that contradict each other."""
    if arguments.offset is not None and arguments.partition is None:
        raise UsageError(
            f"--offset {arguments.offset} needs a --partition: every partition has its own offsets"
        )
    if arguments.partition is not None and len(set(arguments.topic)) > 1:
        raise UsageError(f"--partition {arguments.partition} is for one --topic")
    if arguments.group is not None and arguments.partition is not None:
        raise UsageError(
            f"--group {arguments.group} and --partition {arguments.partition}: the group chooses the "
            "partitions of its members; leave one of the two away"
        )
    if arguments.group is None and (arguments.group_instance_id or arguments.assignor):
        raise UsageError("--group-instance-id and --assignor are for members of a --group")
    if sys.stdout is None:
        raise UsageError("standard output is closed; there is nowhere to print records to")


COMMAND = Command(
    name="consume",
    summary="print the values of a topic's records, a line each",
    description="Prints the values of a topic's records, a line each, as they are, until Ctrl-C.\n\n"
    "Each record is printed as soon as it is here. Ctrl-C, --max-messages, --timeout-ms and a closed pipe\n"
    "(as in `| head -1`) are its usual ends: quiet, with status 0. Records of a partition come in order.\n\n"
    "With --group, commands (and any Kafka consumers) with the same group share the partitions. The group\n"
    "keeps the positions: a later command goes on where the earlier ones ended.",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog consume --topic events --from-beginning --root /tmp/sparklog",
        "sparklog consume --topic events --partition 0 --offset 1000 --max-messages 10 "
        "--bootstrap-server 127.0.0.1:9092",
        "sparklog consume --topic events --group billing --from-beginning --root /tmp/sparklog",
        "sparklog consume --topic events --print-key --key-separator : --root /tmp/sparklog",
        "sparklog consume --topic events --format '{partition}:{offset} {key} {value}' --root /tmp/sparklog",
        "sparklog consume --topic events --json --from-beginning --root /tmp/sparklog",
    ),
)
