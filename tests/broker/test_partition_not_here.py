"""A partition that this broker does not have, and the ends of leader epochs, as requests over a socket."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from sparklog.wire.messages.data.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic

pytestmark = pytest.mark.integration

LAST_FETCH_BY_NAME = 12


def produce(broker, topic):
    asked = ProduceTopic(name=topic, partition_data=[ProducePartition(index=0, records=b"")])
    return broker.call(ProduceRequest(topic_data=[asked])).responses[0].partition_responses[0]


def fetch(broker, topic):
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic=topic, partitions=[partition])])
    return broker.call(request, LAST_FETCH_BY_NAME).responses[0].partitions[0]


def list_offsets(broker, topic):
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    return broker.call(ListOffsetsRequest(topics=[asked])).topics[0].partitions[0]


def delete_records(broker, topic):
    partition = DeleteRecordsPartition(partition_index=0, offset=0)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=1_000
    )
    return broker.call(request).topics[0].partitions[0]


def epoch_end(broker, topic="quakes", leader_epoch=0, current_leader_epoch=-1):
    partition = OffsetForLeaderPartition(
        partition=0, leader_epoch=leader_epoch, current_leader_epoch=current_leader_epoch
    )
    topics = [OffsetForLeaderTopic(topic=topic, partitions=[partition])]
    return broker.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)).topics[0].partitions[0]


@pytest.mark.parametrize("ask", [produce, fetch, list_offsets, delete_records, epoch_end])
def test_a_partition_that_another_broker_has_is_told_from_one_that_nobody_has(broker, ask) -> None:
    assert ask(broker, "quakes").error_code is ErrorCode.not_leader_or_follower  # no metadata yet
    broker.publish()
    assert ask(broker, "quakes").error_code is ErrorCode.not_leader_or_follower
    assert ask(broker, "nobody-has-it").error_code is ErrorCode.unknown_topic_or_partition


def test_an_epoch_ends_where_the_next_begins_and_the_last_at_the_end_of_the_log(broker) -> None:
    broker.lead(leader_epoch=3)
    broker.produce(b"a", b"b")
    broker.lead(leader_epoch=5)
    broker.produce(b"c")
    answers = [epoch_end(broker, leader_epoch=epoch) for epoch in (2, 3, 4, 5, 6)]
    assert [(answer.leader_epoch, answer.end_offset) for answer in answers] == [
        (2, 0),  # none below the first epoch: its start (KIP-279)
        (3, 2),
        (3, 2),
        (5, 3),
        (-1, -1),
    ]


def test_the_end_of_an_epoch_is_told_only_to_who_knows_the_current_epoch(broker) -> None:
    broker.lead(leader_epoch=3)
    assert (
        epoch_end(broker, leader_epoch=3, current_leader_epoch=2).error_code is ErrorCode.fenced_leader_epoch
    )
    assert (
        epoch_end(broker, leader_epoch=3, current_leader_epoch=4).error_code is ErrorCode.unknown_leader_epoch
    )
