"""The README's jobs, as they stand there: what they write is there, and what they stream is shown."""

import json
import re
from typing import Any

import pytest
from pyspark.sql.streaming import StreamingQuery

from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S
from tests.pages import DOCS, blocks_of

pytestmark = pytest.mark.integration

README = DOCS.parent / "README.md"
FIRST, PIPELINE = (block.text for block in blocks_of(README) if block.kind == "python")
SERVERS = re.compile(r'^servers = ".*"$', re.MULTILINE)
TASKS = "spark.sql.shuffle.partitions"


def run(text: str, spark: Any, cluster: InProcessCluster, **names: Any) -> dict[str, Any]:
    """Run a block upon this cluster."""
    servers = cluster.bootstrap_servers
    given = {"spark": spark, "servers": servers, "brokers": {"bootstrap.servers": servers}, **names}
    own = SERVERS.sub("", text)
    exec(compile(own, str(README), "exec"), given)
    return given


def rows_in(query: StreamingQuery) -> int:
    return sum(report.numInputRows for report in query.recentProgress)


def rows_of(query: StreamingQuery) -> int:
    """The rows that a query has read of what is there by now."""
    try:
        query.processAllAvailable()
        return rows_in(query)
    finally:
        query.stop()


def test_the_first_dataframe_is_written_as_columns_shown_and_counted_by_a_stream(
    spark: Any, cluster: InProcessCluster, capfd: Any
) -> None:
    spark.conf.set(TASKS, 200)
    done = run(FIRST, spark, cluster)
    assert int(spark.conf.get(TASKS)) <= 4, "a new user would wait for many tasks without rows"
    assert not done["query"].isActive
    assert rows_in(done["query"]) == 1_000
    strong = {number: number % 70 / 10 for number in range(1_000) if number % 70 / 10 >= 6.5}
    assert {row.id: row.mag for row in done["strong"].collect()} == strong
    assert re.search(r"\| *\d+\|6\.[5-9]\|2", capfd.readouterr().out)
    objects = [json.loads(record.value or b"") for record in cluster.consume("quakes", at_least=1_000)]
    assert {(row["id"], row["mag"]) for row in objects} == {(n, n % 70 / 10) for n in range(1_000)}


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
