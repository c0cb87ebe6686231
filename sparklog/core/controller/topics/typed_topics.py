"""Topics with columns: how their columns come out of settings, and which settings they cannot have.

A topic is typed from its creation, or never. The columns come as settings in CreateTopics, and are not kept
as settings: those are sent to every broker, with each change of a partition. They are a node of their own.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sparklog.core.controller.commands.config_commands import SettingChange
from sparklog.core.controller.commands.topic_commands import (
    DescribedSchema,
    DescribedSchemas,
    DescribeSchemas,
)
from sparklog.core.controller.state.image import ClusterImage, TopicImage
from sparklog.model.errors import ErrorCode, KafkaError, SchemaError
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.notation import parse_schema
from sparklog.model.schema.schema_settings import KEY, SCHEMA, SCHEMA_SETTINGS, TIMESTAMP, settings_of

POLICY: Final = "cleanup.policy"


def without_schema(configs: Mapping[str, str | None]) -> dict[str, str | None]:
    """The settings that are kept as settings."""
    return {name: value for name, value in configs.items() if name not in SCHEMA_SETTINGS}


def schema_of_new(
    image: ClusterImage, topic: str, configs: Mapping[str, str | None]
) -> SchemaDocument | None:
    """The columns that a new topic's settings name; None if they name none.

    Raises KafkaError (INVALID_CONFIG) if the topic cannot have them.
    """
    given = {name: configs.get(name) or "" for name in SCHEMA_SETTINGS if name in configs}
    if not given:
        return None
    if not given.get(SCHEMA):
        message = f"{', '.join(given)} without columns: set {SCHEMA} too, such as id bigint, name string"
        raise KafkaError(ErrorCode.invalid_config, message)
    if topic in INTERNAL_TOPICS:
        message = f"internal topic '{topic}' has no columns: do not set {SCHEMA}"
        raise KafkaError(ErrorCode.invalid_config, message)
    if POLICY not in configs and "compact" in image.config.topic({}).get_list(POLICY):
        message = (
            f"{POLICY}=compact is the brokers' default, and typed topics are not compacted: "
            f"set {POLICY}=delete for topic '{topic}'"
        )
        raise KafkaError(ErrorCode.invalid_config, message)
    try:
        return new_schema(parse_schema(given[SCHEMA]), given.get(KEY, ""), given.get(TIMESTAMP, ""))
    except SchemaError as error:
        raise KafkaError(ErrorCode.invalid_config, str(error)) from None


def check_keeps_schema(topic: TopicImage, changes: Iterable[SettingChange]) -> None:
    """Raises KafkaError (INVALID_CONFIG) if a change of settings would change the columns.

    A client may send back what DescribeConfigs showed.
    """
    named = [one for one in changes if one.name in SCHEMA_SETTINGS]
    if not named:
        return
    if not topic.schema:
        message = f"{named[0].name}: topic '{topic.name}' has no columns; they are given at its creation"
        raise KafkaError(ErrorCode.invalid_config, message)
    present = settings_of(SchemaDocument.decode(topic.schema))
    for one in named:
        if one.operation != "set" or (one.value or "") != present.get(one.name, ""):
            message = f"{one.name} of topic '{topic.name}' cannot be changed as a setting: leave it as it is"
            raise KafkaError(ErrorCode.invalid_config, message)


def describe_schemas(image: ClusterImage, request: DescribeSchemas) -> DescribedSchemas:
    """The columns of the topics that are named."""
    return DescribedSchemas(tuple(_described(image, name) for name in request.topics))


def _described(image: ClusterImage, name: str) -> DescribedSchema:
    topic = image.topics.get(name)
    if topic is None or image.is_deleting(name):
        return DescribedSchema(name, ErrorCode.unknown_topic_or_partition)
    return DescribedSchema(name, id=topic.id, version=topic.node.schema_version, document=topic.schema)
