"""An internal topic is created once for all who ask, and a refusal is logged, but not for each of them."""

import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.coordination.internal_topic_creation import InternalTopics
from sparklog.broker.coordination.kinds import GROUPS
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.config import BrokerConfig
from sparklog.wire.messages.admin.create_topics import CreatableTopicResult, CreateTopicsResponse

REFUSED = CreatableTopicResult(
    name=GROUPS.topic,
    error_code=ErrorCode.invalid_replication_factor,
    error_message="Replication factor: 3 larger than available brokers: 1.",
)


class Cluster:
    """``answer`` is the controller's: a result, or an error that is raised."""

    def __init__(self, clock, **settings):
        self.clock, self.requests, self.waiting = clock, [], []
        self.answer = CreatableTopicResult(name=GROUPS.topic)
        config = BrokerConfig.parse(settings)
        executor = SimpleNamespace(submit=self.waiting.append)
        self.topics = InternalTopics(self, executor, lambda: config, clock, threading.Lock())

    def call(self, message, *, timeout_ms):
        self.requests.append(message)
        if isinstance(self.answer, Exception):
            raise self.answer
        return CreateTopicsResponse(topics=[self.answer])

    def create(self):
        self.topics.create(GROUPS)

    def work(self):
        waiting, self.waiting[:] = list(self.waiting), []
        for work in waiting:
            work()


@pytest.fixture
def cluster(clock):
    return Cluster(clock)


def test_requests_that_come_while_the_topic_is_created_ask_for_no_second_one(cluster):
    for _ in range(10):
        cluster.create()
    cluster.work()
    assert len(cluster.requests) == 1


def test_the_topic_has_the_settings_of_the_brokers(clock):
    settings = {
        "offsets.topic.num.partitions": "7",
        "offsets.topic.replication.factor": "2",
        "offsets.topic.segment.bytes": "5000",
    }
    cluster = Cluster(clock, **settings)
    cluster.create()
    cluster.work()
    (topic,) = cluster.requests[0].topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("__consumer_offsets", 7, 2)
    assert {config.name: config.value for config in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "5000",
    }


def test_a_refusal_is_tried_again_after_a_pause_and_logged_once_a_minute(cluster, clock, caplog):
    cluster.answer = REFUSED
    for _ in range(50):
        cluster.create()
        cluster.work()
        clock.now_ms += 100
    assert len(cluster.requests) == 5
    assert len(caplog.records) == 1
    assert "Replication factor: 3 larger than available brokers: 1" in caplog.text
    assert "replication factor 3" in caplog.text
    clock.now_ms += 60_000
    cluster.create()
    cluster.work()
    assert len(caplog.records) == 2


def test_a_controller_that_does_not_answer_is_asked_again(cluster, clock, caplog):
    cluster.answer = ConnectionError("no controller is elected")
    cluster.create()
    cluster.work()
    assert "no controller is elected" in caplog.text
    cluster.answer = CreatableTopicResult(name=GROUPS.topic)
    clock.now_ms += 1_000
    cluster.create()
    cluster.work()
    assert len(cluster.requests) == 2


def test_a_topic_that_another_broker_had_created_is_no_problem(cluster, caplog):
    cluster.answer = CreatableTopicResult(name=GROUPS.topic, error_code=ErrorCode.topic_already_exists)
    cluster.create()
    cluster.work()
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
