"""Topics created, deleted and enlarged: requests as commands, results as responses."""

from collections.abc import Callable, Iterable, Mapping

from sparklog.core.controller.commands.topic_commands import (
    AlteredSchema,
    AlterSchema,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DescribedSchemas,
    DescribeSchemas,
    DoomedTopic,
    Increase,
    TopicResult,
    TopicsResult,
    TopicToCreate,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicId
from sparklog.model.kafka_numbers import ConfigSource
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.setting import render
from sparklog.model.settings.settings_table import TOPIC_SETTINGS
from sparklog.wire.messages.admin.alter_schema import AlterSchemaRequest, AlterSchemaResponse
from sparklog.wire.messages.admin.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from sparklog.wire.messages.admin.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sparklog.wire.messages.admin.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from sparklog.wire.messages.discovery.describe_schema import (
    DescribedTopicSchema,
    DescribeSchemaRequest,
    DescribeSchemaResponse,
)


def create_topics(request: CreateTopicsRequest, new_topic_id: Callable[[], TopicId]) -> CreateTopics:
    topics = tuple(_new_topic(topic, new_topic_id()) for topic in request.topics)
    return CreateTopics(topics, request.timeout_ms, request.validate_only)


def _new_topic(topic: CreatableTopic, topic_id: TopicId) -> TopicToCreate:
    return TopicToCreate(
        name=topic.name,
        id=topic_id,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={
            one.partition_index: tuple(BrokerId(broker) for broker in one.broker_ids)
            for one in topic.assignments
        },
        configs={one.name: one.value for one in topic.configs},
    )


def create_topics_response(result: TopicsResult, config: BrokerConfig) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        throttle_time_ms=result.throttle_ms, topics=[_created(topic, config) for topic in result.topics]
    )


def _created(topic: TopicResult, config: BrokerConfig) -> CreatableTopicResult:
    if topic.error != ErrorCode.none:
        return CreatableTopicResult(
            name=topic.name, error_code=topic.error, error_message=topic.message or None, configs=None
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=_settings(topic.configs, config),
    )


def _settings(overrides: Mapping[str, str], config: BrokerConfig) -> list[CreatableTopicConfigs]:
    """All settings of a topic with these overrides, each with its source."""
    settings = []
    inherited = config.topic({})
    for name, setting in TOPIC_SETTINGS.items():
        source = ConfigSource.STATIC_BROKER if setting.broker_name in config.given else ConfigSource.DEFAULT
        value = overrides.get(name, render(inherited.get(name)))
        settings.append(
            CreatableTopicConfigs(
                name=name, value=value, config_source=ConfigSource.TOPIC if name in overrides else source
            )
        )
    return settings


def delete_topics(request: DeleteTopicsRequest) -> DeleteTopics:
    by_name = tuple(DoomedTopic(name) for name in request.topic_names)
    by_either = tuple(DoomedTopic(topic.name, topic.topic_id) for topic in request.topics)
    return DeleteTopics(by_name + by_either, request.timeout_ms)


def delete_topics_response(result: TopicsResult) -> DeleteTopicsResponse:
    """A topic that the request names by an unknown id alone is answered without a name; a request that names
    the empty name gets it back, because names may be null from version 6 on only.
    """
    return DeleteTopicsResponse(
        throttle_time_ms=result.throttle_ms,
        responses=[
            DeletableTopicResult(
                name=None if topic.name == "" and topic.id != NO_TOPIC_ID else topic.name,
                topic_id=topic.id,
                error_code=topic.error,
                error_message=topic.message or None,
            )
            for topic in result.topics
        ],
    )


def create_partitions(request: CreatePartitionsRequest) -> CreatePartitions:
    topics = tuple(
        Increase(
            topic.name,
            topic.count,
            None if topic.assignments is None else tuple(_ids(one.broker_ids) for one in topic.assignments),
        )
        for topic in request.topics
    )
    return CreatePartitions(topics, request.timeout_ms, request.validate_only)


def _ids(brokers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))


def create_partitions_response(result: TopicsResult) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time_ms=result.throttle_ms,
        results=[
            CreatePartitionsTopicResult(
                name=topic.name, error_code=topic.error, error_message=topic.message or None
            )
            for topic in result.topics
        ],
    )


def describe_schema(request: DescribeSchemaRequest) -> DescribeSchemas:
    return DescribeSchemas(tuple(request.topics))


def describe_schema_response(result: DescribedSchemas) -> DescribeSchemaResponse:
    return DescribeSchemaResponse(
        topics=[
            DescribedTopicSchema(
                name=topic.name,
                error_code=topic.error,
                error_message=topic.message or None,
                topic_id=topic.id,
                version=topic.version,
                document=topic.document or None,
            )
            for topic in result.topics
        ]
    )


def alter_schema(request: AlterSchemaRequest) -> AlterSchema:
    changes = tuple((change.operation, change.text) for change in request.changes)
    return AlterSchema(request.topic, request.from_version, changes)


def alter_schema_response(result: AlteredSchema) -> AlterSchemaResponse:
    return AlterSchemaResponse(
        error_code=result.error, error_message=result.message or None, version=result.version
    )
