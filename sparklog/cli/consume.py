"""``sparklog consume``: the values of a topic's records, a line each."""

import argparse
import sys
from collections.abc import Iterable
from typing import BinaryIO, Final

import pyarrow as pa

from sparklog.cli.command import DONE, Command, UsageError
from sparklog.cli.connect import add_cluster_arguments, connect
from sparklog.cli.lines import unescape
from sparklog.cli.progress import patience, say
from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.consumer import Consumer
from sparklog.client.errors import OffsetOutOfRange
from sparklog.client.isolation import IsolationLevel
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import TopicPartition

NULL: Final = b"null"
"""How a missing key or value is printed, as Kafka's console consumer does."""

POLL_MS: Final = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    parser.add_argument("--topic", required=True, metavar="T")
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        action="store_true",
        help="begin with the first record; default: with the next new one",
    )
    start.add_argument(
        "--offset", type=_natural, metavar="N", help="begin with this offset of one --partition"
    )
    parser.add_argument("--partition", type=_natural, metavar="P", help="default: all partitions")
    parser.add_argument(
        "--max-messages",
        type=_natural,
        metavar="N",
        help="end after so many records; default: go on until Ctrl-C",
    )
    parser.add_argument(
        "--timeout-ms",
        type=_natural,
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
    with connect(arguments) as cluster:
        with patience(f"looking for topic {arguments.topic!r}"):
            positions = starting_positions(cluster, arguments)
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


def starting_positions(cluster: ClusterClient, arguments: argparse.Namespace) -> dict[TopicPartition, int]:
    """Where to begin in each partition that is to be read."""
    tps = cluster.topic(arguments.topic).topic_partitions()
    if arguments.partition is not None:
        wanted = TopicPartition(arguments.topic, arguments.partition)
        if wanted not in tps:
            there_are = f"topic {arguments.topic!r} has partitions 0 to {len(tps) - 1}"
            raise KafkaError(
                ErrorCode.unknown_topic_or_partition, f"{there_are}, but none {arguments.partition}"
            )
        tps = [wanted]
    if arguments.offset is not None:
        return dict.fromkeys(tps, arguments.offset)
    if arguments.from_beginning:
        return offsets.earliest(cluster, tps)
    return offsets.latest(cluster, tps, IsolationLevel.READ_COMMITTED)


def _print_records(consumer: Consumer, arguments: argparse.Namespace) -> None:
    left: int | None = arguments.max_messages
    separator = unescape(arguments.key_separator) if arguments.print_key else None
    output = sys.stdout.buffer
    idle_ms = 0
    while left is None or left > 0:
        wait_ms = POLL_MS if arguments.timeout_ms is None else min(POLL_MS, arguments.timeout_ms - idle_ms)
        polled = consumer.poll(wait_ms)
        for _, rows in polled:
            wanted = rows if left is None else rows.slice(0, left)
            _write(output, wanted, separator)
            left = None if left is None else left - wanted.num_rows
        idle_ms = 0 if polled else idle_ms + wait_ms
        if arguments.timeout_ms is not None and idle_ms >= arguments.timeout_ms:
            return


def _write(output: BinaryIO, rows: pa.RecordBatch, separator: bytes | None) -> None:
    """A line per record, flushed: whoever reads sees a record as soon as it is here."""
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
    """Old records are deleted while a slow reader reads: say so, and go on with the first that is left."""
    if gone.offset > gone.log_end_offset:
        raise gone
    say(f"warning: {gone.message}; going on with offset {gone.log_start_offset}")
    return gone.log_start_offset


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


COMMAND = Command(
    name="consume",
    summary="print the values of a topic's records, a line each",
    description="Prints the values of a topic's records, a line each, until Ctrl-C.",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog consume --topic events --from-beginning --root /tmp/sparklog",
        "sparklog consume --topic events --partition 0 --offset 1000 --max-messages 10 "
        "--bootstrap-server 127.0.0.1:9092",
        "sparklog consume --topic events --print-key --key-separator : --root /tmp/sparklog",
    ),
)
