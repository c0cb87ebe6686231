"""Typed topics made from Spark's schemas, without a session."""

import logging

import pytest
from pyspark.sql.types import (
    ArrayType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

import pyspark_sparklog
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.errors import ConfigError, SchemaError
from sparklog.model.schema.schema_settings import settings_of
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration


def servers(cluster: InProcessCluster) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap_servers}


def test_a_frames_schema_becomes_the_columns(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture
) -> None:
    item = StructType([StructField("name", StringType(), nullable=False)])
    schema = StructType([
        StructField("id", LongType(), nullable=False, metadata={"comment": "x"}),
        StructField("items", ArrayType(item, containsNull=False)),
        StructField("at", TimestampType()),
    ])  # fmt: skip
    with caplog.at_level(logging.WARNING):
        pyspark_sparklog.create_topic(
            "framed", schema, options=servers(cluster), key="id", timestamp="at", partitions=2,
            replication_factor=1, configs={"retention.ms": "9"},
        )  # fmt: skip
    assert "NOT NULL of items.element.name is dropped" in caplog.text
    assert settings_of(describe_schemas(cluster.client, ["framed"])["framed"]) == {
        "sparklog.schema": "id bigint NOT NULL COMMENT 'x', items array<struct<name: string>>, at timestamp",
        "sparklog.key": "id",
        "sparklog.timestamp": "at",
    }
    (described,) = cluster.admin.describe_topics(["framed"])
    assert len(described.partitions) == 2
    assert described.configs["retention.ms"] == "9"


def test_columns_may_be_ddl(cluster: InProcessCluster) -> None:
    pyspark_sparklog.create_topic("columns-of-ddl", "id bigint", options=servers(cluster))
    assert describe_schemas(cluster.client, ["columns-of-ddl"]).keys() == {"columns-of-ddl"}


def test_columns_that_no_topic_can_have_are_refused_before_a_broker_is_asked() -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(SchemaError, match="column v: type variant is not supported"):
        pyspark_sparklog.create_topic("t", StructType([StructField("v", VariantType())]), options=nowhere)
    with pytest.raises(ConfigError, match="unknown option 'topic'"):
        pyspark_sparklog.create_topic("t", "id bigint", options={**nowhere, "topic": "t"})


class Frame:
    """Has a schema, as a DataFrame has."""

    schema = StructType([StructField("id", LongType())])


def test_what_is_no_schema_and_no_options_is_refused_in_words() -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(SchemaError, match=r"a Frame is no schema; give its schema, df\.schema"):
        pyspark_sparklog.create_topic("framed-whole", Frame(), options=nowhere)
    with pytest.raises(SchemaError, match=r"a dict is no schema; give DDL, or df\.schema"):
        pyspark_sparklog.create_topic("framed-dict", {"id": "bigint"}, options=nowhere)
    with pytest.raises(ConfigError, match="are no options: give a dictionary"):
        pyspark_sparklog.create_topic("framed-text", "id bigint", options="127.0.0.1:1")  # type: ignore[arg-type]
