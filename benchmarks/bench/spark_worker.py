"""A Spark driver of its own that does what it is told: one JSON order a line in, one answer a line out.

Run by ``bench.spark`` on the Python whose PySpark both data sources fit. An answer's line begins with ``@@``,
as Spark prints what it likes.
"""

import json
import sys
import tempfile
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

KEY_BYTES = 10
VALUE_BYTES = 100
WARM_BATCHES = 5
WARM_S = 5
WARM_TIMEOUT_S = 60


class Worker:
    def __init__(self, jars: str) -> None:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.memory", "2g").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
        if jars:
            builder = builder.config("spark.jars", jars)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        self._rows: dict[int, DataFrame] = {}

    def hello(self) -> dict[str, Any]:
        return {"pyspark": self._spark.version}

    def write(
        self, form: str, servers: str, topic: str, rows: int, options: dict[str, str]
    ) -> dict[str, Any]:
        frame = self._frame(rows)
        writer = frame.write.format(form).option("kafka.bootstrap.servers", servers).option("topic", topic)
        began = time.monotonic()
        writer.options(**options).mode("append").save()
        return {"seconds": time.monotonic() - began}

    def read(self, form: str, servers: str, topic: str) -> dict[str, Any]:
        """All columns, to nowhere."""
        frame = self._reader(form, servers, topic)
        began = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        return {"seconds": time.monotonic() - began}

    def count(self, form: str, servers: str, topic: str) -> dict[str, Any]:
        began = time.monotonic()
        rows = self._reader(form, servers, topic).count()
        return {"seconds": time.monotonic() - began, "rows": rows}

    def latency(self, form: str, servers: str, topic: str, seconds: float) -> dict[str, Any]:
        """From a record's timestamp to the driver holding it in foreachBatch, in milliseconds.

        Counted from some seconds after the first batches on: those start workers, and catch up.
        """
        seen: list[list[float]] = []

        def take(batch: DataFrame, _: int) -> None:
            rows = batch.selectExpr("unix_micros(timestamp) as us").collect()
            now_ms = time.time() * 1000
            seen.append([now_ms - row.us / 1000 for row in rows])

        stream = self._spark.readStream.format(form).option("kafka.bootstrap.servers", servers)
        stream = stream.option("subscribe", topic).option("startingOffsets", "latest").load()
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
        return {"latencies_ms": [ms for batch in seen[warm:] for ms in batch], "trigger_ms": parts}

    def _reader(self, form: str, servers: str, topic: str) -> DataFrame:
        reader = self._spark.read.format(form).option("kafka.bootstrap.servers", servers)
        return reader.option("subscribe", topic).load()

    def _frame(self, rows: int) -> DataFrame:
        """Keys of 10 B and values of 100 B, half of what lz4 could not shorten; held ready in memory."""
        if rows not in self._rows:
            self._unpersist()
            frame = self._spark.range(0, rows, 1, 2).selectExpr(
                f"cast(lpad(cast(id as string), {KEY_BYTES}, '0') as binary) as key",
                f"cast(rpad(sha2(cast(id as string), 256), {VALUE_BYTES}, 'x') as binary) as value",
            )
            self._rows[rows] = frame.cache()
            frame.count()
        return self._rows[rows]

    def _unpersist(self) -> None:
        for frame in self._rows.values():
            frame.unpersist()
        self._rows.clear()


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
