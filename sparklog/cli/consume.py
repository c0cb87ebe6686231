"""``sparklog consume``: the values of a topic's records, a line each."""

import argparse
import select
import sys
from collections.abc import Iterable
from typing import BinaryIO, Final

import pyarrow as pa

from sparklog.cli.command import DONE, Command, UsageError
from sparklog.cli.connect import add_cluster_arguments, connect
from sparklog.cli.lines import unescape
from sparklog.cli.progress import patience, say
from sparklog.cli.topic_names import check_partition, find_topic, topic_name
from sparklog.cli.values import natural, offset, partition_number
from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.consumer import Consumer
from sparklog.client.errors import OffsetOutOfRange
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata import TopicMetadata
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition

NULL: Final = b"null"
"""The text for a null key or value, as in Kafka's console consumer."""

POLL_MS: Final = 250


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    parser.add_argument("--topic", required=True, type=topic_name, metavar="T")
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        action="store_true",
        help="begin with the first record; default: with the next new one",
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
    parser.add_argument("--group", metavar="G", help="not there yet: sparklog has no consumer groups so far")
    parser.add_argument("--print-key", action="store_true", help="print each key before its value")
    parser.add_argument(
        "--key-separator", default=r"\t", metavar="SEP", help="between key and value; default: a tab"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.group is not None:
        raise SparklogError(
            f"--group {arguments.group}: sparklog has no consumer groups yet, nothing would be remembered; "
            "leave --group away and say where to begin with --from-beginning or --offset"
        )
    if arguments.offset is not None and arguments.partition is None:
        raise UsageError(
            f"--offset {arguments.offset} needs a --partition: every partition has its own offsets"
        )
    if sys.stdout is None:
        raise UsageError("standard output is closed; there is nowhere to print records to")
    with connect(arguments) as cluster:
        topic = find_topic(cluster, arguments)
        with patience(f"looking for the offsets of topic {arguments.topic!r}"):
            positions = starting_positions(cluster, topic, arguments)
        try:
            with Consumer(
                cluster,
                positions,
                isolation_level=IsolationLevel.READ_COMMITTED,
                on_out_of_range=_go_on_with_what_is_left,
            ) as consumer:
                _print_records(consumer, arguments)
        except KeyboardInterrupt:
            pass  # the usual end of a consumer
    return DONE


def starting_positions(
    cluster: ClusterClient, topic: TopicMetadata, arguments: argparse.Namespace
) -> dict[TopicPartition, int]:
    """The first offset to read of each partition."""
    topic_partitions = topic.topic_partitions()
    if arguments.partition is not None:
        check_partition(topic, arguments.partition)
        topic_partitions = [TopicPartition(topic.name, arguments.partition)]
    if arguments.offset is not None:
        return dict.fromkeys(topic_partitions, arguments.offset)
    if arguments.from_beginning:
        return offsets.earliest(cluster, topic_partitions)
    return offsets.latest(cluster, topic_partitions, IsolationLevel.READ_COMMITTED)


def _print_records(consumer: Consumer, arguments: argparse.Namespace) -> None:
    left: int | None = arguments.max_messages
    separator = unescape(arguments.key_separator) if arguments.print_key else None
    output = sys.stdout.buffer
    idle_ms = 0
    while (left is None or left > 0) and not is_reader_gone(sys.stdout.fileno()):
        wait_ms = POLL_MS if arguments.timeout_ms is None else min(POLL_MS, arguments.timeout_ms - idle_ms)
        polled = consumer.poll(wait_ms)
        for _, rows in polled:
            wanted = rows if left is None else rows.slice(0, left)
            _write(output, wanted, separator)
            left = None if left is None else left - wanted.num_rows
        idle_ms = 0 if polled else idle_ms + wait_ms
        if arguments.timeout_ms is not None and idle_ms >= arguments.timeout_ms:
            return


def is_reader_gone(descriptor: int) -> bool:
    """Whether this is a pipe without a reader. Without a new record, no write would detect that."""
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are always reported
    return any(happened & (select.POLLERR | select.POLLHUP) for _, happened in poll.poll(0))


def _write(output: BinaryIO, rows: pa.RecordBatch, separator: bytes | None) -> None:
    """Write a line per record and flush, so that each record is visible at once."""
    values: Iterable[bytes | None] = rows.column("value").to_pylist()
    lines = [NULL if value is None else value for value in values]
    if separator is not None:
        keys: Iterable[bytes | None] = rows.column("key").to_pylist()
        lines = [
            (NULL if key is None else key) + separator + line for key, line in zip(keys, lines, strict=True)
        ]
    if lines:
        output.write(b"\n".join(lines) + b"\n")
        output.flush()


def _go_on_with_what_is_left(gone: OffsetOutOfRange) -> int:
    """Retention deleted records before this reader got them: warn, and continue at the log start."""
    if gone.offset > gone.log_end_offset:
        raise gone
    say(f"warning: {gone.message}; going on with offset {gone.log_start_offset}")
    return gone.log_start_offset


COMMAND = Command(
    name="consume",
    summary="print the values of a topic's records, a line each",
    description="Prints the values of a topic's records, a line each, as they are, until Ctrl-C.\n\n"
    "Each record is printed as soon as it is here. Ctrl-C, --max-messages, --timeout-ms and a closed pipe\n"
    "(as in `| head -1`) are its usual ends: quiet, with status 0. Records of one partition come in order.",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog consume --topic events --from-beginning --root /tmp/sparklog",
        "sparklog consume --topic events --partition 0 --offset 1000 --max-messages 10 "
        "--bootstrap-server 127.0.0.1:9092",
        "sparklog consume --topic events --print-key --key-separator : --root /tmp/sparklog",
    ),
)
