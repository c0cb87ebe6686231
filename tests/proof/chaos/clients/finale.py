"""What is read when everything is mended: every partition by a client, and every replica from its files."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from chaos.access import Access
from chaos.clients.client_parts import value_of
from chaos.clients.typed.json_rows import JsonRows
from histories import Writer
from histories.segments import DamagedLogError, read_replica
from histories.typed.columns import TopicColumns
from histories.write import Cell

READ_TIMEOUT_S = 120.0
NOTHING_OPEN_S = 30.0
"""For so long transactions whose producers are gone may stay open: three of their time-outs."""


class FinalReadFailed(Exception):  # noqa: N818 (it states a fact)
    """A partition could not be read to its end although nothing is wrong any more."""


def read_everything(
    access: Access, topics: Mapping[str, int], writer: Writer, typed: Mapping[str, TopicColumns] | None = None
) -> int:
    """The final read of each partition; how many records there were. ``typed``: the columns of typed topics,
    which change no more.
    """
    consumer, other = _consumer(access, "committed"), _consumer(access, "uncommitted")
    total = 0
    nothing_open_by = time.monotonic() + NOTHING_OPEN_S
    try:
        for topic, partitions in topics.items():
            rows = None if topic not in (typed or {}) else JsonRows((typed or {})[topic])
            for partition in range(partitions):
                mark = _log_end(consumer, other, topic, partition, nothing_open_by)
                total += _read(consumer, topic, partition, writer, mark, rows)
    finally:
        consumer.close()
        other.close()
    return total


def _consumer(access: Access, isolation: str) -> Consumer:
    return Consumer(
        {
            **access.confluent(),
            "group.id": "final-reader",
            "isolation.level": f"read_{isolation}",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "enable.partition.eof": True,
            "log_level": 0,
            "error_cb": lambda error: None,
        }
    )


def _log_end(committed: Consumer, uncommitted: Consumer, topic: str, partition: int, deadline: float) -> int:
    """Where the log ends, once committed records end there or it is time."""
    while True:
        _, end = _watermarks(uncommitted, topic, partition)
        _, stable = _watermarks(committed, topic, partition)
        if stable >= end or time.monotonic() > deadline:
            return end
        time.sleep(0.2)


def _watermarks(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """The log's start, and its end for this consumer."""
    deadline = time.monotonic() + READ_TIMEOUT_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10.0, cached=False)
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise FinalReadFailed(f"{topic}/{partition}: {error}") from None
        else:
            return low, high


def _read(
    consumer: Consumer,
    topic: str,
    partition: int,
    writer: Writer,
    high_watermark: int,
    rows: JsonRows | None,
) -> int:
    deadline = time.monotonic() + READ_TIMEOUT_S
    op = writer.end("final-reader", topic, partition)
    low, high = _watermarks(consumer, topic, partition)
    writer.ended("final-reader", op, high)
    records: list[tuple[int, str]] = []
    cells: list[Cell] = []
    consumer.assign([TopicPartition(topic, partition, low)])
    trouble = ""
    # A compacted log may have nothing at its last offsets: only its end tells that all was read.
    is_whole = low >= high
    while not is_whole:
        if time.monotonic() > deadline:
            at = records[-1][0] + 1 if records else low
            raise FinalReadFailed(f"{topic}/{partition} of [{low}, {high}) ends at {at} {trouble}")
        for message in consumer.consume(1_000, 0.2):
            if message.error() is None and rows is not None:
                name, held = rows.row(message.key(), message.value())
                records.append((message.offset(), name))
                cells += [(message.offset(), column, text) for column, text in held.items()]
            elif message.error() is None:
                records.append((message.offset(), value_of(message.value(), message.headers())))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                is_whole = message.offset() >= high
            else:
                trouble = str(message.error())
    records = [record for record in records if record[0] < high]
    writer.final(
        "final-reader",
        topic,
        partition,
        start=low,
        end=high,
        records=records,
        high_watermark=high_watermark,
        columns=None if rows is None else rows.ids,
        cells=cells,
    )
    return len(records)


def dump_replicas(
    replicas: Mapping[tuple[str, int], Iterable[int]], log_dirs: Mapping[int, Path], writer: Writer
) -> list[str]:
    """Each replica's log as its files have it, once brokers have stopped; what is wrong with those files."""
    wrong = []
    for (topic, partition), brokers in sorted(replicas.items()):
        for broker in brokers:
            try:
                found = read_replica(log_dirs[broker], topic, partition)
            except (DamagedLogError, OSError) as error:
                wrong.append(f"the log of {topic}/{partition} on broker {broker}: {error}")
            else:
                writer.dump(
                    "dumper",
                    f"broker-{broker}",
                    topic,
                    partition,
                    start=found.start,
                    end=found.end,
                    high_watermark=found.high_watermark,
                    records=found.records,
                    batches=found.batches,
                    cells=found.cells,
                )
    return wrong
