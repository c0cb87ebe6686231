"""Every type goes through Spark, a Kafka client, the store and its files, and comes back equal."""

import itertools
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.datasource.test_spark_types import AS_TEXT, VALUES
from tests.tiers import copying_at_once, in_the_store_only
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.proof]

TYPES = [kind for kind in VALUES if kind != "variant"]
TEXTS = [re.sub(r"\bc\b", f"c{nth}", AS_TEXT.get(kind, "string(c)")) for nth, kind in enumerate(TYPES)]
PLACE = TopicPartition("t", 0)
TIERED = in_the_store_only(2_000)


def test_every_type_is_the_same_on_disk_in_the_store_and_in_its_files(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    settings = copying_at_once(f"file://{tmp_path / 'store'}")
    with InProcessCluster(tmp_path / "cluster", brokers=1, settings=settings) as cluster:
        options = {"kafka.bootstrap.servers": cluster.bootstrap_servers}

        def read(**more: str) -> list[str]:
            frame = spark.read.format("sparklog").options(**options, subscribe="t", **more).load()
            return sorted(map(str, frame.selectExpr(*TEXTS).collect()))

        for _ in range(2):
            rows_of_every_type(spark).write.format("sparklog").options(
                **options, topic="t", createTopic="typed"
            ).mode("append").save()
        of_disk, as_json, table = read(), cluster.consume("t"), cluster.rows("t")
        ClusterChanges(cluster.client).alter_topic_configs("t", TIERED)
        log = cluster.brokers[1].body.replicas.get(PLACE).log
        until(lambda: log.config.remote_storage)
        cluster.produce("t", pa.table({"c0": pa.nulls(1)}))
        until(lambda: log.local_start_offset >= log.segments[-1].base_offset > 0)
        moved = log.local_start_offset
        assert read(endingOffsets=f'{{"t":{{"0":{moved}}}}}') == of_disk
        assert [(one.key, one.value) for one in cluster.consume("t")[: len(as_json)]] == [
            (one.key, one.value) for one in as_json
        ]
        files = [pa.ipc.open_file(pa.memory_map(str(path))) for path in tmp_path.rglob("*.arrow")]
        stored = pa.concat_tables([file.read_all() for file in files]).sort_by("_offset")
        assert [text_of(stored, name) for name in table.schema.names] == [
            text_of(table, name) for name in table.schema.names
        ]


def text_of(table: pa.Table, column: str) -> str:
    """All values, also those that Python has not; NaN is NaN."""
    values = table.column(column).combine_chunks()
    text: str = values.to_string(window=len(values), container_window=1_000)
    return text


def rows_of_every_type(spark: Any) -> Any:
    """A frame with each of ``VALUES`` in a column of its type."""
    columns = [f"cast({{}} as {kind}) c{nth}" for nth, kind in enumerate(TYPES)]
    rows = [
        "select "
        + ", ".join(column.format(value or "null") for column, value in zip(columns, values, strict=True))
        for values in itertools.zip_longest(*([*VALUES[kind], ""] for kind in TYPES), fillvalue="")
    ]
    return spark.sql(" union all ".join(rows)).coalesce(1)
