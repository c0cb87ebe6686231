"""Deletion of topics: mark the topic, delete the replicas, remove the nodes.

1. ``/admin/delete_topics/T`` is written. From then on the topic has no leaders, its name cannot be used,
   metadata caches drop it, and live brokers delete its logs.
2. A broker that is down deletes its logs after its return. The mark outlives controllers.
3. When every replica is confirmed as deleted, the nodes of the topic are removed, states first and the mark
   last, so that a controller that takes over in between goes on.
"""

from typing import Final

from sparklog.core.controller.commands.topic_commands import DoomedTopic, TopicResult
from sparklog.core.controller.state.image import (
    ClusterImage,
    DeletionStarted,
    PartitionNodesDeleted,
    TopicDeleted,
)
from sparklog.core.controller.state.znodes import (
    delete_topic_path,
    partition_path,
    partitions_path,
    schema_path,
    state_path,
    topic_config_path,
    topic_path,
)
from sparklog.core.controller.steps import Decision, PurgeTopic, StartDeletion
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID
from sparklog.model.zookeeper import Create, Delete, Operation

PURGE_PER_WRITE_MAX: Final = 250
"""Partitions whose nodes one write removes."""


def find_doomed(image: ClusterImage, doomed: DoomedTopic) -> TopicResult:
    """The topic that is meant, as a success, or the refusal."""
    if doomed.name is not None and doomed.id != NO_TOPIC_ID:
        message = f"topic {doomed.name!r} is named by an id too: give a name or an id"
        return TopicResult(doomed.name, ErrorCode.invalid_request, message, doomed.id)
    name = image.topic_names.get(doomed.id) if doomed.name is None else doomed.name
    if name is None:
        return TopicResult(
            "", ErrorCode.unknown_topic_id, "This server does not host this topic ID.", doomed.id
        )
    topic = image.topics.get(name)
    if topic is None:
        message = "This server does not host this topic-partition."
        return TopicResult(name, ErrorCode.unknown_topic_or_partition, message)
    return TopicResult(name, id=topic.id)


def decide_deletion(image: ClusterImage, step: StartDeletion) -> Decision | None:
    if step.topic not in image.topics or image.is_deleting(step.topic):
        return None
    return Decision(step, (Create(delete_topic_path(step.topic)),), (DeletionStarted(step.topic),))


def decide_purge(image: ClusterImage, step: PurgeTopic) -> Decision | None:
    """The next write of the purge; the last one also removes the topic itself."""
    deletion = image.deletions.get(step.topic)
    if deletion is None or not deletion.is_confirmed:
        return None
    topic = image.topics[step.topic]
    existing = [one for one in topic.topic_partitions() if image.state(one) is not None]
    batch = tuple(existing[:PURGE_PER_WRITE_MAX])
    operations: list[Operation] = []
    for partition in batch:
        operations += [Delete(state_path(*partition)), Delete(partition_path(*partition))]
    if len(batch) < len(existing):
        return Decision(step, tuple(operations), (PartitionNodesDeleted(batch),))
    if topic.schema:
        operations.append(Delete(schema_path(topic.id)))
    operations += [
        Delete(partitions_path(step.topic)),
        Delete(topic_path(step.topic)),
        Delete(topic_config_path(step.topic)),
        Delete(delete_topic_path(step.topic)),
    ]
    return Decision(step, tuple(operations), (PartitionNodesDeleted(batch), TopicDeleted(step.topic)))
