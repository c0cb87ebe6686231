"""Requests about topics as commands, and results as responses."""

import uuid

import pytest

from sparklog.core.controller.commands.topic_commands import (
    DeleteTopics,
    DoomedTopic,
    TopicResult,
    TopicsResult,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.kafka_numbers import ConfigSource
from sparklog.model.settings.config import BrokerConfig
from sparklog.wire.commands import topic_requests
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest, DeleteTopicState

TOPIC = uuid.uuid5(uuid.NAMESPACE_OID, "t")


def test_created_topics_show_every_setting_with_its_source(answered):
    config = BrokerConfig.parse({"min.insync.replicas": "2"})
    result = TopicResult("t", id=TOPIC, partitions=1, replication_factor=3, configs={"retention.ms": "1"})
    response = answered(topic_requests.create_topics_response(TopicsResult((result,)), config))
    settings = {one.name: (one.value, one.config_source) for one in response.topics[0].configs}
    assert settings["retention.ms"] == ("1", ConfigSource.TOPIC)
    assert settings["min.insync.replicas"] == ("2", ConfigSource.STATIC_BROKER)
    assert settings["cleanup.policy"] == ("delete", ConfigSource.DEFAULT)


def test_refused_topics_say_why_in_every_version(answered):
    result = TopicsResult((TopicResult("t", ErrorCode.topic_already_exists, "Topic 't' already exists."),))
    for version in range(1, 8):
        response = answered(topic_requests.create_topics_response(result, BrokerConfig()), version)
        assert response.topics[0].error_message == "Topic 't' already exists."


def test_topics_to_delete_come_by_name_or_id():
    old = topic_requests.delete_topics(DeleteTopicsRequest(topic_names=["a"], timeout_ms=5))
    new = topic_requests.delete_topics(
        DeleteTopicsRequest(topics=[DeleteTopicState(name="b"), DeleteTopicState(topic_id=TOPIC)])
    )
    assert old == DeleteTopics((DoomedTopic("a"),), 5)
    assert new.topics == (DoomedTopic("b"), DoomedTopic(None, TOPIC))


@pytest.mark.parametrize("version", range(7))
def test_the_deletion_of_the_empty_name_is_answered_with_it_in_every_version(answered, version):
    result = TopicsResult((TopicResult("", error=ErrorCode.unknown_topic_or_partition),))
    response = answered(topic_requests.delete_topics_response(result), version)
    assert response.responses[0].name == ""


def test_a_topic_that_is_named_by_an_unknown_id_is_answered_without_a_name(answered):
    result = TopicsResult((TopicResult("", id=TOPIC, error=ErrorCode.unknown_topic_id),))
    response = answered(topic_requests.delete_topics_response(result))
    assert (response.responses[0].name, response.responses[0].topic_id) == (None, TOPIC)
