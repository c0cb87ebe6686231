"""What Spark makes of the messages: each way on which one reaches its user, once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

Case = Callable[..., str]

WAIT_S = 60


@pytest.fixture
def ended_with() -> Callable[[Callable[[], Any]], PySparkException]:
    """The error that Spark ends a call with; nothing of Spark's or Python's stands behind ours."""

    def call(what: Callable[[], Any]) -> PySparkException:
        with pytest.raises(PySparkException) as caught:
            what()
        assert "UnboundLocalError" not in str(caught.value)
        return caught.value

    return call


@pytest.fixture
def servers(brokers: InProcessCluster) -> dict[str, str]:
    return {"kafka.bootstrap.servers": brokers.bootstrap_servers}


def test_a_misspelt_option_is_refused_before_anything_runs(
    spark: Any, servers: dict[str, str], ended_with: Any, case: Case
) -> None:
    source = spark.read.format("sparklog").options(**servers, subscribe="t", failOnDataLos="false")
    case(
        "a misspelt option, in a notebook",
        "Spark read",
        ended_with(source.load),
        "[the list](spark.md#reading)",
    )


def test_rows_are_refused_in_a_task(
    spark: Any, servers: dict[str, str], brokers: InProcessCluster, ended_with: Any, case: Case
) -> None:
    """Of 100 rows one has no topic: none of them is written."""
    brokers.create_topic("all-or-none")
    frame = (
        spark.range(100).selectExpr("string(id) value", "if(id = 7, null, 'all-or-none') topic").coalesce(1)
    )
    writer = frame.write.format("sparklog").options(**servers).mode("append")
    case(
        "a null in the topic column of some rows",
        "Spark write",
        ended_with(writer.save),
        "nothing of this Spark batch was written",
    )
    assert brokers.consume("all-or-none") == []


def test_a_write_without_a_mode(spark: Any, servers: dict[str, str], ended_with: Any, case: Case) -> None:
    frame = spark.range(1).selectExpr("string(id) value")
    seen = ended_with(frame.write.format("sparklog").options(**servers, topic="t").save)
    case("no `mode`", "Spark write", str(seen).partition(" SQLSTATE")[0], 'add `.mode("append")`')


def test_a_topic_is_deleted_while_a_stream_reads_it(
    spark: Any,
    servers: dict[str, str],
    brokers: InProcessCluster,
    ended_with: Any,
    case: Case,
    tmp_path: Path,
) -> None:
    """That it goes on with failOnDataLoss=false is tested in tests/datasource/test_spark_streams.py."""
    for topic in ("doomed-1", "doomed-2"):
        brokers.create_topic(topic)
        brokers.produce(topic, [topic])
    source = spark.readStream.format("sparklog").options(
        **servers, subscribePattern="^doomed-", startingOffsets="earliest"
    )
    writer = source.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.start()
    try:
        query.processAllAvailable()
        brokers.admin.delete_topics(["doomed-2"])
        error = ended_with(lambda: query.awaitTermination(WAIT_S))
    finally:
        query.stop()
    case(
        "a topic is deleted while a stream reads it",
        "Spark stream",
        error,
        "the checkpoint stays as it is",
    )
