"""Spark as a client: what ``format("sparklog")`` writes and reads, as histories have it.

Each write is a job of one task, whose producer is a session of its own; of a job that fails nobody knows
which rows are there. What is stored of it are Arrow batches, which other clients are given as records.

The reader is a stream with a checkpoint, which outlives it. A micro-batch that may have been given before,
because the stream begins anew, may begin where that one began; others may not go back.
"""

import contextlib
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from chaos.client_parts import (
    Numbers,
    Place,
    Positions,
    Record,
    Seen,
    Settings,
    begin_send,
    value_of,
    where_earlier_lives_stopped,
)
from sparklog.testing.histories import Writer

SPARK_SETTINGS = {
    "spark.app.name": "chaos-client",
    "spark.master": "local[1]",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
ROWS = (
    "topic string, partition int, key binary, value binary, headers array<struct<key: string, value: binary>>"
)
WRITE_EVERY_S = 3.0
LARGE, LARGE_IS_TIMES = 0.05, 20
"""The share of writes with so many times as many rows."""
ALONE = 0.5
CODECS = ("none", "none", "lz4", "zstd")
TRIGGER_S = 1
OFFSETS_PER_TRIGGER = 5_000
LOOK_S = 0.3
AGAIN_AFTER_S = 0.5
SPARK_ERRORS = PySparkException, Py4JError
"""What a job fails with, depending on where."""


@contextlib.contextmanager
def session_of(settings: Settings) -> Iterator[Any]:
    os.environ.update(
        PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1"
    )
    folder = Path(settings.folder).with_name("spark-clients") / settings.name.replace("/", "-")
    builder = SparkSession.builder
    for name, value in SPARK_SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.local.dir", str(folder)).config(
        "spark.sql.warehouse.dir", str(folder / "warehouse")
    )
    session = spark.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


# ------------------------------------------------------------------------------------------------- writes


def produce(settings: Settings, writer: Writer) -> None:
    rng, number = random.Random(settings.seed), 0
    with session_of(settings) as spark:
        due = time.monotonic()
        while not settings.is_stopping:
            time.sleep(min(LOOK_S, max(0.0, due - time.monotonic())))
            if time.monotonic() >= due:
                due = time.monotonic() + WRITE_EVERY_S
                _write(spark, settings, writer, Numbers(f"{settings.name}#{number}"), rng)
                number += 1


def _write(spark: Any, settings: Settings, writer: Writer, numbers: Numbers, rng: random.Random) -> None:
    count = rng.randint(1, max(1, round(2 * settings.rate * WRITE_EVERY_S)))
    count *= LARGE_IS_TIMES if rng.random() < LARGE else 1
    # Few rows of a partition are written as records, more as Arrow: half of the jobs write to one partition.
    places = [rng.choice(settings.partitions())] if rng.random() < ALONE else settings.partitions()
    sends = []
    for _ in range(count):
        place = rng.choice(places)
        op, record = begin_send(settings, writer, numbers, *place, rng)
        sends.append((op, _row(place, record)))
    frame = spark.createDataFrame([row for _, row in sends], ROWS).coalesce(1)
    options = {
        "kafka.bootstrap.servers": settings.bootstrap,
        "kafka.acks": str(settings.acks),
        "kafka.compression.type": rng.choice(CODECS),
    }
    try:
        frame.write.format("sparklog").options(**options).mode("append").save()
    except SPARK_ERRORS as error:
        for op, _ in sends:
            writer.unknown(settings.name, op, error)
    else:
        for op, _ in sends:
            writer.sent(settings.name, op)


def _row(place: Place, record: Record) -> tuple[Any, ...]:
    return (*place, record.key, record.value, record.headers or None)


# -------------------------------------------------------------------------------------------------- reads


class Stream:
    """Writes down micro-batches of a stream that begins anew now and then."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._may_be_again = True

    def begin_anew(self) -> None:
        self._may_be_again = True

    def take(self, rows: Iterable[Any]) -> None:
        """All rows of a micro-batch."""
        got: dict[Place, list[Seen]] = {}
        for row in rows:
            value = value_of(_bytes(row.value), [(one.key, _bytes(one.value)) for one in row.headers or ()])
            got.setdefault((row.topic, row.partition), []).append((row.offset, value, None))
        for place, some in got.items():
            some.sort()
            known = self._positions.at.get(place)
            if known is None or (self._may_be_again and some[0][0] < known):
                self._positions.seek(*place, some[0][0])
        self._positions.take(got)
        self._may_be_again = False


def _bytes(value: Any) -> Any:
    return None if value is None else bytes(value)


def tail(settings: Settings, writer: Writer) -> None:
    """Reads everything as it comes, on from the checkpoint of its earlier lives."""
    positions = Positions(settings, writer)
    for place, offset in where_earlier_lives_stopped(Path(settings.folder), settings.name).items():
        positions.seek(*place, offset)
    stream = Stream(positions)
    name, _, _ = settings.name.rpartition("/")
    checkpoint = Path(settings.folder).with_name("spark-clients") / f"{name}-checkpoint"
    with session_of(settings) as spark:
        while not settings.is_stopping:
            stream.begin_anew()
            query = _start(spark, settings, stream, checkpoint)
            try:
                while not settings.is_stopping and not query.awaitTermination(LOOK_S):
                    pass
            except SPARK_ERRORS as error:
                writer.line(settings.name, "info", "poll", error=str(error)[:900])
                time.sleep(AGAIN_AFTER_S)
            query.stop()


def _start(spark: Any, settings: Settings, stream: Stream, checkpoint: Path) -> Any:
    options = {
        "kafka.bootstrap.servers": settings.bootstrap,
        "subscribe": ",".join(settings.topics),
        "startingOffsets": "earliest",
        "failOnDataLoss": "false",  # records are deleted on purpose
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(OFFSETS_PER_TRIGGER),
    }
    return (
        spark.readStream.format("sparklog")
        .options(**options)
        .load()
        .writeStream.foreachBatch(lambda frame, _: stream.take(frame.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{TRIGGER_S} seconds")
        .start()
    )
