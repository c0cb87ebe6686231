"""Which version of a topic's columns a write has: a batch the newest, a streaming query that of its plan."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.types import DoubleType, IntegerType, LongType, StructField, StructType

import pyspark_sparklog
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.errors import ConfigError, KafkaError, SchemaError
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.testing import InProcessCluster
from sparklog_datasource.writing import planned_version, typed_target
from sparklog_datasource.writing.typed_target import TypedTarget, find_target
from sparklog_datasource.writing.write_options import WriteOptions

pytestmark = pytest.mark.integration

ID, MAG = StructField("id", IntegerType()), StructField("mag", DoubleType())
FRAME = StructType([ID, MAG])


@pytest.fixture(autouse=True)
def _new_process() -> Iterator[None]:
    yield
    forget()


def forget() -> None:
    """What another process of the query knows."""
    planned_version._kept.clear()


def target(
    cluster: InProcessCluster, topic: str, schema: Any = FRAME, run: str | None = None, **options: str
) -> TypedTarget:
    given = {"bootstrap.servers": cluster.bootstrap_servers, "topic": topic, **options}
    found, _ = find_target(WriteOptions.of(given), topic, schema, run)
    assert found is not None
    return found


def alter(cluster: InProcessCluster, topic: str, *changes: str) -> int:
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    return pyspark_sparklog.alter_topic(topic, *changes, options=servers)


def ids(of: TypedTarget) -> list[int]:
    return [field.id for field in of.written.given]


def test_a_batch_has_the_newest_version_and_fits_by_its_names(cluster: InProcessCluster) -> None:
    cluster.create_topic("target-batch", schema="id int, mag double")
    assert (target(cluster, "target-batch").version, ids(target(cluster, "target-batch"))) == (1, [1, 2])
    alter(cluster, "target-batch", "rename-column mag=size", "add-column mag double")
    assert (target(cluster, "target-batch").version, ids(target(cluster, "target-batch"))) == (2, [1, 3])
    alter(cluster, "target-batch", "drop-column mag")
    with pytest.raises(
        SchemaError, match=r"cannot write to topic .target-batch.: column mag \(renamed to size\) is"
    ):
        target(cluster, "target-batch")


def test_the_refusal_of_a_topic_that_is_not_there_says_whether_it_names_all_columns(
    cluster: InProcessCluster,
) -> None:
    for count, shown in [(5, r"\(a, b, c, d, e\)"), (6, r"\(a, b, c, d, e, …\)")]:
        frame = StructType([StructField(name, IntegerType()) for name in "abcdef"[:count]])
        with pytest.raises(ConfigError, match=f"makes a topic with the frame's columns {shown}"):
            target(cluster, "target-nowhere", frame)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_streaming_query_keeps_the_version_of_its_plan_in_all_its_tasks(
    cluster: InProcessCluster, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"target-stream-{delivery}"
    cluster.create_topic(topic, schema="id int, mag double")
    monkeypatch.setattr(planned_version, "serves_cuts", lambda _: False)  # no write was atomic so far
    assert target(cluster, topic, run="a", delivery=delivery).version == 1
    alter(cluster, topic, "rename-column mag=size", "add-column mag double")
    if delivery == "exactly-once":
        forget()
    again = target(cluster, topic, run="a", delivery=delivery)
    assert (again.version, ids(again)) == (1, [1, 2])
    other = target(cluster, topic, run="b", delivery=delivery)
    assert (other.version, ids(other)) == (2, [1, 3])


def test_merging_adds_what_is_new_and_widens_what_is_wider(cluster: InProcessCluster) -> None:
    cluster.create_topic("target-merged", schema="id int")
    frame = StructType([StructField("id", LongType()), MAG])
    for _ in range(2):
        assert target(cluster, "target-merged", frame, mergeSchema="true").version == 2
    document = describe_schemas(cluster.client, ["target-merged"])["target-merged"]
    assert ddl_text(document.at(2)) == "id bigint, mag double"


def test_a_merge_that_another_writer_overtook_looks_again(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "target-raced"
    cluster.create_topic(topic, schema="id int")
    changes = typed_target.merge_changes

    def late(*columns: Any) -> Any:
        monkeypatch.setattr(typed_target, "merge_changes", changes)
        found = changes(*columns)
        alter(cluster, topic, "add-column first int")
        return found

    monkeypatch.setattr(typed_target, "merge_changes", late)
    assert target(cluster, topic, mergeSchema="true").version == 3
    document = describe_schemas(cluster.client, [topic])[topic]
    assert ddl_text(document.at(3)) == "id int, first int, mag double"


def test_what_cannot_be_merged_is_refused(cluster: InProcessCluster) -> None:
    cluster.create_topic("target-key", schema="id int, mag float", key="mag")
    with pytest.raises(SchemaError, match="column mag is float, and cannot be double, because it is the key"):
        target(cluster, "target-key", mergeSchema="true")
    with pytest.raises(ConfigError, match="option mergeSchema=true needs option topic"):
        WriteOptions.of({"bootstrap.servers": cluster.bootstrap_servers, "mergeSchema": "true"})


def test_alter_topic_says_what_is_wrong(cluster: InProcessCluster) -> None:
    cluster.create_topic("target-altered", schema="id int")
    cluster.create_topic("target-plain")
    with pytest.raises(SchemaError, match="the topic has no column x"):
        alter(cluster, "target-altered", "drop-column x")
    with pytest.raises(SchemaError, match="there is no change 'drop'; there are add-column"):
        alter(cluster, "target-altered", "drop id")
    with pytest.raises(SchemaError, match="topic 'target-plain' has no columns"):
        alter(cluster, "target-plain", "add-column x int")
    with pytest.raises(KafkaError, match="topic 'target-nowhere'"):
        alter(cluster, "target-nowhere", "add-column x int")
    no_options: Any = "127.0.0.1:9092"
    with pytest.raises(ConfigError, match="are no options: give a dictionary"):
        pyspark_sparklog.alter_topic("t", "drop-column x", options=no_options)
