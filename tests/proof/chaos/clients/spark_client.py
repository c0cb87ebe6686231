"""Spark as a client: what ``format("sparklog")`` writes and reads, as histories have it.

Each write is a job of one task, at least once, whose producer is a session of its own; of a job that fails
nobody knows which rows are there. (Atomic writes have a client of their own.) What is stored of it are Arrow
batches, which other clients are given as records.

The reader is a stream with a checkpoint, which outlives it. When it begins anew, the micro-batch that was
given last may be given again, from where it began; nothing else may go back.
"""

import contextlib
import json
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

from chaos.clients.client_parts import (
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
from histories import Writer

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
SMALL_BATCHES, SMALL_BATCH_BYTES = 0.3, 20_000
"""The share of writes in many batches for each partition, of which some are in flight together."""
TRIGGER_S = 1
OFFSETS_PER_TRIGGER = 5_000
LOOK_S = 0.3
AGAIN_AFTER_S = 0.5
ERROR_CHARACTERS_MAX = 900
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
        **settings.access.spark(),
        "delivery": "at-least-once",
        "kafka.acks": str(settings.acks),
        "kafka.compression.type": rng.choice(CODECS),
    }
    if rng.random() < SMALL_BATCHES:
        options["kafka.max.request.size"] = str(SMALL_BATCH_BYTES)
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
    """Writes down micro-batches of a stream that begins anew now and then.

    ``file`` has which of them was the last, and where it began in each partition, also for later lives; it is
    written before anything of that batch is told.
    """

    def __init__(self, positions: Positions, file: Path) -> None:
        self._positions, self._file = positions, file
        last = json.loads(file.read_text()) if file.exists() else [None, []]
        self._batch: int | None = last[0]
        self._began: dict[Place, int] = {(topic, partition): at for topic, partition, at in last[1]}
        self._may_be_again = True

    def begin_anew(self) -> None:
        self._may_be_again = True

    def take(self, batch: int, rows: Iterable[Any]) -> None:
        """All rows of the micro-batch of that number, in the order in which they came."""
        got: dict[Place, list[Seen]] = {}
        for row in rows:
            value = value_of(_bytes(row.value), [(one.key, _bytes(one.value)) for one in row.headers or ()])
            got.setdefault((row.topic, row.partition), []).append((row.offset, value, None))
        if self._may_be_again and batch == self._batch:
            for place in got:
                if self._positions.at[place] != self._began[place]:
                    self._positions.seek(*place, self._began[place])
        else:
            self._begin(batch)
        self._positions.take(got)
        self._may_be_again = False

    def _begin(self, batch: int) -> None:
        self._batch, self._began = batch, dict(self._positions.at)
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps([batch, [[*place, at] for place, at in self._began.items()]]))
        written.replace(self._file)


def _bytes(value: Any) -> Any:
    return None if value is None else bytes(value)


def tail(settings: Settings, writer: Writer) -> None:
    """Reads everything as it comes, on from the checkpoint of its earlier lives."""
    positions = Positions(settings, writer)
    known = where_earlier_lives_stopped(Path(settings.folder), settings.name)
    for place in settings.partitions():
        positions.seek(*place, known.get(place, 0))
    name, _, _ = settings.name.rpartition("/")
    folder = Path(settings.folder).with_name("spark-clients")
    folder.mkdir(exist_ok=True)
    stream = Stream(positions, folder / f"{name}-last.json")
    checkpoint = folder / f"{name}-checkpoint"
    with session_of(settings) as spark:
        while not settings.is_stopping:
            stream.begin_anew()
            query = _start(spark, settings, stream, checkpoint)
            try:
                while not settings.is_stopping and not query.awaitTermination(LOOK_S):
                    pass
            except SPARK_ERRORS as error:
                writer.line(settings.name, "info", "poll", error=str(error)[:ERROR_CHARACTERS_MAX])
                time.sleep(AGAIN_AFTER_S)
            query.stop()


def _rows_of(frame: Any) -> Any:
    """The error is short: after a long one a stream thread of Spark overflowed its stack in a regular
    expression, and its query never ended.
    """
    try:
        return frame.collect()
    except SPARK_ERRORS as error:
        raise RuntimeError(str(error)[:ERROR_CHARACTERS_MAX]) from None


def _start(spark: Any, settings: Settings, stream: Stream, checkpoint: Path) -> Any:
    options = {
        **settings.access.spark(),
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
        .writeStream.foreachBatch(lambda frame, batch: stream.take(batch, _rows_of(frame)))
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{TRIGGER_S} seconds")
        .start()
    )
