"""A Spark driver of its own that does what it is told: one JSON order a line in, one answer a line out.

Run by ``bench.spark`` on the Python whose PySpark both data sources fit. An answer's line begins with ``@@``,
as Spark prints what it likes.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.spark_empty import Empty
from bench.spark_typed import TypedOrders

KEY_BYTES = 10
VALUE_BYTES = 100
SMALL_ROWS = 10_000
"""Frames of so few rows stay in memory beside a large one."""
WARM_BATCHES = 5
WARM_S = 5
WARM_TIMEOUT_S = 60
STREAM_TIMEOUT_S = 120
PACE_PER_S = 500
"""Rows of the empty stream whose latency is measured, as many as a client writes for the others."""


class Worker(TypedOrders):
    def __init__(self, jars: str) -> None:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.memory", "2g").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
        if jars:
            builder = builder.config("spark.jars", jars)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        self._spark.dataSource.register(Empty)
        self._rows: dict[int, DataFrame] = {}

    def hello(self) -> dict[str, Any]:
        return {"pyspark": self._spark.version}

    def hold(self, rows: int) -> dict[str, Any]:
        """Make what a write takes, and hold it in memory."""
        self._frame(rows)
        return {}

    def write(
        self, form: str, servers: str, topic: str, rows: int, options: dict[str, str]
    ) -> dict[str, Any]:
        frame = self._frame(rows)
        writer = frame.write.format(form).option("kafka.bootstrap.servers", servers).option("topic", topic)
        began = time.monotonic()
        writer.options(**options).mode("append").save()
        return {"seconds": time.monotonic() - began}

    def read(
        self, form: str, servers: str, topic: str, rows: int = 0, options: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """All columns that there are, to nowhere."""
        frame = self._reader(form, servers, topic, rows, options)
        began = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        return {"seconds": time.monotonic() - began}

    def count(
        self, form: str, servers: str, topic: str, rows: int = 0, options: dict[str, str] | None = None
    ) -> dict[str, Any]:
        began = time.monotonic()
        counted = self._reader(form, servers, topic, rows, options).count()
        return {"seconds": time.monotonic() - began, "rows": counted}

    def lengths(self, form: str, servers: str, topic: str, rows: int = 0) -> dict[str, Any]:
        """The sum of all values' lengths."""
        began = time.monotonic()
        (found,) = (
            self._reader(form, servers, topic, rows).selectExpr("sum(length(value)) as bytes").collect()
        )
        return {"seconds": time.monotonic() - began, "rows": found.bytes // VALUE_BYTES}

    def available_now(self, form: str, servers: str, topic: str, rows: int) -> dict[str, Any]:
        """A stream of all that is there, to nowhere, from its start to its end."""
        stream = self._spark.readStream.format(form)
        if form == "empty":
            stream = stream.option("rows", rows)
        else:
            stream = stream.option("kafka.bootstrap.servers", servers).option("subscribe", topic)
            stream = stream.option("startingOffsets", "earliest")
        with tempfile.TemporaryDirectory(prefix="bench-checkpoint-") as checkpoint:
            began = time.monotonic()
            writer = stream.load().writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            seconds = time.monotonic() - began
            taken = sum(json.loads(step.json)["numInputRows"] for step in query.recentProgress)
        return {"seconds": seconds, "rows": taken}

    def micro_batches(
        self, form: str, servers: str, topic: str, count: int, options: dict[str, str]
    ) -> dict[str, Any]:
        """Milliseconds of each of ``count`` micro-batches of one row, one after the other, once warm."""
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1)
        rows = source.option("numPartitions", 1).load().selectExpr("string(value) value")
        writer = rows.writeStream.format(form).option("kafka.bootstrap.servers", servers)
        writer = writer.option("topic", topic).options(**options)
        steps: dict[int, int] = {}
        with tempfile.TemporaryDirectory(prefix="bench-checkpoint-") as checkpoint:
            query = writer.option("checkpointLocation", checkpoint).start()
            began = time.monotonic()
            while len(steps) < WARM_BATCHES + count and time.monotonic() - began < STREAM_TIMEOUT_S:
                if query.awaitTermination(0.2):
                    break
                reports = [json.loads(step.json) for step in query.recentProgress]
                steps |= {step["batchId"]: step["durationMs"]["triggerExecution"] for step in reports}
            query.stop()
        if len(steps) < WARM_BATCHES + count:
            raise RuntimeError(f"{len(steps)} batches in {STREAM_TIMEOUT_S} s: {query.exception()}")
        return {"trigger_ms": list(steps.values())[WARM_BATCHES : WARM_BATCHES + count]}

    def latency(self, form: str, servers: str, topic: str, seconds: float) -> dict[str, Any]:
        """From a record's timestamp to the driver holding it in foreachBatch, in milliseconds.

        Counted from some seconds after the first batches on: those start workers, and catch up.
        """
        seen: list[list[float]] = []

        def take(batch: DataFrame, _: int) -> None:
            rows = batch.selectExpr("unix_micros(timestamp) as us").collect()
            now_ms = time.time() * 1000
            seen.append([now_ms - row.us / 1000 for row in rows])

        source = self._spark.readStream.format(form)
        if form == "empty":
            source = source.option("rowsPerSecond", PACE_PER_S)
        else:
            source = source.option("kafka.bootstrap.servers", servers).option("subscribe", topic)
            source = source.option("startingOffsets", "latest")
        stream = source.load()
        with tempfile.TemporaryDirectory(prefix="bench-checkpoint-") as checkpoint:
            query = stream.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint).start()
            began = time.monotonic()
            while sum(map(bool, seen)) < WARM_BATCHES and time.monotonic() - began < WARM_TIMEOUT_S:
                query.awaitTermination(0.2)
            query.awaitTermination(WARM_S)
            warm = len(seen)
            query.awaitTermination(seconds)
            progress = [json.loads(step.json) for step in query.recentProgress]
            query.stop()
        steps = [step["durationMs"] for step in progress if step["numInputRows"]][-20:]
        if not steps:
            raise RuntimeError(f"no batch in {WARM_TIMEOUT_S + WARM_S + seconds:.0f} s: {progress[-1:]}")
        parts = {name: sorted(step.get(name, 0) for step in steps)[len(steps) // 2] for name in steps[-1]}
        delays = [ms for batch in seen[warm:] for ms in batch]
        return {"latencies_ms": delays, "trigger_ms": parts, "batches": len(seen)}

    def _reader(
        self, form: str, servers: str, topic: str, rows: int, options: dict[str, str] | None = None
    ) -> DataFrame:
        """``rows`` is what the empty source has."""
        reader = self._spark.read.format(form)
        if form == "empty":
            return reader.option("rows", rows).load()
        reader = reader.option("kafka.bootstrap.servers", servers).option("subscribe", topic)
        return reader.options(**(options or {})).load()

    def _frame(self, rows: int) -> DataFrame:
        """Keys of 10 B and values of 100 B, half of what lz4 could not shorten; held ready in memory."""
        if rows not in self._rows:
            self._unpersist_large()
            frame = self._spark.range(0, rows, 1, 2).selectExpr(
                f"cast(lpad(cast(id as string), {KEY_BYTES}, '0') as binary) as key",
                f"cast(rpad(sha2(cast(id as string), 256), {VALUE_BYTES}, 'x') as binary) as value",
            )
            self._rows[rows] = frame.cache()
            frame.count()
        return self._rows[rows]

    def _unpersist_large(self) -> None:
        for rows in [rows for rows in self._rows if rows > SMALL_ROWS]:
            self._rows.pop(rows).unpersist()


def main() -> None:
    worker = Worker(sys.argv[1] if len(sys.argv) > 1 else "")
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = getattr(worker, order.pop("do"))(**order)
        except Exception as error:  # noqa: BLE001 (it is told to whoever gave the order)
            answer = {"error": f"{type(error).__name__}: {str(error)[:2000]}"}
        print("@@" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
