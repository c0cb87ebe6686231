"""A Spark application of its own, whose session tries tasks again and whose processes are killed.

Arguments: a master, then a file with a list of steps, each the arguments of ``write``. A step in which the
driver dies is the last one that this process takes.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))

from killing import AT, DRIVER, FORMAT, NOTES, register_killed

import pyspark_sparklog

TASKS = 2


def session(master: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    pyspark_sparklog.register(spark)
    register_killed(spark)
    return spark


def write(
    spark: Any,
    *,
    rows: int,
    at: str,
    notes: str,
    options: dict[str, str],
    source: str = "",
    checkpoint: str = "",
    batch_rows: int = 0,
) -> None:
    """Write the numbers below ``rows``; with a checkpoint as a stream, which copies the topic ``source``."""
    servers = options["kafka.bootstrap.servers"]
    mine = f"{os.getpid()},{spark.sparkContext._gateway.proc.pid}"
    given = {**options, AT: at, NOTES: notes, DRIVER: mine}
    if not checkpoint:
        frame = spark.range(0, rows, 1, TASKS).selectExpr("string(id) value")
        frame.write.format(FORMAT).options(**given).mode("append").save()
        return
    reader = spark.readStream.format("sparklog").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", source).option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", str(batch_rows)).load().selectExpr("value")
    writer = frame.writeStream.format(FORMAT).options(**given).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def main() -> None:
    master, steps = sys.argv[1:]
    spark = session(master)
    for step in json.loads(Path(steps).read_text()):
        write(spark, **step)
    spark.stop()


if __name__ == "__main__":
    main()
