"""Kafka's table of request and state, row by row, and what a coordinator's successor makes of the log."""

import uuid
from dataclasses import replace

import pytest

from sparklog.core.coordinator.actions import InDoubt, Refused, Written
from sparklog.core.producers.latest_connections import LATE
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.transaction_coordinator.requests import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducerId,
    ListTransactions,
    MarkersWritten,
    ProducerIdentity,
    VerifyPartitions,
)
from sparklog.core.transaction_coordinator.settings import TransactionSettings
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID
from tests.core.transaction_coordinator.dialogue import BILLS, ID, ORDERS, TIMEOUT_MS, Dialogue

COMMIT, ABORT = True, False
ENDS = {"committed": COMMIT, "aborted": ABORT}


def ended(is_commit):
    """A dialogue whose only transaction has ended, and its producer."""
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    assert dialogue.end(producer, is_commit) == "none"
    return dialogue, producer


# Initialisation


def test_a_transactional_id_keeps_its_producer_id_and_gets_the_next_epoch():
    dialogue = Dialogue()
    assert dialogue.producer() == ProducerIdentity(101, 0)
    assert dialogue.producer() == ProducerIdentity(101, 1)
    assert dialogue.successor().producer() == ProducerIdentity(101, 2)


@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001])
def test_a_timeout_beyond_its_bounds_is_refused(timeout_ms):
    assert Dialogue().init(timeout_ms).error is ErrorCode.invalid_transaction_timeout


def test_used_up_epochs_bring_another_producer_id():
    dialogue = Dialogue()
    for epoch in range(32_767):
        last = dialogue.producer()
        assert last.producer_epoch == epoch
    assert dialogue.producer() == ProducerIdentity(102, 0)
    assert dialogue.add(last) == "invalid_producer_id_mapping"


def test_an_open_transaction_is_fenced_and_aborted_before_the_id_is_initialised():
    dialogue = Dialogue()
    zombie = dialogue.producer()
    dialogue.add(zombie)
    assert dialogue.init().error is ErrorCode.concurrent_transactions
    [marker] = dialogue.markers
    assert (marker.is_commit, marker.producer_epoch) == (False, 1)
    assert dialogue.init().error is ErrorCode.concurrent_transactions  # the markers are still on their way
    assert dialogue.commit(zombie) == "producer_fenced"
    assert dialogue.add(zombie) == "producer_fenced"
    dialogue.write_markers()
    assert dialogue.producer() == ProducerIdentity(101, 2)


@pytest.mark.parametrize("is_commit", ENDS.values(), ids=ENDS)
def test_while_an_end_is_under_way_the_id_cannot_be_initialised(is_commit):
    dialogue, _ = ended(is_commit)
    assert dialogue.init().error is ErrorCode.concurrent_transactions
    dialogue.write_markers()
    assert dialogue.init().error is ErrorCode.none


# A producer that asks for its own next epoch (KIP-360)


def test_a_producer_gets_its_next_epoch_and_the_same_again_if_it_asks_twice():
    dialogue = Dialogue()
    producer = dialogue.producer()
    for _ in range(2):
        answer = dialogue.init(expected=producer)
        assert (answer.producer_id, answer.producer_epoch) == (101, 1)
    repeated = dialogue.successor().init(expected=producer)  # the successor knows the epoch before, too
    assert repeated.producer_epoch == 1


def test_a_replaced_producer_gets_no_epoch():
    dialogue = Dialogue()
    zombie = dialogue.producer()
    dialogue.producer()
    assert dialogue.init(expected=zombie).error is ErrorCode.producer_fenced
    other = ProducerIdentity(7, zombie.producer_epoch)
    assert dialogue.init(expected=other).error is ErrorCode.producer_fenced


def test_a_replaced_producer_does_not_abort_its_successor_s_transaction():
    dialogue = Dialogue()
    zombie = dialogue.producer()
    dialogue.add(dialogue.producer())
    assert dialogue.init(expected=zombie).error is ErrorCode.producer_fenced
    assert dialogue.state == "Ongoing"


def test_a_producer_with_the_last_epoch_gets_another_id_once_also_if_it_asks_twice():
    dialogue = Dialogue()
    for _ in range(32_767):
        last = dialogue.producer()
    for _ in range(2):
        answer = dialogue.init(expected=last)
        assert (answer.producer_id, answer.producer_epoch) == (102, 0)


# After an election that may have lost records: epochs that nobody remembers may have been given


def lost_epoch():
    """A dialogue whose log will lose that the id's producer got epoch 1; and what it had before and then."""
    dialogue = Dialogue()
    return dialogue, dialogue.producer(), dialogue.producer()


def test_an_epoch_that_the_log_may_have_lost_is_not_given_again():
    dialogue, _, unknown = lost_epoch()
    successor = dialogue.successor_after_loss(lost=1)
    assert successor.producer() == ProducerIdentity(102, 0)
    assert successor.add(unknown) == "invalid_producer_id_mapping"
    assert successor.producer() == ProducerIdentity(102, 1), "this id is younger than the loss"


def test_each_later_coordinator_knows_of_the_loss_until_the_id_has_another_producer():
    dialogue, *_ = lost_epoch()
    first = dialogue.successor_after_loss(lost=1)
    second = dialogue.successor_after_loss(lost=1, since=first.log[1:])
    assert second.producer() == ProducerIdentity(102, 0)
    third = dialogue.successor_after_loss(lost=1, since=second.log[1:])
    assert third.producer() == ProducerIdentity(102, 1)


def test_a_transaction_that_was_open_at_a_loss_is_aborted_and_its_producer_id_given_up():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    successor = dialogue.successor_after_loss(lost=0)
    assert successor.init().error is ErrorCode.concurrent_transactions
    successor.write_markers()
    assert successor.producer() == ProducerIdentity(102, 0)


def test_a_producer_gets_another_id_once_after_a_loss_also_if_it_asks_twice():
    dialogue, known, _ = lost_epoch()
    successor = dialogue.successor_after_loss(lost=1)
    for _ in range(2):
        answer = successor.init(expected=known)
        assert (answer.producer_id, answer.producer_epoch) == (102, 0)
    successor.producer()
    assert successor.init(expected=known).error is ErrorCode.producer_fenced


# Partitions


def test_partitions_are_added_once_and_only_new_ones_are_written():
    dialogue = Dialogue()
    producer = dialogue.producer()
    assert dialogue.add(producer, ORDERS) == "none"
    records = len(dialogue.log)
    assert dialogue.add(producer, ORDERS) == "none"
    assert len(dialogue.log) == records
    assert dialogue.add(producer, BILLS) == "none"
    assert dialogue.machine.values[ID].topics == (BILLS, ORDERS)


def test_of_a_topic_that_was_made_again_only_the_new_one_is_in_the_transaction():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer, ORDERS)
    again = TransactionTopic("orders", uuid.UUID(int=9), (1,))
    assert dialogue.add(producer, again) == "none"
    assert dialogue.machine.values[ID].topics == (again,)


@pytest.mark.bug("B76")
def test_a_topic_that_was_made_again_under_its_name_is_not_verified():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer, ORDERS)
    assert dialogue.verify(producer, 0, topic_id=ORDERS.topic_id) == ["none"]
    assert dialogue.verify(producer, 0, topic_id=NO_TOPIC_ID) == ["none"]
    assert dialogue.verify(producer, 0, topic_id=uuid.UUID(int=9)) == ["invalid_txn_state"]


def test_a_transaction_is_verified_for_its_partitions_alone():
    dialogue = Dialogue()
    producer = dialogue.producer()
    assert dialogue.verify(producer, 0) == ["invalid_txn_state"]
    dialogue.add(producer, ORDERS)
    assert dialogue.verify(producer, 0, 5) == ["none", "invalid_txn_state"]
    zombie = ProducerIdentity(101, -1)
    assert dialogue.verify(zombie, 0) == ["producer_fenced"]
    dialogue.commit(producer)
    assert dialogue.verify(producer, 0) == ["concurrent_transactions"]
    dialogue.write_markers()
    assert dialogue.verify(producer, 0) == ["invalid_txn_state"]


@pytest.mark.parametrize("is_commit", ENDS.values(), ids=ENDS)
def test_the_next_transaction_begins_after_the_end_of_the_one_before(is_commit):
    dialogue, producer = ended(is_commit)
    assert dialogue.add(producer) == "concurrent_transactions"
    dialogue.write_markers()
    assert dialogue.add(producer) == "none"
    assert dialogue.state == "Ongoing"


# Ends


def test_nothing_cannot_be_ended():
    dialogue = Dialogue()
    producer = dialogue.producer()
    assert dialogue.commit(producer) == dialogue.abort(producer) == "invalid_txn_state"


@pytest.mark.parametrize("is_commit", ENDS.values(), ids=ENDS)
def test_an_end_repeated_is_answered_as_before_and_the_other_end_is_refused(is_commit):
    dialogue, producer = ended(is_commit)
    assert dialogue.end(producer, is_commit) == "concurrent_transactions"
    assert dialogue.end(producer, not is_commit) == "invalid_txn_state"
    dialogue.write_markers()
    assert dialogue.end(producer, is_commit) == "none"
    assert dialogue.end(producer, not is_commit) == "invalid_txn_state"


@pytest.mark.parametrize("is_commit", ENDS.values(), ids=ENDS)
def test_markers_go_to_the_partitions_of_the_transaction(is_commit):
    dialogue, _producer = ended(is_commit)
    [sent] = dialogue.markers
    assert (sent.producer_id, sent.producer_epoch, sent.is_commit) == (101, 0, is_commit)
    assert sent.topics == (ORDERS,)


def test_markers_of_another_end_complete_nothing():
    dialogue, _producer = ended(COMMIT)
    for late in (
        MarkersWritten(ID, 101, 0, is_commit=False),
        MarkersWritten(ID, 101, 7, is_commit=True),
        MarkersWritten(ID, 9, 0, is_commit=True),
    ):
        assert dialogue.ask(late).error is ErrorCode.none
        assert dialogue.state == "PrepareCommit"


# Who may do nothing


def test_an_end_that_was_sent_again_does_not_end_the_next_transaction():
    """The first of two EndTxn comes late, over the connection that its client has given up."""
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    end = EndTransaction(ID, producer.producer_id, producer.producer_epoch, True, connection=5)
    assert dialogue.ask(end).error is ErrorCode.none
    dialogue.write_markers()
    dialogue.add(producer)
    assert dialogue.ask(replace(end, connection=4)) is LATE
    assert dialogue.state == "Ongoing"
    assert dialogue.ask(end).error is ErrorCode.none


def test_a_stranger_has_no_mapping_and_an_older_epoch_is_fenced():
    dialogue = Dialogue()
    zombie = dialogue.producer()
    dialogue.producer()
    stranger = ProducerIdentity(7, 0)
    assert dialogue.add(stranger) == dialogue.commit(stranger) == "invalid_producer_id_mapping"
    assert dialogue.add(zombie) == dialogue.commit(zombie) == "producer_fenced"
    assert dialogue.add(ProducerIdentity(101, 2)) == "producer_fenced"


def test_an_unknown_id_has_no_mapping_and_is_not_found():
    dialogue = Dialogue()
    assert dialogue.add(ProducerIdentity(1, 0)) == "invalid_producer_id_mapping"
    described = dialogue.ask(DescribeTransaction(ID))
    assert described.error is ErrorCode.transactional_id_not_found


@pytest.mark.parametrize(
    "request_",
    [
        InitProducerId("", TIMEOUT_MS),
        AddPartitions("", 1, 0, (ORDERS,)),
        EndTransaction("", 1, 0, COMMIT),
        DescribeTransaction(""),
    ],
    ids=lambda request: type(request).__name__,
)
def test_an_empty_id_is_invalid(request_):
    assert request_.invalid().error is ErrorCode.invalid_request
    assert request_.while_loading().error is ErrorCode.coordinator_load_in_progress


def test_an_empty_id_has_no_verified_partitions():
    invalid = VerifyPartitions("", 1, 0, tuple(ORDERS.topic_partitions)).invalid()
    assert set(invalid.errors.values()) == {ErrorCode.invalid_request}


# Writes


def test_nothing_is_answered_and_no_marker_leaves_before_the_decision_is_committed():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    dialogue.takes = False
    assert dialogue.commit(producer) is None
    assert dialogue.markers == []
    dialogue.become(dialogue.writes.pop())
    assert [answer.error for answer in dialogue.answers.values()][-1] is ErrorCode.none
    assert len(dialogue.markers) == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
        (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
        (ErrorCode.message_too_large, ErrorCode.unknown_server_error),
    ],
)
def test_a_refused_write_changes_nothing(error, told):
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.takes = False
    dialogue.add(producer)
    dialogue.become(dialogue.writes.pop(), Refused(error))
    assert list(dialogue.answers.values())[-1].error is told
    assert dialogue.state == "Empty"


def test_a_decision_in_doubt_is_an_error_and_is_carried_out_once_it_is_committed():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    dialogue.takes = False
    dialogue.commit(producer)
    [write] = dialogue.writes
    dialogue.become(write, InDoubt(ErrorCode.request_timed_out))
    assert list(dialogue.answers.values())[-1].error is ErrorCode.coordinator_not_available
    assert dialogue.markers == []
    dialogue.become(write, Written())
    assert [sent.is_commit for sent in dialogue.markers] == [True]


def test_a_resigning_coordinator_answers_who_waits():
    dialogue = Dialogue(takes=False)
    dialogue.init()
    [reply] = dialogue.machine.on_resigned()
    assert reply.response.error is ErrorCode.not_coordinator


# The next coordinator


@pytest.mark.parametrize("is_commit", ENDS.values(), ids=ENDS)
def test_the_next_coordinator_finishes_what_was_decided(is_commit):
    dialogue, producer = ended(is_commit)
    successor = dialogue.successor()
    assert [sent.is_commit for sent in successor.markers] == [is_commit]
    successor.write_markers()
    assert successor.end(producer, is_commit) == "none"


def test_the_next_coordinator_has_nothing_to_finish_of_what_is_complete():
    dialogue, _ = ended(COMMIT)
    dialogue.write_markers()
    assert dialogue.successor().markers == []


def test_the_next_coordinator_counts_the_time_of_an_open_transaction_from_its_beginning():
    dialogue = Dialogue()
    dialogue.add(dialogue.producer())
    dialogue.pass_time(TIMEOUT_MS - 1_000)
    successor = dialogue.successor()
    assert successor.machine.next_deadline_ms() == TIMEOUT_MS
    successor.pass_time(1_000)
    assert successor.state == "PrepareAbort"


# Time


def test_a_transaction_that_is_too_old_is_aborted_in_an_epoch_that_nobody_has():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    dialogue.pass_time(TIMEOUT_MS - 1)
    assert dialogue.state == "Ongoing"
    dialogue.pass_time(1)
    [marker] = dialogue.markers
    assert (marker.is_commit, marker.producer_epoch) == (False, 1)
    assert dialogue.commit(producer) == "producer_fenced"
    assert dialogue.machine.counts()["timed_out"] == 1


def test_adding_partitions_does_not_prolong_a_transaction():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer, ORDERS)
    dialogue.pass_time(TIMEOUT_MS - 1)
    dialogue.add(producer, BILLS)
    dialogue.pass_time(1)
    assert dialogue.state == "PrepareAbort"


def test_an_abort_that_the_log_refuses_is_tried_again_with_the_same_epoch():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    dialogue.takes = False
    dialogue.pass_time(TIMEOUT_MS)
    dialogue.become(dialogue.writes.pop(), Refused(ErrorCode.not_enough_replicas))
    assert dialogue.state == "Ongoing"
    dialogue.pass_time(1_000)
    [again] = dialogue.writes
    assert again.records[0].value.producer_epoch == producer.producer_epoch + 1


def test_a_timeout_leaves_an_end_alone_that_is_being_written():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    dialogue.takes = False
    dialogue.commit(producer)
    dialogue.pass_time(TIMEOUT_MS)
    assert len(dialogue.writes) == 1
    dialogue.become(dialogue.writes[0])
    assert dialogue.state == "PrepareCommit"


def test_ids_expire_when_nothing_was_open_for_long():
    dialogue = Dialogue(TransactionSettings(id_expiration_ms=100_000, expiration_check_interval_ms=10_000))
    dialogue.producer()
    dialogue.pass_time(99_999)
    assert ID in dialogue.machine.values
    dialogue.pass_time(10_000)
    assert ID not in dialogue.machine.values
    assert dialogue.log[-1].value is None
    assert dialogue.successor().machine.values == {}


def test_an_open_or_ending_transaction_does_not_expire():
    dialogue = Dialogue(TransactionSettings(id_expiration_ms=1_000, expiration_check_interval_ms=1_000))
    producer = dialogue.producer()
    dialogue.add(producer)
    dialogue.pass_time(5_000)
    assert dialogue.state == "Ongoing"
    dialogue.commit(producer)
    dialogue.pass_time(5_000)
    assert dialogue.state == "PrepareCommit"


# Looking


def test_transactions_are_described_and_listed_by_state_and_producer():
    dialogue = Dialogue()
    producer = dialogue.producer()
    dialogue.add(producer)
    described = dialogue.ask(DescribeTransaction(ID))
    assert described.value.topics == (ORDERS,)
    assert described.value.start_ms > 0

    def listed(**filters):
        return [name for name, _ in dialogue.ask(ListTransactions(**filters)).transactions]

    assert listed() == [ID]
    assert listed(states=frozenset({TransactionState.ONGOING})) == [ID]
    assert listed(states=frozenset({TransactionState.EMPTY})) == []
    assert listed(producer_ids=frozenset({101})) == [ID]
    assert listed(producer_ids=frozenset({7})) == []
