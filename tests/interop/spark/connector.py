"""A job with Spark's own Kafka connector, run by the PySpark that it was built for (test_spark_connector.py).

    connector.py CASE BOOTSTRAP_SERVERS TOPIC OTHER_TOPIC FOLDER

Prints one JSON object: what the case found. FOLDER is for checkpoints. SPARKLOG_CONNECTOR_OPTIONS may have
options of all reads and writes, as JSON.
"""

import json
import os
import sys
import time

os.environ["PYSPARK_PYTHON"] = sys.executable

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, concat, lit

BOUNDED_S = 60
OPTIONS = json.loads(os.environ.get("SPARKLOG_CONNECTOR_OPTIONS", "{}"))


def session():
    jars = ",".join(os.environ["SPARKLOG_CONNECTOR_JARS"].split(os.pathsep))
    settings = {
        "spark.master": "local[4]",
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Job:
    def __init__(self, spark, servers, topic, other, folder):
        self.spark, self.servers, self.topic, self.other, self.folder = spark, servers, topic, other, folder

    def _rows(self, frame):
        rows = frame.select(
            col("key").cast("string"), col("value").cast("string"), "partition", "offset"
        ).collect()
        return sorted([row.key, row.value] for row in rows)

    def _read(self, topic, **options):
        reader = (
            self.spark.read.format("kafka").options(**OPTIONS).option("kafka.bootstrap.servers", self.servers)
        )
        return reader.options(**options).option("subscribe", topic).load()

    def _stream(self, **options):
        reader = (
            self.spark.readStream.format("kafka")
            .options(**OPTIONS)
            .option("kafka.bootstrap.servers", self.servers)
        )
        return reader.options(startingOffsets="earliest", **options).option("subscribe", self.topic).load()

    def _write(self, frame):
        writer = (
            frame.write.format("kafka").options(**OPTIONS).option("kafka.bootstrap.servers", self.servers)
        )
        writer.option("topic", self.topic).save()

    def _numbers(self, count):
        number = col("id").cast("string")
        return self.spark.range(count).select(number.alias("key"), concat(lit("v"), number).alias("value"))

    def batch(self):
        """Writes, and reads: everything, a range of offsets, and what a time bounds."""
        self._write(self._numbers(100))
        ends = json.dumps({self.topic: {"0": 10, "1": 10}})
        later = str(int(time.time() * 1000) + 3_600_000)
        return {
            "rows": self._rows(self._read(self.topic)),
            "first": self._read(self.topic, startingOffsets="earliest", endingOffsets=ends).count(),
            "later": self._read(
                self.topic, startingTimestamp=later, startingOffsetsByTimestampStrategy="latest"
            ).count(),
        }

    def stream(self):
        """Copies a topic to another by a query that ends when it has all, twice, from one checkpoint."""
        counts = []
        for _ in range(2):
            self._write(self._numbers(50))
            writer = self._stream(maxOffsetsPerTrigger="30").writeStream.format("kafka").options(**OPTIONS)
            writer = writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.other)
            query = writer.option("checkpointLocation", self.folder).trigger(availableNow=True).start()
            query.awaitTermination(BOUNDED_S)
            counts.append(self._read(self.other).count())
        return {"counts": counts}

    def denied(self):
        """How a write and a read end that the user may not do, and after how many seconds."""
        found = {}
        for name, action in {
            "write": lambda: self._write(self._numbers(1)),
            "read": lambda: self._read(self.topic).count(),
        }.items():
            began = time.monotonic()
            try:
                action()
            except Py4JJavaError as error:
                found[name] = {"error": str(error), "seconds": time.monotonic() - began}
        return found

    def committed(self):
        """Reads in either isolation, and copies what is committed by a query."""
        options = {"kafka.isolation.level": "read_committed"}
        writer = self._stream(**options).writeStream.format("kafka").options(**OPTIONS)
        writer = writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.other)
        query = writer.option("checkpointLocation", self.folder).trigger(availableNow=True).start()
        query.awaitTermination(BOUNDED_S)
        return {
            "committed": self._rows(self._read(self.topic, **options)),
            "uncommitted": self._read(self.topic).count(),
            "streamed": self._read(self.other).count(),
        }

    def real_time(self):
        """The real-time mode: a query that hands on each record while its batch still runs."""
        self._write(self._numbers(10))
        self.spark.conf.set("spark.sql.streaming.realTimeMode.minBatchDuration", "1000")
        writer = (
            self._stream()
            .select("key", "value")
            .writeStream.format("kafka")
            .options(**OPTIONS)
            .outputMode("update")
        )
        writer = writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.other)
        query = writer.option("checkpointLocation", self.folder).trigger(realTime="20 seconds").start()
        deadline = time.monotonic() + BOUNDED_S
        try:
            while self._read(self.other).count() < 10 and time.monotonic() < deadline and query.isActive:
                time.sleep(0.5)
            batches = len(query.recentProgress)
            return {
                "rows": self._read(self.other).count(),
                "finished_batches": batches,
                "error": str(query.exception()),
            }
        finally:
            query.stop()


def main():
    case, *rest = sys.argv[1:]
    spark = session()
    try:
        print(json.dumps(getattr(Job(spark, *rest), case)()))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
