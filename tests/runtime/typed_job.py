"""A Spark application of its own, which writes typed rows and reads two of their columns.

Arguments: a master, the brokers, a topic that is not there yet.
"""

import os
import sys

from pyspark.sql import SparkSession


def main(master: str, servers: str, topic: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    paths = os.environ.get("PYTHONPATH", "")
    spark = builder.config("spark.executorEnv.PYTHONPATH", paths).config("spark.cores.max", "2").getOrCreate()
    ours = {"bootstrap.servers": servers}
    rows = spark.range(0, 1_000, 1, 4).selectExpr("id", "double(id) / 2 mag", "repeat('x', 100) text")
    rows.write.format("sparklog").options(**ours, topic=topic, createTopic="typed").mode("append").save()
    found = spark.read.format("sparklog").options(**ours, subscribe=topic, columns="mag, id").load()
    print(found.dtypes, found.selectExpr("count(distinct id)", "sum(mag)").collect()[0])
    spark.stop()


main(*sys.argv[1:])
