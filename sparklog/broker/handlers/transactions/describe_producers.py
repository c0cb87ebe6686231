"""DescribeProducers: the producers of partitions whose logs this broker has, with their open transactions.

A follower answers as well, of its own log: Kafka's tool asks one broker for all that it has.

It shows which producer holds back read-committed readers, and since which offset. An administrator aborts
such a transaction with the producer's epoch and coordinator epoch of this answer.
"""

from sparklog.broker.call import Call
from sparklog.broker.partition.partition import Partition
from sparklog.core.producers.producer_state import ProducerState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import ProducerId, TopicPartition, topic_name_problem
from sparklog.wire.messages.transactions.describe_producers import (
    ActiveProducer,
    DescribeProducersPartitionResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
)


def handle(call: Call, request: DescribeProducersRequest) -> None:
    topics = [
        DescribeProducersTopicResponse(
            name=topic.name,
            partitions=[
                _describe(call, TopicPartition(topic.name, number)) for number in topic.partition_indexes
            ],
        )
        for topic in request.topics
    ]
    call.reply(DescribeProducersResponse(topics=topics))


def _describe(call: Call, topic_partition: TopicPartition) -> DescribeProducersPartitionResponse:
    number, problem = topic_partition.partition, topic_name_problem(topic_partition.topic)
    if problem is not None:
        return _refused(number, ErrorCode.invalid_topic_exception, problem)
    partition = call.partition(topic_partition)
    if isinstance(partition, ErrorCode):
        return _refused(
            number, partition, f"broker {call.broker.broker_id} has no replica of {topic_partition}"
        )
    producers = _producers(partition)
    if producers is None:
        error = ErrorCode.kafka_storage_error if partition.is_offline else ErrorCode.not_leader_or_follower
        why = f"broker {call.broker.broker_id} neither leads nor follows {topic_partition}"
        return _refused(number, error, why)
    return DescribeProducersPartitionResponse(partition_index=number, active_producers=producers)


def _refused(number: int, error: ErrorCode, why: str) -> DescribeProducersPartitionResponse:
    return DescribeProducersPartitionResponse(partition_index=number, error_code=error, error_message=why)


def _producers(partition: Partition) -> list[ActiveProducer] | None:
    return partition.inspect(
        lambda log, _: [_active(producer_id, state) for producer_id, state in log.producers.producers.items()]
    )


def _active(producer_id: ProducerId, state: ProducerState) -> ActiveProducer:
    return ActiveProducer(
        producer_id=producer_id,
        producer_epoch=state.epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.batches[-1].timestamp_ms if state.batches else state.last_seen_ms,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=state.open_since,
    )
