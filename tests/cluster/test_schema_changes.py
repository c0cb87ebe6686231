"""Columns of typed topics change on real brokers, and rows of every version are taken."""

from pathlib import Path

import pyarrow as pa
import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.topic_schemas import Overtaken, alter_schema, describe_schemas, schema_with_version
from sparklog.model.errors import KafkaError, SchemaError
from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

FLOAT = pa.array([0.5], pa.float32())


def columns_of(client: ClusterClient, topic: str) -> SchemaDocument:
    return describe_schemas(client, [topic])[topic]


def alter(
    client: ClusterClient, topic: str, *changes: str, known: SchemaDocument | None = None
) -> SchemaDocument:
    parsed = [parse_change(*change.split(" ", 1)) for change in changes]
    return alter_schema(client, topic, known or columns_of(client, topic), parsed)


def newest(schema: SchemaDocument) -> str:
    return ddl_text(schema.at(schema.version))


def test_every_broker_knows_a_change_once_it_is_made(cluster: InProcessCluster) -> None:
    cluster.create_topic("changes-known", schema="id int NOT NULL, mag float", partitions=2)
    made = alter(cluster.client, "changes-known", "add-column note string", "rename-column mag=size")
    for broker in cluster.brokers.values():
        with ClusterClient(f"{broker.node.host}:{broker.node.port}") as client:
            assert columns_of(client, "changes-known") == made
            assert client.metadata(["changes-known"]).topics["changes-known"].schema_version == 2
    assert newest(made) == "id int NOT NULL, size float, note string"


def test_the_loser_of_two_changes_is_told_which_version_there_is(cluster: InProcessCluster) -> None:
    cluster.create_topic("changes-rival", schema="id int")
    known = columns_of(cluster.client, "changes-rival")
    alter(cluster.client, "changes-rival", "add-column x int", known=known)
    with pytest.raises(Overtaken, match="there is version 2 now") as overtaken:
        alter(cluster.client, "changes-rival", "add-column y int", known=known)
    assert overtaken.value.version == 2
    assert alter(cluster.client, "changes-rival", "add-column y int").version == 3


def test_a_change_that_was_made_already_by_the_same_call_counts_as_made(cluster: InProcessCluster) -> None:
    cluster.create_topic("changes-again", schema="id int")
    known = columns_of(cluster.client, "changes-again")
    first = alter(cluster.client, "changes-again", "add-column x int", known=known)
    assert alter(cluster.client, "changes-again", "add-column x int", known=known) == first


def test_refusals_are_the_same_here_and_at_the_controller(cluster: InProcessCluster) -> None:
    cluster.create_topic("changes-refused", schema="id int", key="id")
    with pytest.raises(SchemaError, match="it is the topic's key column"):
        alter(cluster.client, "changes-refused", "drop-column id")
    with (
        ClusterClient(cluster.bootstrap_servers, retry_timeout_ms=500) as hasty,
        pytest.raises(KafkaError, match="version 9 of its columns is unknown, hosts know versions 1 to 1"),
    ):
        schema_with_version(hasty, "changes-refused", 9)


def test_rows_of_every_version_are_taken_and_read_as_the_newest(cluster: InProcessCluster) -> None:
    topic = "changes-rows"
    cluster.create_topic(topic, schema="id int NOT NULL, mag float, gone string")
    cluster.produce(topic, pa.table({"id": pa.array([1], pa.int32()), "mag": FLOAT, "gone": ["x"]}))
    alter(cluster.client, topic, "add-column note string", "drop-column gone", "widen-column id bigint")
    cluster.produce(topic, pa.table({"id": [2**40], "mag": FLOAT, "note": ["n"]}))
    alter(cluster.client, topic, "rename-column mag=size", "add-column gone int", "drop-not-null id")
    cluster.produce(topic, pa.table({"id": [None], "size": FLOAT, "gone": pa.array([7], pa.int32())}))
    assert cluster.rows(topic).to_pylist() == [
        {"id": 1, "size": 0.5, "note": None, "gone": None},
        {"id": 2**40, "size": 0.5, "note": "n", "gone": None},
        {"id": None, "size": 0.5, "note": None, "gone": 7},
    ]


def test_a_replica_that_was_down_during_a_change_learns_at_its_start(tmp_path: Path) -> None:
    with InProcessCluster(tmp_path, brokers=2) as cluster:
        cluster.create_topic("missed", schema="id int", partitions=2, replication_factor=2)
        cluster.shut_down(2)
        alter(cluster.client, "missed", "add-column x int")
        cluster.revive(2)
        broker = cluster.brokers[2]
        with ClusterClient(f"{broker.node.host}:{broker.node.port}") as client:
            assert newest(schema_with_version(client, "missed", 2)) == "id int, x int"
        cluster.produce(
            "missed", pa.table({"id": pa.array(range(50), pa.int32()), "x": pa.array([1] * 50, pa.int32())})
        )
        assert cluster.rows("missed").num_rows == 50
