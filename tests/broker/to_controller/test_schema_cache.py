"""A broker asks the controller for columns that it lacks, once, and for each newer version."""

import threading
import uuid
from dataclasses import replace

import pytest

from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.to_controller.schema_cache import NO_CONTROLLER, Schemas
from sparklog.model.errors import ErrorCode
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from sparklog.wire.messages.discovery.describe_schema import DescribedTopicSchema, DescribeSchemaResponse

FIRST, SECOND = uuid.UUID(int=1), uuid.UUID(int=2)
DOCUMENT = new_schema(parse_ddl("a int"))


class Controller:
    """Knows one topic, and counts who asks."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answer = DescribedTopicSchema(name="t", topic_id=FIRST, version=1, document=DOCUMENT.encode())
        self.is_away = False

    def call_when_reachable(self, message, *, timeout_ms):
        self.asked.append(message.topics)
        if self.is_away:
            raise ConnectionError("away")
        unknown = ErrorCode.unknown_topic_or_partition
        return DescribeSchemaResponse(
            topics=[
                self.answer if name == "t" else DescribedTopicSchema(name=name, error_code=unknown)
                for name in message.topics
            ]
        )


class Broker:
    def __init__(self) -> None:
        self.metadata, self.controller, self.pushes = MetadataCache(threading.Lock()), Controller(), 0
        self.schemas = Schemas(self.metadata, self.controller, threading.Lock())

    def hears_of(self, version: int, topic_id: uuid.UUID = FIRST) -> None:
        self.pushes += 1
        state = UpdateMetadataPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=1,
            leader_epoch=0,
            isr=[1],
            zk_version=0,
            replicas=[1],
        )
        topic = UpdateMetadataTopicState(
            topic_name="t", topic_id=topic_id, partition_states=[state], schema_version=version
        )
        self.metadata.update(
            UpdateMetadataRequest(
                controller_id=-1, controller_epoch=1, broker_epoch=1, push=self.pushes, topic_states=[topic]
            )
        )

    def describe(self, name: str = "t") -> DescribedTopicSchema:
        (described,) = self.schemas.described([name])
        return described


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_columns_are_asked_for_once(broker: Broker) -> None:
    broker.hears_of(1)
    assert broker.schemas.known(broker.metadata.topic("t")) is None
    assert broker.describe() == broker.describe()
    assert broker.schemas.known(broker.metadata.topic("t")) == DOCUMENT
    assert broker.controller.asked == [["t"]]


def test_a_topic_without_columns_is_described_without_a_question(broker: Broker) -> None:
    broker.hears_of(0)
    assert (broker.describe().version, broker.describe().topic_id) == (0, FIRST)
    assert broker.controller.asked == []


def test_a_newer_version_is_asked_for(broker: Broker) -> None:
    broker.hears_of(1)
    broker.describe()
    broker.hears_of(2)
    assert broker.schemas.known(broker.metadata.topic("t")) is None
    broker.controller.answer = replace(broker.controller.answer, version=2)
    assert broker.describe().version == 2
    assert len(broker.controller.asked) == 2


def test_a_topic_of_that_name_made_again_has_its_own_columns(broker: Broker) -> None:
    broker.hears_of(1)
    broker.describe()
    broker.hears_of(1, SECOND)
    broker.controller.answer = DescribedTopicSchema(
        name="t", topic_id=SECOND, version=1, document=DOCUMENT.encode()
    )
    assert broker.describe().topic_id == SECOND
    assert list(broker.schemas._documents) == [SECOND]


def test_a_topic_that_the_broker_has_not_heard_of_is_the_controllers_to_describe(broker: Broker) -> None:
    assert broker.describe().document == DOCUMENT.encode()
    assert broker.describe("other").error_code is ErrorCode.unknown_topic_or_partition


def test_without_a_controller_the_refusal_asks_to_try_again(broker: Broker) -> None:
    broker.hears_of(1)
    broker.controller.is_away = True
    described = broker.describe()
    assert (described.error_code, described.error_message) == (ErrorCode.request_timed_out, NO_CONTROLLER)


def test_columns_of_a_later_format_are_not_kept(broker: Broker) -> None:
    broker.hears_of(1)
    broker.controller.answer.document = b'{"format": 2}'
    described = broker.describe()
    assert described.error_code is ErrorCode.unknown_server_error
    assert "use a later release" in described.error_message
    assert broker.schemas.known(broker.metadata.topic("t")) is None
