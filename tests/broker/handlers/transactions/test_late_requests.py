"""A request that was sent again over a newer connection changes nothing when it arrives: the old connection
is closed.
"""

import copy

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.discovery.find_coordinator import GROUP_KEY
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from sparklog.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.handlers.transactions.conftest import Wire
from tests.waiting import until

NONE = ErrorCode.none
T0 = TopicPartition("t", 0)


@pytest.fixture
def newer(cluster, wire):
    """Connections that are accepted after all of ``wire``."""
    for broker_id in cluster.brokers:
        wire.to(broker_id)
    newer = Wire(cluster)
    for broker_id in cluster.brokers:
        newer.to(broker_id)
    yield newer
    newer.close()


@pytest.fixture
def again(newer, producer):
    """The same producer, over newer connections."""
    again = copy.copy(producer)
    again.wire = newer
    return again


def state_of(producer):
    request = DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])
    broker_id = producer.wire.coordinator(producer.transactional_id)
    return producer.wire.call(broker_id, request).transaction_states[0].transaction_state


def test_a_late_end_does_not_end_the_next_transaction(producer, again):
    again.add(T0)
    assert again.end(commits=True) is NONE
    until(lambda: state_of(again) == "CompleteCommit")
    again.add(T0)
    with pytest.raises(ConnectionError):
        producer.end(commits=True)
    assert state_of(again) == "Ongoing"


def test_partitions_that_are_added_late_do_not_begin_a_transaction(producer, again):
    again.add(T0)
    again.end(commits=True)
    until(lambda: state_of(again) == "CompleteCommit")
    with pytest.raises(ConnectionError):
        producer.add(T0)
    assert state_of(again) == "CompleteCommit"


def test_a_late_marker_does_not_end_the_next_transaction_in_its_partition(cluster, wire, newer, again):
    again.add(T0)
    again.send(T0, b"one")
    marker = WritableTxnMarker(
        producer_id=again.producer_id,
        producer_epoch=again.producer_epoch,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        coordinator_epoch=0,
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    leader = cluster.wait_for_leader(*T0)
    (answered,) = newer.call(leader, request).markers
    assert answered.topics[0].partitions[0].error_code is NONE
    assert again.send(T0, b"two").error_code is NONE
    partition = cluster.brokers[leader].body.replicas.get(T0)
    end = partition.log_end_offset
    with pytest.raises(ConnectionError):
        wire.call(leader, request)
    assert partition.log_end_offset == end


def test_a_late_batch_is_not_appended_and_a_repeated_one_has_its_offset(producer, again):
    producer.sequences = again.sequences
    again.add(T0)
    first = again.send(T0, b"one")
    again.send(T0, b"two")
    again.sequences[T0] = 0
    repeated = again.send(T0, b"one")
    assert (repeated.error_code, repeated.base_offset) == (NONE, first.base_offset)
    producer.sequences[T0] = 2
    with pytest.raises(ConnectionError):
        producer.send(T0, b"late")


def test_late_offsets_do_not_replace_those_of_the_transaction(newer, producer, again):
    again.add_offsets("late-readers")
    assert again.commit_offsets("late-readers", {T0: 9}) == {T0: NONE}
    with pytest.raises(ConnectionError):
        producer.commit_offsets("late-readers", {T0: 5})
    again.end(commits=True)
    until(lambda: state_of(again) == "CompleteCommit")
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="late-readers", topics=None)])
    (group,) = newer.call(newer.coordinator("late-readers", GROUP_KEY), request).groups
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in group.topics] == [("t", 9)]


def test_a_new_epoch_may_come_over_the_older_connection(producer, again):
    again.add(T0)
    again.end(commits=True)
    assert producer.init() is NONE
    assert producer.add(T0) is NONE
    assert producer.end(commits=True) is NONE
