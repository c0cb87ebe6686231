"""Requests with the longest time-out that the protocol has room for are served like any other."""

import pytest

from sparklog.broker.call import TIMEOUT_MAX_MS, bounded_timeout_ms
from sparklog.model.errors import ErrorCode
from sparklog.network.dialing.connection import Connection
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.admin.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sparklog.wire.messages.admin.create_topics import CreatableTopic, CreateTopicsRequest
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest
from sparklog.wire.messages.admin.elect_leaders import ElectLeadersRequest, ElectLeadersTopicPartitions
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic

LONGEST_MS = 2**31 - 1


@pytest.mark.parametrize(
    ("asked_ms", "waited_ms"),
    [(-1, 0), (0, 0), (1, 1), (TIMEOUT_MAX_MS, TIMEOUT_MAX_MS), (LONGEST_MS, TIMEOUT_MAX_MS)],
)
def test_a_client_s_time_out_is_bounded_by_an_hour(asked_ms: int, waited_ms: int) -> None:
    assert bounded_timeout_ms(asked_ms) == waited_ms


@pytest.fixture(scope="module")
def call():
    with InProcessCluster(brokers=1) as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        connection = Connection.open(host, int(port), client_id="test", timeout_ms=30_000)
        yield lambda message, version=None: connection.call(message, version=version, timeout_ms=30_000)
        connection.close()


def create(call, topic: str) -> None:
    asked = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    created = call(CreateTopicsRequest(topics=[asked], timeout_ms=LONGEST_MS)).topics[0]
    assert created.error_code is ErrorCode.none, created.error_message


@pytest.mark.integration
def test_administrators_may_name_the_longest_time_out(call) -> None:
    create(call, "administered")
    more = CreatePartitionsTopic(name="administered", count=2)
    answer = call(CreatePartitionsRequest(topics=[more], timeout_ms=LONGEST_MS)).results[0]
    assert answer.error_code is ErrorCode.none
    election = ElectLeadersTopicPartitions(topic="administered", partitions=[0])
    elected = call(ElectLeadersRequest(topic_partitions=[election], timeout_ms=LONGEST_MS))
    outcome = elected.replica_election_results[0].partition_result[0].error_code
    assert outcome is ErrorCode.election_not_needed
    deleted = call(DeleteTopicsRequest(topic_names=["administered"], timeout_ms=LONGEST_MS), 5).responses[0]
    assert deleted.error_code is ErrorCode.none


@pytest.mark.integration
def test_writers_and_readers_may_name_the_longest_time_out(call) -> None:
    create(call, "data")
    batch = build_records_batch([Record(value=b"a"), Record(value=b"b")], now_ms=1)
    data = ProduceTopic(name="data", partition_data=[ProducePartition(index=0, records=batch)])
    produced = call(ProduceRequest(acks=-1, topic_data=[data], timeout_ms=LONGEST_MS))
    assert produced.responses[0].partition_responses[0].error_code is ErrorCode.none
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(max_wait_ms=LONGEST_MS, topics=[FetchTopic(topic="data", partitions=[wanted])])
    assert call(fetch, 12).responses[0].partitions[0].high_watermark == 2
    start = DeleteRecordsPartition(partition_index=0, offset=1)
    topics = [DeleteRecordsTopic(name="data", partitions=[start])]
    deleted = call(DeleteRecordsRequest(topics=topics, timeout_ms=LONGEST_MS)).topics[0].partitions[0]
    assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.none, 1)
