"""Typed topics on real brokers: they have columns from their creation on, which every broker shows."""

from pathlib import Path

import pytest

from sparklog.client.admin import Admin, NewTopic
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.settings import describe_topic
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

DDL = "id bigint NOT NULL COMMENT 'of the row', s struct<a: int>, at timestamp"


def columns_of(client: ClusterClient, topic: str) -> str:
    schema = describe_schemas(client, [topic])[topic]
    return ddl_text(schema.at(schema.version))


def test_a_topic_has_its_columns_and_every_broker_knows_them(cluster: InProcessCluster) -> None:
    cluster.create_topic("columns-typed", schema=DDL, key="id", timestamp="at", configs={"retention.ms": "9"})
    assert cluster.client.topic("columns-typed").schema_version == 1
    for broker in cluster.brokers.values():
        with ClusterClient(f"{broker.node.host}:{broker.node.port}") as client:
            schema = describe_schemas(client, ["columns-typed"])["columns-typed"]
            assert ddl_text(schema.at(1)) == DDL
            assert (schema.name_of(schema.key), schema.name_of(schema.timestamp)) == ("id", "at")
    own = cluster.admin.topic_configs(["columns-typed"])["columns-typed"]
    assert own == {"retention.ms": "9", "cleanup.policy": "delete"}


def test_a_topic_without_columns_is_left_out(cluster: InProcessCluster) -> None:
    cluster.create_topic("columns-plain")
    assert cluster.client.topic("columns-plain").schema_version == 0
    assert describe_schemas(cluster.client, ["columns-plain"]) == {}
    with pytest.raises(KafkaError, match="topic 'no-such-topic': there is none"):
        describe_schemas(cluster.client, ["no-such-topic"])


def test_columns_are_settings_that_cannot_be_changed(cluster: InProcessCluster) -> None:
    cluster.create_topic("columns-fixed", schema=DDL, key="id")
    shown = describe_topic(cluster.client, "columns-fixed")
    of_columns = {name: setting for name, setting in shown.items() if name.startswith("sparklog.")}
    assert {name: setting.value for name, setting in of_columns.items()} == {
        "sparklog.schema": DDL,
        "sparklog.key": "id",
    }
    assert all(setting.read_only for setting in of_columns.values())
    changes = ClusterChanges(cluster.client)
    changes.alter_topic_configs(
        "columns-fixed", {name: setting.value for name, setting in of_columns.items()}
    )
    refusals = {
        "sparklog.schema": "cannot be changed as a setting: leave it as it is",
        "sparklog.timestamp": "cannot be changed as a setting: leave it as it is",
        "cleanup.policy": "of typed topic 'columns-fixed' is always delete, not 'compact': do not set it",
    }
    for name, words in refusals.items():
        with pytest.raises(KafkaError, match=words):
            changes.alter_topic_configs("columns-fixed", {name: "compact"})
    assert columns_of(cluster.client, "columns-fixed") == DDL


def test_a_topic_made_again_has_the_columns_of_its_own(cluster: InProcessCluster) -> None:
    cluster.create_topic("columns-again", schema="a int")
    assert columns_of(cluster.client, "columns-again") == "a int"
    cluster.admin.delete_topics(["columns-again"])

    cluster.create_topic("columns-again", schema="b string")
    for broker in cluster.brokers.values():
        with ClusterClient(f"{broker.node.host}:{broker.node.port}") as client:
            assert columns_of(client, "columns-again") == "b string"


def test_partitions_and_moves_leave_the_columns(cluster: InProcessCluster) -> None:
    cluster.create_topic("columns-grown", schema="a int", replication_factor=1)
    changes = ClusterChanges(cluster.client)
    changes.create_partitions("columns-grown", 3)
    assert cluster.admin.describe_topics(["columns-grown"])[0].schema_version == 1
    assert columns_of(cluster.client, "columns-grown") == "a int"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sparklog.schema": ""}, "sparklog.schema without columns: set sparklog.schema too"),
        ({"sparklog.key": "id"}, "sparklog.key without columns: set sparklog.schema too"),
        ({"sparklog.schema": "a xyz"}, "column a: there is no type 'xyz'"),
        ({"sparklog.schema": "a int", "cleanup.policy": "compact"}, "is always delete, not 'compact'"),
        ({"sparklog.schema": "a int", "cleanup.policy": "compact,delete"}, "is always delete, not"),
        ({"sparklog.schema": f"a int COMMENT '{'x' * 100_000}'"}, "the schema takes 100,122 bytes"),
        ({"sparklog.schema": "a int", "sparklog.key": "b"}, "key column b is not in the schema"),
    ],
)
def test_columns_that_no_topic_can_have_are_refused(
    cluster: InProcessCluster, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(KafkaError, match=words) as refusal:
        Admin(cluster.client).create_topics([NewTopic(name="columns-refused", configs=settings)])
    assert refusal.value.code is ErrorCode.invalid_config
    assert "columns-refused" not in cluster.admin.list_topics()


def test_columns_outlive_controller_and_brokers(tmp_path: Path) -> None:
    for is_first in (True, False):
        with InProcessCluster(tmp_path, zookeeper="real", brokers=1) as cluster:
            if is_first:
                cluster.create_topic("kept", schema=DDL)
            assert columns_of(cluster.client, "kept") == DDL
            with pytest.raises(KafkaError, match="the topic is typed"):
                cluster.produce("kept", ["x"])
