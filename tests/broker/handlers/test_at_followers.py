"""What a follower answers of its own log, and what it leaves to the leader."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from sparklog.wire.messages.transactions.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from tests.broker.handlers.transactions.conftest import TransactionalProducer, Wire
from tests.waiting import until

NONE = ErrorCode.none
PLACE = TopicPartition("t", 0)
DEBUGGER, CONSUMER = -2, -1


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(brokers=2) as cluster:
        cluster.create_topic("t")
        yield cluster


@pytest.fixture
def wire(cluster):
    wire = Wire(cluster)
    yield wire
    wire.close()


@pytest.fixture
def follower(cluster, wire):
    """The id of the follower, which has a record of an open transaction."""
    producer = TransactionalProducer(wire)
    assert (producer.init(), producer.add(PLACE)) == (NONE, NONE)
    assert producer.send(PLACE, b"open").error_code is NONE
    broker_id = 3 - cluster.wait_for_leader(*PLACE)
    replica = cluster.brokers[broker_id].body.replicas.get(PLACE)
    until(lambda: replica.high_watermark == replica.log_end_offset > 0)
    yield broker_id
    assert producer.end(commits=False) is NONE


def listed(wire, broker_id, replica_id, timestamp, *, epoch=-1, version=8):
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    topics = [ListOffsetsTopic(name="t", partitions=[asked])]
    request = ListOffsetsRequest(replica_id=replica_id, topics=topics)
    return wire.call(broker_id, request, version).topics[0].partitions[0]


def test_a_follower_describes_the_producers_of_its_log(cluster, wire, follower):
    request = DescribeProducersRequest(topics=[DescribeProducersTopic(name="t", partition_indexes=[0])])
    of_leader, of_follower = (
        wire.call(broker_id, request).topics[0].partitions[0] for broker_id in (3 - follower, follower)
    )
    assert of_follower.error_code is NONE
    assert [one.current_txn_start_offset for one in of_follower.active_producers] != []
    assert of_follower == of_leader


@pytest.mark.parametrize(
    "timestamp", [LATEST_TIMESTAMP, EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP, MAX_TIMESTAMP, 0, 2**60]
)
def test_who_compares_replicas_is_told_the_offsets_of_a_follower(wire, follower, timestamp):
    found = listed(wire, follower, DEBUGGER, timestamp)
    assert found.error_code is NONE
    assert found == listed(wire, 3 - follower, DEBUGGER, timestamp)


def test_the_oldest_version_is_answered_there_too(wire, follower):
    found = listed(wire, follower, DEBUGGER, LATEST_TIMESTAMP, version=0)
    assert found.old_style_offsets == [listed(wire, 3 - follower, DEBUGGER, LATEST_TIMESTAMP).offset]


@pytest.mark.parametrize(
    ("epoch_off", "error"), [(1, "unknown_leader_epoch"), (0, "none")], ids=["of tomorrow", "the present one"]
)
def test_a_follower_compares_leader_epochs_as_its_leader_does(cluster, wire, follower, epoch_off, error):
    epoch = cluster.brokers[follower].body.replicas.get(PLACE).leader_epoch + epoch_off
    assert listed(wire, follower, DEBUGGER, LATEST_TIMESTAMP, epoch=epoch).error_code.name == error


@pytest.mark.parametrize("replica_id", [CONSUMER, 1, 2, -3])
def test_everybody_else_is_sent_to_the_leader(wire, follower, replica_id):
    found = listed(wire, follower, replica_id, LATEST_TIMESTAMP)
    assert (found.error_code, found.offset) == (ErrorCode.not_leader_or_follower, -1)


def test_a_replica_whose_disk_has_failed_says_so(cluster, wire, follower):
    partition = cluster.brokers[follower].body.replicas.get(PLACE)
    read, partition.log.max_timestamp = partition.log.max_timestamp, _fail
    try:
        found = listed(wire, follower, DEBUGGER, MAX_TIMESTAMP)
    finally:
        partition.log.max_timestamp = read
    assert found.error_code is ErrorCode.kafka_storage_error


def _fail():
    raise OSError(5, "Input/output error")
