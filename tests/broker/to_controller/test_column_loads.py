"""Replicas that lack the columns of their topics get them from the controller, and keep them on disk."""

import uuid
from pathlib import Path

import pytest

from sparklog.broker.to_controller.column_loads import RETRY_MS, TOPICS_MAX, ColumnLoads
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.loops import Await, CallController, Pause, go_on
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.wire.messages.discovery.describe_schema import DescribedTopicSchema, DescribeSchemaResponse
from tests.broker.partition_harness import TOPIC_ID, TP, Harness

DOCUMENT = new_schema(parse_ddl("id bigint"))


class Replica:
    """Lacks its columns until it is given some."""

    def __init__(self, topic: str, topic_id: uuid.UUID = TOPIC_ID) -> None:
        self.topic_partition, self.topic_id = TopicPartition(topic, 0), topic_id
        self.kept = None

    @property
    def lacks_columns(self) -> bool:
        return self.kept is None

    def keep_columns(self, document) -> None:
        self.kept = document


def answer(name: str, topic_id: uuid.UUID = TOPIC_ID, document: bytes = DOCUMENT.encode()):
    return DescribedTopicSchema(name=name, topic_id=topic_id, version=1, document=document)


def refused(name: str) -> DescribedTopicSchema:
    return DescribedTopicSchema(name=name, error_code=ErrorCode.unknown_topic_or_partition)


def test_what_is_missing_is_asked_for_once_and_kept_by_each_replica_of_the_topic():
    replicas = [Replica("a"), Replica("a"), Replica("b")]
    loop = ColumnLoads(lambda: replicas).loop()
    question = go_on(loop)
    assert isinstance(question, CallController)
    assert question.message.topics == ["a", "b"]
    question = go_on(loop, DescribeSchemaResponse(topics=[answer("a"), refused("b")]))
    assert [replica.kept for replica in replicas] == [DOCUMENT, DOCUMENT, DOCUMENT]
    assert isinstance(question, Await)


def test_a_topic_of_the_same_name_does_not_give_its_columns_to_another():
    replicas = [Replica("a", uuid.UUID(int=1))]
    loop = ColumnLoads(lambda: replicas).loop()
    go_on(loop)
    assert go_on(loop, DescribeSchemaResponse(topics=[answer("a", uuid.UUID(int=2))])) == Pause(RETRY_MS)
    assert replicas[0].kept is None


@pytest.mark.parametrize(
    "outcome",
    [
        DescribeSchemaResponse(topics=[refused("a")]),
        DescribeSchemaResponse(topics=[answer("a", document=b"{")]),
        ConnectionError("away"),
        TimeoutError("silent"),
    ],
)
def test_after_a_failure_the_controller_is_asked_again(outcome):
    replicas = [Replica("a")]
    loop = ColumnLoads(lambda: replicas).loop()
    go_on(loop)
    failed = isinstance(outcome, Exception)
    assert go_on(loop, None if failed else outcome, outcome if failed else None) == Pause(RETRY_MS)
    assert isinstance(go_on(loop), CallController)
    assert isinstance(go_on(loop, DescribeSchemaResponse(topics=[answer("a")])), Await)


def test_a_request_names_no_more_topics_than_fit_an_answer():
    replicas = [Replica(f"t{nth}", uuid.UUID(int=nth)) for nth in range(TOPICS_MAX + 5)]
    loop = ColumnLoads(lambda: replicas).loop()
    first = go_on(loop)
    assert len(first.message.topics) == TOPICS_MAX
    topics = [answer(f"t{nth}", uuid.UUID(int=nth)) for nth in range(TOPICS_MAX)]
    assert isinstance(go_on(loop, DescribeSchemaResponse(topics=topics)), Pause)
    assert go_on(loop).message.topics == [f"t{nth}" for nth in range(TOPICS_MAX, TOPICS_MAX + 5)]


def test_a_replica_keeps_the_columns_in_its_directory(tmp_path: Path):
    partition = Harness(tmp_path).partition
    assert partition.topic_partition == TP
    assert not partition.lacks_columns
    partition.schema_version = 1
    assert partition.lacks_columns
    partition.keep_columns(DOCUMENT)
    assert not partition.lacks_columns
    assert partition.columns.document == DOCUMENT
    assert (Path(partition.log.directory) / "schema").read_bytes() == DOCUMENT.encode()
