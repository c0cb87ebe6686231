"""The README's jobs, as they stand there: what they write is there, and what they stream is shown."""

import re
from typing import Any

import pytest
from pyspark.sql.streaming import StreamingQuery

from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S
from tests.pages import DOCS, blocks_of

pytestmark = [pytest.mark.integration, pytest.mark.every_spark]

README = DOCS.parent / "README.md"
FIRST, PIPELINE, FROM_SPARK = (block.text for block in blocks_of(README) if block.kind == "python")
SERVERS = re.compile(r'^servers = ".*"$', re.MULTILINE)
WAIT = re.compile(r"^query\.awaitTermination\(.*$", re.MULTILINE)


def run(text: str, spark: Any, cluster: InProcessCluster, **names: Any) -> dict[str, Any]:
    """Run a block; its topics' data of other tests does not disturb it."""
    servers = cluster.bootstrap_servers
    given = {"spark": spark, "servers": servers, "brokers": {"bootstrap.servers": servers}, **names}
    own = WAIT.sub("", SERVERS.sub("", text))
    exec(compile(own, str(README), "exec"), given)
    return given


def rows_of(query: StreamingQuery) -> int:
    """The rows that a query has read of what is there by now."""
    try:
        query.processAllAvailable()
        return sum(report.numInputRows for report in query.recentProgress)
    finally:
        query.stop()


def test_the_first_block_streams_what_it_wrote(spark: Any, cluster: InProcessCluster) -> None:
    frame = spark.sql("select id, timestamp_micros(1700000000123456 + id) at from range(50)")
    done = run(FIRST, spark, cluster, df=frame)
    assert rows_of(done["query"]) >= 50
    back = spark.read.format("sparklog").options(**{"bootstrap.servers": cluster.bootstrap_servers})
    rows = back.options(subscribe="events", valueFormat="string").load()
    times = rows.selectExpr("from_json(value, 'id bigint, at timestamp').at as at").where("at is not null")
    assert {row.at for row in times.collect()} == {row.at for row in frame.collect()}


def test_the_block_from_spark_shows_keys_and_values_as_text(
    spark: Any, cluster: InProcessCluster, capfd: Any
) -> None:
    done = run(FROM_SPARK, spark, cluster)
    assert rows_of(done["query"]) >= 1_000
    shown = capfd.readouterr().out
    assert re.search(r"\| *\d+\|\{", shown)
    assert "[7B" not in shown  # bytes, as Spark shows them


def test_the_pipeline_takes_orders_that_were_there_before_it(
    spark: Any, cluster: InProcessCluster, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("orders")
    cluster.produce("orders", ["a", "b"])
    run(PIPELINE.replace("checkpoints/", f"{tmp_path}/"), spark, cluster)
    (query,) = spark.streams.active
    assert rows_of(query) == 2
    assert sorted(record.value for record in cluster.consume("shouted", at_least=2)) == [b"A", b"B"]
    assert query.awaitTermination(WAIT_S)
