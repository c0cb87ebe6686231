"""Transactions of a producer that sends each request by itself: commits, fences, refusals."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from sparklog.wire.messages.transactions.list_transactions import ListTransactionsRequest
from tests.broker.handlers.transactions.conftest import TransactionalProducer
from tests.waiting import until

NONE = ErrorCode.none
T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))


def committed(cluster, wire, topic_partition):
    """The values that a read-committed consumer gets from one partition, from its beginning."""
    return [
        record.value
        for record in cluster.consume(topic_partition.topic)
        if record.partition == topic_partition.partition
    ]


def described(producer):
    request = DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])
    broker_id = producer.wire.coordinator(producer.transactional_id)
    return producer.wire.call(broker_id, request).transaction_states[0]


# The life of a transaction


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "aborted"])
def test_a_transaction_is_seen_whole_or_not_at_all(cluster, wire, producer, commits):
    assert producer.add(T0, T1) is NONE
    values = [producer.transactional_id.encode() + number for number in (b"-0", b"-1")]
    assert producer.send(T0, values[0]).error_code is NONE
    assert producer.send(T1, values[1]).error_code is NONE
    assert producer.end(commits=commits) is NONE
    until(lambda: described(producer).transaction_state.startswith("Complete"))
    seen = set(committed(cluster, wire, T0)) | set(committed(cluster, wire, T1))
    assert set(values) & seen == (set(values) if commits else set())


def test_the_next_transaction_needs_its_partitions_again(producer):
    producer.add(T0)
    producer.send(T0, b"one")
    producer.end(commits=True)
    until(lambda: described(producer).transaction_state == "CompleteCommit")
    told = producer.send(T0, b"two", patient=False)
    assert told.error_code is ErrorCode.invalid_txn_state
    assert "AddPartitionsToTxn" in told.error_message
    assert producer.add(T0) is NONE
    assert producer.send(T0, b"two").error_code is NONE


def test_a_new_producer_of_the_id_ends_the_open_transaction_and_fences_the_old_one(wire, producer):
    producer.add(T0)
    producer.send(T0, b"lost")
    successor = TransactionalProducer(wire, producer.transactional_id)
    assert successor.init() is NONE
    assert successor.producer_id == producer.producer_id
    assert successor.producer_epoch > producer.producer_epoch
    assert producer.add(T0) is ErrorCode.producer_fenced
    assert producer.add(T0, version=1) is ErrorCode.invalid_producer_epoch
    assert producer.end(commits=True) is ErrorCode.producer_fenced
    assert producer.end(commits=True, version=1) is ErrorCode.invalid_producer_epoch
    assert producer.send(T0, b"zombie").error_code is ErrorCode.invalid_producer_epoch
    assert producer.send(T1, b"zombie").error_code is ErrorCode.invalid_producer_epoch


def test_a_transaction_that_is_open_for_too_long_is_aborted(cluster, wire):
    slow = TransactionalProducer(wire)
    slow.init(timeout_ms=100)
    slow.add(T2)
    slow.send(T2, b"too late")
    until(lambda: described(slow).transaction_state == "CompleteAbort")
    assert slow.end(commits=True) is ErrorCode.producer_fenced
    assert b"too late" not in committed(cluster, wire, T2)


def test_an_end_repeated_is_answered_again_and_another_end_is_refused(producer):
    producer.add(T0)
    assert producer.end(commits=True) is NONE
    assert producer.end(commits=True) is NONE
    assert producer.end(commits=False) is ErrorCode.invalid_txn_state


def test_a_transaction_is_described_and_listed_while_it_is_open(producer):
    producer.add(T0, T3)
    state = described(producer)
    assert (state.transaction_state, state.producer_id) == ("Ongoing", producer.producer_id)
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("t", [0, 3])]
    broker_id = producer.wire.coordinator(producer.transactional_id)
    request = ListTransactionsRequest(state_filters=["Ongoing", "Sleeping"])
    listed = producer.wire.call(broker_id, request)
    assert producer.transactional_id in {one.transactional_id for one in listed.transaction_states}
    assert listed.unknown_state_filters == ["Sleeping"]


# Offsets


def test_offsets_count_with_the_transaction(producer):
    assert producer.add_offsets("pipeline") is NONE
    assert producer.commit_offsets("pipeline", {T0: 5}) == {T0: NONE}
    assert producer.end(commits=True) is NONE


def test_offsets_of_a_group_that_was_not_added_are_refused(producer):
    assert producer.commit_offsets("elsewhere", {T0: 5}) == {T0: ErrorCode.invalid_txn_state}


def test_offsets_of_partitions_that_do_not_exist_are_refused_alone(producer):
    producer.add_offsets("pipeline")
    absent = TopicPartition("absent", 0)
    assert producer.commit_offsets("pipeline", {T0: 5, absent: 1}) == {
        T0: NONE,
        absent: ErrorCode.unknown_topic_or_partition,
    }


def test_offsets_of_a_member_that_nobody_knows_are_refused(producer):
    producer.add_offsets("pipeline")
    told = producer.commit_offsets("pipeline", {T0: 5}, generation_id=3, member_id="stranger")
    assert set(told.values()) <= {ErrorCode.illegal_generation, ErrorCode.unknown_member_id}
    assert len(told) == 1


# Refusals


def test_one_partition_that_does_not_exist_keeps_all_out(producer):
    assert producer.add(T0, TopicPartition("t", 9)) == {
        T0: ErrorCode.operation_not_attempted,
        TopicPartition("t", 9): ErrorCode.unknown_topic_or_partition,
    }
    assert producer.end(commits=True) is ErrorCode.invalid_txn_state


def test_a_batch_for_a_partition_that_was_not_added_is_refused_and_takes_no_offset(cluster, producer):
    producer.add(T0)
    partition = cluster.brokers[cluster.wait_for_leader(*T1)].body.replicas.get(T1)
    before = partition.log_end_offset
    assert producer.send(T1, b"stray", patient=False).error_code is ErrorCode.invalid_txn_state
    assert partition.log_end_offset == before


def test_a_plain_batch_inside_an_open_transaction_is_refused(producer):
    producer.add(T0)
    assert producer.send(T0, b"in it").error_code is NONE
    told = producer.send(T0, b"beside it", is_transactional=False, patient=False)
    assert told.error_code is ErrorCode.invalid_txn_state


def test_a_producer_id_that_the_transactional_id_does_not_have_is_refused(wire, producer):
    other = TransactionalProducer(wire, producer.transactional_id)
    other.producer_id, other.producer_epoch = producer.producer_id + 1_000_000, 0
    assert other.add(T0) is ErrorCode.invalid_producer_id_mapping
    assert other.end(commits=True) is ErrorCode.invalid_producer_id_mapping
    assert other.send(T0, b"x", patient=False).error_code is ErrorCode.invalid_producer_id_mapping


def test_an_id_that_nobody_initialised_has_no_transactions(wire):
    unknown = TransactionalProducer(wire)
    unknown.producer_id, unknown.producer_epoch = 1, 0
    assert unknown.add(T0) is ErrorCode.invalid_producer_id_mapping
    assert described(unknown).error_code is ErrorCode.transactional_id_not_found


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_its_bounds_is_refused(wire, timeout_ms):
    assert TransactionalProducer(wire).init(timeout_ms=timeout_ms) is ErrorCode.invalid_transaction_timeout


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_init_producer_id_gives_the_next_epoch(producer, version):
    before = producer.producer_epoch
    assert producer.init(version=version) is NONE
    assert producer.producer_epoch == before + 1


def test_a_producer_that_only_wants_a_new_epoch_keeps_its_id(producer):
    before = producer.producer_id, producer.producer_epoch
    assert producer.init(keeps_identity=True) is NONE
    assert (producer.producer_id, producer.producer_epoch) == (before[0], before[1] + 1)


# Topics that are made again under their name


@pytest.mark.bug(
    "B76",
    "records",
    "A transaction begins in a topic that was made again under its name, and gets no marker there.",
)
def test_a_batch_begins_no_transaction_in_a_topic_that_was_made_again_since(cluster, wire, producer):
    """It would hang there: the topic that has the name now gets no marker of that transaction."""
    name = "again"
    here, there = TopicPartition(name, 0), TopicPartition(name, 1)
    cluster.create_topic(name, partitions=2)
    assert producer.add(here, there) is NONE
    before = cluster.brokers[1].body.context.metadata.topic_id(name)
    cluster.admin.delete_topics([name])
    until(lambda: all(one.body.context.metadata.topic(name) is None for one in cluster.brokers.values()))
    cluster.create_topic(name, partitions=2)
    ids = [one.body.context.metadata.topic_id(name) for one in cluster.brokers.values()]
    assert len(set(ids)) == 1
    assert before not in ids
    assert {cluster.wait_for_leader(*place) for place in (here, there)} == {1, 2}
    for place in (here, there):
        assert producer.send(place, b"hangs").error_code is ErrorCode.invalid_txn_state
    assert producer.end(commits=False) is NONE
    assert producer.add(here) is NONE
    assert producer.send(here, b"counts").error_code is NONE
    assert producer.end(commits=True) is NONE
    assert [record.value for record in cluster.consume(name, at_least=1)] == [b"counts"]
