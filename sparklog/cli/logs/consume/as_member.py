"""Reading as a member of a group: the members share the partitions, and the group keeps the positions.

What is printed is committed: every five seconds, before partitions go to another member, and at the end. A
command that is killed by SIGKILL leaves its last seconds to be printed once more by the next one.
"""

import argparse
import time

import pyarrow as pa

from sparklog.cli.logs.consume.alone import isolation_level
from sparklog.cli.logs.consume.printing import RecordPrinter
from sparklog.cli.progress import PATIENCE_S, say
from sparklog.cli.signals import end_as_flag
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import OffsetOutOfRange
from sparklog.client.group.group_consumer import GroupConsumer, OffsetReset
from sparklog.client.group.settings import DEFAULT_ASSIGNORS, MemberSettings
from sparklog.model.ids import TopicPartition


def read_as_member(cluster: ClusterClient, arguments: argparse.Namespace, topics: list[str]) -> None:
    """Print records of the group's topics until a signal, or another of the command's ends."""
    group_id: str = arguments.group
    settings = MemberSettings(
        group_id=group_id,
        topics=frozenset(topics),
        group_instance_id=arguments.group_instance_id,
        assignors=tuple(arguments.assignor or DEFAULT_ASSIGNORS),
    )
    with (
        end_as_flag() as ended,
        GroupConsumer(
            cluster,
            settings,
            offset_reset=OffsetReset.EARLIEST if arguments.from_beginning else OffsetReset.LATEST,
            isolation_level=isolation_level(arguments),
            on_assignment=lambda partitions: _say_assignment(group_id, partitions),
            on_out_of_range=lambda gone: _say_reset(gone, arguments),
        ) as consumer,
    ):
        printer = RecordPrinter(arguments)
        waiting = _Waiting(group_id)
        while not ended.is_set() and not printer.is_done:
            wait_ms = printer.wait_ms
            polled = consumer.poll(wait_ms)
            for topic_partition, offset in _print_all(printer, polled).items():
                consumer.seek(topic_partition, offset)
            if not consumer.is_member:
                waiting.note(consumer.obstacle)
            elif not polled:
                printer.note_silence(wait_ms)


def _print_all(
    printer: RecordPrinter, polled: list[tuple[TopicPartition, pa.RecordBatch]]
) -> dict[TopicPartition, int]:
    """Print what is wanted of a poll; returns the first offset that was not printed of each partition.

    A partition may have several batches in a poll. Those after its first unprinted record are unprinted, too.
    """
    unprinted: dict[TopicPartition, int] = {}
    for topic_partition, rows in polled:
        printed = printer.print(topic_partition, rows)
        if printed < rows.num_rows:
            unprinted.setdefault(topic_partition, rows.column("offset")[printed].as_py())
    return unprinted


class _Waiting:
    """Says now and then what the member waits for, while it is not in its group."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._said = ""
        self._quiet_until_s = time.monotonic() + PATIENCE_S

    def note(self, obstacle: str) -> None:
        reason = obstacle or "waiting for the other members"
        now_s = time.monotonic()
        if reason != self._said and now_s >= self._quiet_until_s:
            say(f"joining group {self._group_id!r}: {reason} ...")
            self._said, self._quiet_until_s = reason, now_s + PATIENCE_S


def _say_assignment(group_id: str, partitions: frozenset[TopicPartition]) -> None:
    names = ", ".join(str(one) for one in sorted(partitions))
    say(f"group {group_id!r}: " + (f"reading {names}" if names else "no partition for this member now"))


def _say_reset(gone: OffsetOutOfRange, arguments: argparse.Namespace) -> None:
    where = "first record" if arguments.from_beginning else "end"
    say(f"warning: {gone.message}; going on at the {where} of the partition")
