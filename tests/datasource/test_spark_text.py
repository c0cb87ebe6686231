"""Keys and values as text, through a real Spark: batches, streams, views, and what is no UTF-8."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S

pytestmark = [pytest.mark.integration, pytest.mark.every_spark, pytest.mark.proof]

Frames = Callable[..., Any]
Append = Callable[..., None]

TEXT = {"keyFormat": "string", "valueFormat": "string"}


def rows(frame: Any) -> list[tuple[str | None, str | None]]:
    ordered = frame.orderBy("partition", "offset").select("key", "value").collect()
    return [(row.key, row.value) for row in ordered]


def test_batches_of_spark_and_records_of_clients_are_read_as_text(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    """Spark writes the thousand as Arrow, the client its two as Kafka's records."""
    frame = spark.range(1_000).selectExpr("concat('k', id) key", "concat('ä', id) value").coalesce(1)
    append(frame, "text-both")
    cluster.produce("text-both", ["größe", b""], partition=0)
    back = read("text-both", **TEXT, includeHeaders="true")
    assert dict(back.dtypes) | {"key": "string", "value": "string"} == dict(back.dtypes)
    assert rows(back) == [*((f"k{i}", f"ä{i}") for i in range(1_000)), (None, "größe"), (None, "")]
    assert dict(read("text-both", keyFormat="string").dtypes)["value"] == "binary"


def test_a_stream_is_read_as_text_and_fails_where_a_value_is_none(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    cluster.create_topic("text-stream")
    cluster.produce("text-stream", ["a", "b"], partition=0)
    seen: list[str | None] = []

    def run(**options: str) -> None:
        frame = read_stream("text-stream", startingOffsets="earliest", **TEXT, **options)
        writer = frame.writeStream.foreachBatch(lambda batch, _: seen.extend(v for _, v in rows(batch)))
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT_S)

    run()
    assert seen == ["a", "b"]
    cluster.produce("text-stream", [b"\x00\x01\xff", "c"], partition=0)
    with pytest.raises(PySparkException, match=r"the value at offset 2 of text-stream-0 is no UTF-8 text"):
        run()
    run(**{"valueFormat.errors": "null"})
    assert seen == ["a", "b", None, "c"]


def test_a_batch_read_fails_or_has_null_where_a_key_is_no_text(
    cluster: InProcessCluster, read: Frames
) -> None:
    cluster.create_topic("text-keys")
    cluster.produce("text-keys", [(b"\xfe\xff", "a")], partition=0)
    with pytest.raises(PySparkException, match=r"the key at offset 0 of text-keys-0 .*keyFormat.errors=null"):
        read("text-keys", **TEXT).collect()
    assert rows(read("text-keys", **TEXT, **{"keyFormat.errors": "null"})) == [(None, "a")]


def test_a_view_of_text_is_read_and_inserted_into_without_casts(
    cluster: InProcessCluster, spark: Any
) -> None:
    cluster.create_topic("text-view")
    spark.sql(
        f"""create or replace temporary view as_text using sparklog options (
            bootstrap.servers '{cluster.bootstrap_servers}', subscribe 'text-view', topic 'text-view',
            keyFormat 'string', valueFormat 'string')"""
    )
    spark.sql("insert into as_text (key, value) values ('k', 'v'), ('l', null)")
    found = spark.sql("select key, value from as_text where value like 'v%' or value is null").collect()
    assert sorted(tuple(row) for row in found) == [("k", "v"), ("l", None)]
    spark.sql("drop view as_text")
