"""Rows of typed topics on real brokers: written as Arrow tables, replicated, searched, and found again."""

from pathlib import Path

import pyarrow as pa
import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.offsets import for_times
from sparklog.client.partitioning.partitioner import partition_for_key
from sparklog.client.producer import BatchProducer
from sparklog.client.reader import read_range
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.errors import KafkaError, SchemaError
from sparklog.model.ids import TopicPartition
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.typed_decoding import TypedReading
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

DDL = "id bigint NOT NULL, mag double, at timestamp"
ROWS = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "mag": [nth / 2 for nth in range(40)],
        "at": pa.array([nth * 1_000_000 for nth in range(40)], pa.timestamp("us", "UTC")),
    }
)


def test_a_table_comes_back_with_its_types_and_keys_decide_partitions(cluster: InProcessCluster) -> None:
    cluster.create_topic("typed-rows-back", schema=DDL, key="id", timestamp="at", partitions=3)
    cluster.produce("typed-rows-back", ROWS)
    found = cluster.rows("typed-rows-back", at_least=40)
    assert found.sort_by("id").equals(ROWS)
    reading = TypedReading(columns_of(cluster.client, "typed-rows-back"), ())
    for partition in range(3):
        topic_partition = TopicPartition("typed-rows-back", partition)
        expected = [n for n in range(40) if partition_for_key(str(n).encode(), 3) == partition]
        rows = read_range(cluster.client, topic_partition, 0, len(expected), typed=reading)
        stamps = [stamp.timestamp() for batch in rows for stamp in batch.column("_timestamp").to_pylist()]
        assert stamps == expected


def columns_of(client: ClusterClient, topic: str) -> TopicColumns:
    return TopicColumns(describe_schemas(client, [topic])[topic])


def test_columns_that_a_table_lacks_are_null_and_others_are_refused(cluster: InProcessCluster) -> None:
    cluster.create_topic("typed-rows-fit", schema=DDL)
    cluster.produce("typed-rows-fit", pa.table({"id": pa.array([7], pa.int8()), "mag": pa.nulls(1)}))
    assert cluster.rows("typed-rows-fit").to_pylist() == [{"id": 7, "mag": None, "at": None}]
    for table, words in [
        (pa.table({"id": [1], "Mag": [0.5]}), r"column Mag \(near mag\) is not among the topic's"),
        (pa.table({"id": ["1"]}), "column id is string and bigint in the topic"),
        (pa.table({"id": pa.array([None], pa.int64())}), "column id is NOT NULL in the topic, and null in 1"),
    ]:
        with pytest.raises(SchemaError, match=words):
            cluster.produce("typed-rows-fit", table)
    assert len(cluster.rows("typed-rows-fit")) == 1
    cluster.create_topic("typed-rows-none")
    with pytest.raises(SchemaError, match="topic 'typed-rows-none' has no columns"):
        cluster.produce("typed-rows-none", ROWS)


def test_who_does_not_know_columns_reads_json_and_writes_nothing(cluster: InProcessCluster) -> None:
    cluster.create_topic("typed-rows-json", schema=DDL, key="id", timestamp="at")
    cluster.produce("typed-rows-json", ROWS)
    found = cluster.consume("typed-rows-json")
    assert [(record.key, record.value) for record in found[:3]] == [
        (b"0", b'{"id":0,"mag":0,"at":"1970-01-01T00:00:00.000000Z"}'),
        (b"1", b'{"id":1,"mag":0.5,"at":"1970-01-01T00:00:01.000000Z"}'),
        (b"2", b'{"id":2,"mag":1,"at":"1970-01-01T00:00:02.000000Z"}'),
    ]
    assert [(record.offset, record.timestamp_ms) for record in found] == [(n, n * 1_000) for n in range(40)]
    with pytest.raises(KafkaError, match="the topic is typed, and takes rows of its columns alone"):
        cluster.produce("typed-rows-json", ["x"])
    assert len(cluster.rows("typed-rows-json")) == 40


def test_a_leader_refuses_a_null_that_a_writer_let_through(cluster: InProcessCluster) -> None:
    cluster.create_topic("typed-rows-null", schema=DDL)
    columns = columns_of(cluster.client, "typed-rows-null").newest
    batch = typed_batch({1: pa.array([1, None], pa.int64())}, 2, columns, now_ms=1)
    words = "column id is NOT NULL in the topic, and null in 1 of 2 rows"
    with pytest.raises(KafkaError, match=words), BatchProducer(cluster.client) as producer:
        producer.send(TopicPartition("typed-rows-null", 0), batch)


def test_a_timestamp_finds_its_row(cluster: InProcessCluster) -> None:
    cluster.create_topic("typed-rows-time", schema=DDL, timestamp="at")
    cluster.produce("typed-rows-time", ROWS)
    topic_partition = TopicPartition("typed-rows-time", 0)
    found = for_times(cluster.client, {topic_partition: 17_001}, IsolationLevel.READ_COMMITTED)
    assert (found[topic_partition].offset, found[topic_partition].timestamp_ms) == (18, 18_000)


def test_rows_outlive_leaders_and_restarts_and_every_replica_has_the_columns(tmp_path: Path) -> None:
    with InProcessCluster(tmp_path, brokers=3) as cluster:
        cluster.create_topic("typed-rows-live", schema=DDL, configs={"min.insync.replicas": "2"})
        cluster.produce("typed-rows-live", ROWS)
        first = cluster.wait_for_leader("typed-rows-live")
        cluster.kill(first)
        cluster.wait_for_leader("typed-rows-live", other_than=first)
        cluster.produce("typed-rows-live", ROWS)
        cluster.revive(first)
        cluster.wait_for_isr("typed-rows-live", 3)
        assert len(cluster.rows("typed-rows-live")) == 80
        documents = {path.read_bytes() for path in tmp_path.glob("broker-*/*/typed-rows-live-0/schema")}
        assert documents == {columns_of(cluster.client, "typed-rows-live").document.encode()}
        for broker_id in (1, 2, 3):
            cluster.shut_down(broker_id)
            cluster.revive(broker_id)
            cluster.wait_for_isr("typed-rows-live", 3)
        assert len(cluster.rows("typed-rows-live")) == 80
