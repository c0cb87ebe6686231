"""Changes of a topic's columns: the next version, made from the one that the requester knew.

One multi-op writes the document and the topic's node, which has the version. Of two changes that begin at one
version the first is made; the other is refused with the version that there is now, because its author has not
seen what it would be added to.
"""

from dataclasses import replace

from sparklog.core.controller.commands.controller_command import CommandId
from sparklog.core.controller.commands.topic_commands import AlteredSchema, AlterSchema
from sparklog.core.controller.state.image import ClusterImage, SchemaChanged, TopicImage
from sparklog.core.controller.state.write_size import WRITE_BYTES_MAX, bytes_of
from sparklog.core.controller.state.znodes import TopicNode, encode_topic, schema_path, topic_path
from sparklog.core.controller.steps import ChangeSchema, Decision
from sparklog.model.errors import ErrorCode, SchemaError
from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.evolution import changed
from sparklog.model.zookeeper import ANY_VERSION, Operation, SetData


def plan_schema(
    image: ClusterImage, command: CommandId, request: AlterSchema
) -> ChangeSchema | AlteredSchema:
    """The step that makes the change, or why it is refused."""
    topic = image.topics.get(request.topic)
    if topic is None or image.is_deleting(request.topic):
        message = f"The topic '{request.topic}' does not exist."
        return AlteredSchema(ErrorCode.unknown_topic_or_partition, message)
    if not topic.schema:
        message = f"topic '{request.topic}' has no columns: a topic is typed from its creation, or never"
        return AlteredSchema(ErrorCode.invalid_request, message)
    version = topic.node.schema_version
    if request.from_version != version:
        return _overtaken(topic)
    try:
        document = changed(
            SchemaDocument.decode(topic.schema),
            [parse_change(operation, text) for operation, text in request.changes],
        )
    except SchemaError as error:
        return AlteredSchema(ErrorCode.invalid_config, f"topic '{topic.name}': {error}", version)
    schema = document.encode()
    if bytes_of(_nodes(topic, _next(topic), schema)) > WRITE_BYTES_MAX:
        message = (
            f"the columns of topic '{topic.name}' and its {len(topic.states)} partitions are too large for "
            "one write to ZooKeeper: write to a new topic with fewer partitions"
        )
        return AlteredSchema(ErrorCode.invalid_config, message, version)
    return ChangeSchema(command, topic.name, topic.id, version, schema)


def decide_schema(image: ClusterImage, step: ChangeSchema) -> Decision | AlteredSchema:
    """What to write, or the answer if there is nothing to write."""
    topic = image.topics.get(step.topic)
    if topic is None or image.is_deleting(step.topic) or topic.id != step.topic_id:
        message = f"The topic '{step.topic}' was deleted meanwhile."
        return AlteredSchema(ErrorCode.unknown_topic_or_partition, message)
    made = AlteredSchema(version=step.from_version + 1)
    if topic.schema == step.schema:
        return made  # an earlier try succeeded unseen, or somebody made the same change
    if topic.node.schema_version != step.from_version:
        return _overtaken(topic)
    node = _next(topic)
    change = SchemaChanged(step.topic, node, step.schema)
    return Decision(step, _nodes(topic, node, step.schema), (change,), made)


def _next(topic: TopicImage) -> TopicNode:
    return replace(topic.node, schema_version=topic.node.schema_version + 1)


def _nodes(topic: TopicImage, node: TopicNode, schema: bytes) -> tuple[Operation, ...]:
    return (
        SetData(schema_path(topic.id), schema, ANY_VERSION),
        SetData(topic_path(topic.name), encode_topic(node), ANY_VERSION),
    )


def _overtaken(topic: TopicImage) -> AlteredSchema:
    version = topic.node.schema_version
    message = (
        f"topic '{topic.name}': another change of the columns was made meanwhile, there is version {version} "
        "now; look at it and change it again"
    )
    return AlteredSchema(ErrorCode.invalid_update_version, message, version)
