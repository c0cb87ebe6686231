"""LeaderAndIsr: the partitions that this broker leads and those that it follows, from the controller."""

import logging
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.handlers.from_controller import judge
from sparklog.broker.metadata.metadata_cache import broker_ids
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_LEADER, BrokerId, LeaderEpoch, TopicPartition, topic_name_problem
from sparklog.wire.messages.control.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)

logger: Final = logging.getLogger(__name__)

FULL = 1
"""The type of a request that names everything that this broker hosts."""


def handle(call: Call, request: LeaderAndIsrRequest) -> None:
    error = judge(call, request.controller_epoch, request.broker_epoch)
    if error is None:
        return
    if error is not ErrorCode.none:
        call.reply(LeaderAndIsrResponse(error_code=error))
        return
    with call.broker.roles.together():
        topics = [_topic(call, topic) for topic in request.topic_states]
    if any(topic.schema_version for topic in request.topic_states):
        call.broker.columns.look()
    if request.type_ == FULL:
        _let_go_of_what_was_moved_away(call, request)
    call.reply(LeaderAndIsrResponse(topics=topics))


def _let_go_of_what_was_moved_away(call: Call, request: LeaderAndIsrRequest) -> None:
    """Delete replicas that were reassigned to other brokers while this broker was down.

    The metadata arrived before, over the same channel. A partition that the metadata lacks is kept. Either
    its topic is being deleted, and StopReplica follows; or it was deleted while the log's directory was
    offline, which cannot be distinguished from a ZooKeeper that lost the topic.
    """
    hosted = {
        TopicPartition(topic.topic_name, state.partition_index)
        for topic in request.topic_states
        for state in topic.partition_states
    }
    replicas, metadata = call.broker.replicas, call.broker.metadata
    for partition in replicas.partitions():
        topic_partition = partition.topic_partition
        if topic_partition in hosted:
            continue
        state = metadata.partition(topic_partition)
        if state is None:
            logger.warning(
                "%s: the controller names no such partition; %s is kept until it has it deleted, or until "
                "another topic has that name",
                topic_partition,
                partition.log.directory,
            )
            continue
        if call.broker.broker_id in state.replicas:
            continue
        if metadata.topic_id(topic_partition.topic) == partition.topic_id:
            logger.warning("%s was moved to brokers %s: deleting it here", topic_partition, state.replicas)
            call.broker.roles.stop_replica(topic_partition, state.leader_epoch, delete=True)


def _topic(call: Call, topic: LeaderAndIsrTopicState) -> LeaderAndIsrTopicError:
    return LeaderAndIsrTopicError(
        topic_id=topic.topic_id,
        partition_errors=[_role(call, topic, state) for state in topic.partition_states],
    )


def _role(
    call: Call, topic: LeaderAndIsrTopicState, state: LeaderAndIsrPartitionState
) -> LeaderAndIsrPartitionError:
    """Take up the role. Without a leader, report the end of the log, which the controller compares.

    Topic and partition name a directory, so nothing is made for a name that no topic can have.
    """
    topic_partition = TopicPartition(topic.topic_name, state.partition_index)
    answer = LeaderAndIsrPartitionError(partition_index=state.partition_index)
    if topic_name_problem(topic.topic_name) is not None or state.partition_index < 0:
        answer.error_code = ErrorCode.invalid_topic_exception
        return answer
    answer.error_code = call.broker.roles.become(
        topic_partition,
        topic.topic_id,
        _state(state),
        topic.configs,
        is_new=state.is_new,
        schema_version=topic.schema_version,
    )
    partition = call.broker.replicas.get(topic_partition)
    if partition is not None and partition.topic_id == topic.topic_id and state.leader == NO_LEADER:
        answer.last_epoch, answer.log_end_offset = partition.end_without_leader(state.leader_epoch)
    return answer


def _state(state: LeaderAndIsrPartitionState) -> PartitionState:
    return PartitionState(
        leader=BrokerId(state.leader),
        leader_epoch=LeaderEpoch(state.leader_epoch),
        isr=broker_ids(state.isr),
        replicas=broker_ids(state.replicas),
        partition_epoch=state.partition_epoch,
        adding=broker_ids(state.adding_replicas),
        removing=broker_ids(state.removing_replicas),
        min_insync_replicas=state.min_insync_replicas,
        lost_in_epoch=LeaderEpoch(state.lost_in_epoch),
        store_given_up_in_epoch=LeaderEpoch(state.store_given_up_in_epoch),
    )
