"""A streaming read of typed topics keeps the ids of its plan, though Spark makes its second reader later."""

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import pyspark_sparklog
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.testing import InProcessCluster
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.reads.topic_form import form_at_load, spark_row_type
from sparklog_datasource.rows.typed_form import TypedForm
from sparklog_datasource.stream.stream_reader import RefusingReader, StreamReader, stream_reader
from tests.waiting import until

pytestmark = pytest.mark.integration

INT = pa.int32()


class Query:
    """The two readers of a query: of the driver, and of the tasks, which is made when it is needed first."""

    def __init__(self, cluster: InProcessCluster, **subscription: str) -> None:
        self.given = {"bootstrap.servers": cluster.bootstrap_servers, **subscription}
        options = ReadOptions.of_any(self.given)
        until(
            lambda: isinstance(form_at_load(options), TypedForm), "the broker that is asked to know the topic"
        )
        self.schema = spark_row_type(form_at_load(options))
        found = stream_reader({**self.given, "startingOffsets": "earliest"}, self.schema)
        assert isinstance(found, StreamReader)
        self.driver = found
        self.tasks: StreamReader | RefusingReader | None = None
        self.end = json.loads(json.dumps(self.driver.initialOffset()))

    def micro_batch(self) -> list[dict[str, Any]]:
        start, self.end = (
            self.end,
            json.loads(json.dumps(self.driver.latestOffset(self.end, ReadAllAvailable()))),
        )
        planned = pickle.loads(pickle.dumps(self.driver.partitions(start, self.end)))  # as Spark does
        if self.tasks is None:
            self.tasks = stream_reader({**self.given, "startingOffsets": "earliest"}, self.schema)
        copied = pickle.loads(pickle.dumps(self.tasks))
        return [row for one in planned for batch in copied.read(one) for row in batch.to_pylist()]


def alter(cluster: InProcessCluster, topic: str, *changes: str) -> None:
    pyspark_sparklog.alter_topic(topic, *changes, options={"bootstrap.servers": cluster.bootstrap_servers})


def test_tasks_read_with_the_ids_that_the_driver_planned(cluster: InProcessCluster) -> None:
    topic = "streams-planned"
    cluster.create_topic(topic, schema="id int, mag int")
    query = Query(cluster, subscribe=topic)
    alter(cluster, topic, "rename-column mag=size", "add-column mag int", "drop-column id")
    cluster.produce(topic, pa.table({"size": pa.array([5], INT), "mag": pa.array([6], INT)}))
    assert query.micro_batch() == [{"id": None, "mag": 5}]
    assert isinstance(query.tasks, RefusingReader)
    alter(cluster, topic, "rename-column size=id")
    cluster.produce(topic, pa.table({"id": pa.array([7], INT), "mag": pa.array([8], INT)}))
    assert query.micro_batch() == [{"id": None, "mag": 7}]


def test_a_query_that_starts_with_old_columns_is_told_to_load_again(cluster: InProcessCluster) -> None:
    topic = "streams-old"
    cluster.create_topic(topic, schema="id int, mag int")
    given = {"bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic}
    schema = spark_row_type(form_at_load(ReadOptions.of_any(given)))
    alter(cluster, topic, "drop-column mag")
    with pytest.raises(ConfigError, match=r"no column mag in topic 'streams-old', which has id.* load again"):
        stream_reader(given, schema).initialOffset()


def test_a_topic_that_a_pattern_finds_later_gets_its_ids_then_and_keeps_them(
    cluster: InProcessCluster,
) -> None:
    cluster.create_topic("streams-found-a", schema="id int, mag int")
    query = Query(cluster, subscribePattern="streams-found-.*")
    cluster.create_topic("streams-found-b", schema="id int, mag int")
    cluster.produce("streams-found-b", pa.table({"id": pa.array([1], INT)}))
    assert query.micro_batch() == [{"id": 1, "mag": None}]
    alter(cluster, "streams-found-b", "rename-column id=old", "add-column id int")
    cluster.produce("streams-found-b", pa.table({"id": pa.array([2], INT), "old": pa.array([3], INT)}))
    assert query.micro_batch() == [{"id": 3, "mag": None}]
    cluster.create_topic("streams-found-c", schema="id int")
    cluster.produce("streams-found-c", pa.table({"id": pa.array([1], INT)}))
    with pytest.raises(SparklogError, match="topic 'streams-found-c' has the columns id int, and the query"):
        query.micro_batch()


def test_a_topic_that_is_created_again_is_another_one(cluster: InProcessCluster) -> None:
    topic = "streams-again"
    cluster.create_topic(topic, schema="id int, mag int")
    query = Query(cluster, subscribe=topic)
    cluster.admin.delete_topics([topic])
    cluster.create_topic(topic, schema="mag int, id int")
    cluster.produce(topic, pa.table({"id": pa.array([1], INT)}))
    with pytest.raises(SparklogError, match="created again"):
        query.micro_batch()
