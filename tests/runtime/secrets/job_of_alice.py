"""A job of Spark that logs in, and shows all that Spark shows of it: run with the file of its terms.

``options``: lists of the connector's; ``refused``: those with which each job fails; ``folder``: where what is
shown goes to. What the driver prints is its log.
"""

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

PAGES = (
    "/jobs/", "/stages/", "/storage/", "/environment/", "/executors/", "/SQL/", "/SQL/execution/?id=0",
    "/jobs/job/?id=0", "/stages/stage/?id=0&attempt=0",
)  # fmt: skip
API = ("", "/environment", "/sql?details=true&planDescription=true", "/jobs", "/stages", "/allexecutors")


def session(folder: Path) -> SparkSession:
    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{folder}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "INFO",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def run(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Write and read a hundred rows; the rows that were read."""
    rows = spark.range(100).selectExpr("string(id) value")
    rows.write.format("sparklog").options(**options, topic="of-alice").mode("append").save()
    found = spark.read.format("sparklog").options(**options, subscribe="of-alice").load()
    assert found.count() >= 100
    return found


def stream(spark: SparkSession, options: dict[str, str], folder: Path) -> list[str]:
    source = spark.readStream.format("sparklog").options(
        **options, subscribe="of-alice", startingOffsets="earliest"
    )
    sink = source.load().writeStream.format("sparklog").options(**options, topic="streamed-of-alice")
    query = sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return [repr(query.lastProgress), query.name or "", str(query.status)]


def plan_of(rows: DataFrame) -> str:
    execution: Any = rows._jdf.queryExecution()
    return str(execution.toString())


def error_of(spark: SparkSession, options: dict[str, str]) -> str:
    try:
        run(spark, options)
    except PySparkException as error:
        return f"{error!r}\n{error}"
    raise AssertionError("it was not refused")


def pages_of(spark: SparkSession) -> dict[str, bytes]:
    url = spark.sparkContext.uiWebUrl
    api = f"/api/v1/applications/{spark.sparkContext.applicationId}"
    found = {}
    for path in (*PAGES, *(api + one for one in API)):
        with urllib.request.urlopen(f"{url}{path}", timeout=60) as answer:
            found[path] = answer.read()
    return found


def main() -> None:
    terms = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(terms["folder"])
    spark = session(folder)
    shown = [plan_of(run(spark, options)) for options in terms["options"]]
    shown += stream(spark, terms["options"][-1], folder)
    shown += [error_of(spark, options) for options in terms["refused"]]
    for path, content in pages_of(spark).items():
        (folder / f"page{path.replace('/', '_')}").write_bytes(content)
    spark.stop()
    (folder / "shown.txt").write_text("\n".join(shown))


if __name__ == "__main__":
    main()
