"""A job of its own whose session tries tasks again: each task fails once, after its rows have left.

Arguments: bootstrap servers, topic, checkpoint directory; the last one makes it a stream.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

ROWS = 20_000


def fail_at_the_end(batches: Iterator[Any]) -> Iterator[Any]:
    """All rows; the first attempt at each task fails behind the last one."""
    yield from batches
    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() == 0:
        raise ValueError("the first attempt was told to fail")


def main() -> None:
    servers, topic, *checkpoint = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,3]").config("spark.driver.host", "127.0.0.1")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    options = {"kafka.bootstrap.servers": servers, "topic": topic}
    if checkpoint:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
        frame = source.option("numPartitions", 2).load()
        rows = frame.selectExpr("string(value) value").mapInArrow(fail_at_the_end, "value string")
        writer = rows.writeStream.format("sparklog").options(**options)
        query = writer.option("checkpointLocation", checkpoint[0]).trigger(once=True).start()
        query.awaitTermination()
    else:
        frame = spark.range(0, ROWS, 1, 2).selectExpr("string(id) value")
        rows = frame.mapInArrow(fail_at_the_end, "value string")
        rows.write.format("sparklog").options(**options).mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main()
