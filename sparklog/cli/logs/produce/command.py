"""``sparklog produce``: a record for each line of standard input.

A line is a value; with ``--key-separator`` it is key and value, with ``--json`` an object with all parts of
a record. A line that is no record ends the input: those before it are written, it and the rest are not.
"""

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from sparklog.cli.command import DONE, Command, UsageError
from sparklog.cli.connect import add_cluster_arguments, connect
from sparklog.cli.logs.record_text import record_json
from sparklog.cli.logs.record_text.lines import read_lines, unescape
from sparklog.cli.logs.record_text.record import Record
from sparklog.cli.logs.record_text.record_json import BadRecord
from sparklog.cli.progress import Counter, patience
from sparklog.cli.signals import end_as_flag
from sparklog.cli.topic_names import check_partition, find_topic, topic_name
from sparklog.cli.values import header, partition_number
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ProduceFailed
from sparklog.client.producer import Delivered
from sparklog.client.records_producer import LINGER_MS, Producer
from sparklog.model.errors import SparklogError
from sparklog.records.envelope import Compression

NOTE_EVERY: Final = 1_000

ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    parser.add_argument("--topic", required=True, type=topic_name, metavar="T")
    parser.add_argument(
        "--key-separator",
        metavar="SEP",
        help=r"split each line into key and value at the first SEP (\t is a tab); without it there is no key",
    )
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        type=header,
        metavar="NAME=VALUE",
        help="give every record this header; may be repeated",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="each line is a JSON object, as consume --json prints it; its key, value and headers are "
        "written, and its partition and timestamp_ms where it has them",
    )
    parser.add_argument(
        "--partition",
        type=partition_number,
        metavar="P",
        help="write to this partition, whatever a line of --json says; default: as Kafka's Java clients do",
    )
    parser.add_argument(
        "--acks",
        choices=list(ACKS),
        default="all",
        help="who must have a record before it counts; with `all` (the default) it is written once",
    )
    parser.add_argument(
        "--compression",
        choices=[codec.name.lower() for codec in Compression],
        default="none",
        help="default: %(default)s",
    )


Read = Callable[[bytes], Record]
"""The record in a line; BadRecord if there is none."""


def run(arguments: argparse.Namespace) -> int:
    read = _reader(arguments)
    if sys.stdin is None:
        raise UsageError(
            "standard input is closed; give it the lines, as in: sparklog produce ... < lines.txt"
        )
    with connect(arguments) as cluster:
        topic = find_topic(cluster, arguments, arguments.topic)
        if arguments.partition is not None:
            check_partition(topic, arguments.partition)
        produce(cluster, arguments, _checked(read, arguments.partition, len(topic.partitions)))
    return DONE


def _reader(arguments: argparse.Namespace) -> Read:
    """How the options read a line; UsageError if they contradict each other."""
    headers: tuple[tuple[str, bytes | None], ...] = tuple(arguments.header)
    if arguments.json:
        if headers or arguments.key_separator is not None:
            option = "--header" if headers else "--key-separator"
            raise UsageError(f"{option} and --json: an object has its own key and headers; leave one away")
        return record_json.decode
    if arguments.key_separator is None:
        return lambda line: Record(line, headers=headers)
    separator = unescape(arguments.key_separator)
    if not separator:
        raise UsageError("--key-separator is empty; give what stands between key and value, such as :")

    def read(line: bytes) -> Record:
        key, found, value = line.partition(separator)
        if not found:
            raise BadRecord(f"has no key separator {separator.decode()!r}")
        return Record(value, key, headers)

    return read


def _checked(read: Read, partition: int | None, partition_count: int) -> Read:
    """``read``, with the partition that the options name, or else one that the topic has."""

    def read_and_check(line: bytes) -> Record:
        record = read(line)
        if partition is not None:
            return replace(record, partition=partition)
        if record.partition is not None and record.partition >= partition_count:
            raise BadRecord(
                f"has partition {record.partition}, but the topic has 0 to {partition_count - 1}; "
                "--partition goes over it"
            )
        return record

    return read_and_check


@dataclass(slots=True)
class _Sent:
    """The progress of a run of ``produce``."""

    records: int = 0
    acknowledged: int = 0

    def note(self, delivered: Iterable[Delivered]) -> None:
        self.acknowledged += sum(batch.record_count for batch in delivered)


def produce(cluster: ClusterClient, arguments: argparse.Namespace, read: Read) -> None:
    """Send every line and wait for all acknowledgements. Ctrl-C ends the input; a second one exits."""
    codec = Compression[arguments.compression.upper()]
    sent = _Sent()
    with Producer(cluster, acks=ACKS[arguments.acks], compression=codec) as producer:
        try:
            with end_as_flag(signal.SIGINT) as interrupted:
                complaint = _send_lines(producer, arguments.topic, read, sent, interrupted)
            with patience("waiting for acknowledgements"):
                sent.note(producer.flush())
        except ProduceFailed as failed:
            sent.note(producer.delivered())
            raise SparklogError(
                f"{failed.message}; of {sent.records:,} records read {sent.acknowledged:,} were acknowledged"
            ) from None
    if complaint is not None:
        raise SparklogError(complaint)


def _send_lines(
    producer: Producer, topic: str, read: Read, sent: _Sent, interrupted: threading.Event
) -> str | None:
    """Send all lines. Stops at a line that cannot be sent, and returns the reason, else None."""
    counter = None if sys.stdin.isatty() else Counter("records sent")
    for line in read_lines(sys.stdin.fileno(), LINGER_MS):
        if interrupted.is_set():
            return None
        if line is None:
            producer.tick()
            continue
        try:
            record = read(line)
        except BadRecord as wrong:
            return _complaint(line, wrong, sent.records + 1)
        sent.records += 1
        producer.send(
            topic,
            record.value,
            key=record.key,
            headers=record.headers,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
        )
        if counter is not None:
            counter.add(1)
        if sent.records % NOTE_EVERY == 0:
            sent.note(producer.delivered())
    return None


def _complaint(line: bytes, wrong: BadRecord, number: int) -> str:
    shown = line[:60].decode(errors="backslashreplace")
    before = (
        "nothing was written" if number == 1 else "the lines before it were written, it and the rest were not"
    )
    return f"line {number} {wrong}: {shown!r}; {before}"


COMMAND = Command(
    name="produce",
    summary="write a record for each line of standard input",
    description="Writes a record for each line of standard input, without its newline, to a topic.\n\n"
    "Ends with status 0 when every record is acknowledged. Ctrl-C ends the input: what was read is still\n"
    "written. A topic that does not exist is not created: sparklog topics create does that.",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "echo hello | sparklog produce --topic events --root /tmp/sparklog",
        "sparklog produce --topic events --key-separator : --bootstrap-server 127.0.0.1:9092 < key-value.txt",
        "sparklog produce --topic events --header source=shell --root /tmp/sparklog < lines.txt",
        "sparklog consume --topic events --json --from-beginning --timeout-ms 5000 --root /tmp/a | "
        "sparklog produce --topic events --json --root /tmp/b",
    ),
)
