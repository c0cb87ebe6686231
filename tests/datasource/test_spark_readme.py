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
FIRST, PIPELINE = (block.text for block in blocks_of(README) if block.kind == "python")
SERVERS = re.compile(r'^servers = ".*"$', re.MULTILINE)
WAIT = re.compile(r"^query\.awaitTermination\(.*$", re.MULTILINE)


def run(text: str, spark: Any, cluster: InProcessCluster, **names: Any) -> dict[str, Any]:
    """Run a block upon this cluster."""
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


def test_the_first_dataframe_is_written_shown_as_text_and_counted_by_a_stream(
    spark: Any, cluster: InProcessCluster, capfd: Any
) -> None:
    done = run(FIRST, spark, cluster)
    assert rows_of(done["query"]) == 1_000
    assert {(row.key, row.value) for row in done["events"].collect()} == {
        (str(number), f"hello {number}") for number in range(1_000)
    }
    shown = capfd.readouterr().out
    assert re.search(r"\| *\d+\|hello \d+\|", shown)
    assert "[68" not in shown  # bytes, as Spark shows them


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
