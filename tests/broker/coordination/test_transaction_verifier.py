"""A verification asks the coordinator, in memory or over the wire, and answers in the words of a produce."""

import pytest

from sparklog.broker.coordination.transaction_verifier import TransactionVerifier
from sparklog.core.coordinator.key_partition import partition_of
from sparklog.core.transaction_coordinator.requests import VerifyPartitions
from sparklog.core.transaction_coordinator.responses import PartitionAnswers
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tests.broker.coordination.transaction_shell import A0, A1, Shell

HERE, ELSEWHERE = 1, 2
NONE = ErrorCode.none
TO = f"transaction-verifications-to-{ELSEWHERE}"


class Verifier(Shell):
    def __init__(self, clock):
        super().__init__(clock)
        self.here = []
        self.errors_here = {}
        self.verifier = TransactionVerifier(HERE, self.metadata, self, self.ports, self.calls())

    def submit(self, topic, request, reply):
        """The coordinators of this broker."""
        self.here.append(request)
        reply(PartitionAnswers(dict.fromkeys(request.topic_partitions, NONE) | self.errors_here))

    def coordinates(self, broker_id, partitions=4):
        for number in range(partitions):
            self.leads(TopicPartition("__transaction_state", number), broker_id)

    def ask(self, *topic_partitions, transactional_id="x", producer_id=7):
        answers = []
        request = VerifyPartitions(transactional_id, producer_id, 0, topic_partitions)
        self.verifier.verify(request, answers.append)
        return answers

    def asked_over_the_wire(self):
        call = self.loops.call(TO)
        return [(one.transactional_id, one.producer_id) for one in call.message.transactions]

    def answers(self, *results, error=NONE):
        self.loops.answer(
            TO,
            AddPartitionsToTxnResponse(
                error_code=error,
                results_by_transaction=[
                    AddPartitionsToTxnResult(
                        transactional_id=transactional_id,
                        topic_results=[
                            AddPartitionsToTxnTopicResult(
                                name=place.topic,
                                results_by_partition=[
                                    AddPartitionsToTxnPartitionResult(
                                        partition_index=place.partition, partition_error_code=code
                                    )
                                ],
                            )
                            for place, code in errors.items()
                        ],
                    )
                    for transactional_id, errors in results
                ],
            ),
        )


@pytest.fixture
def verifier(clock):
    return Verifier(clock)


def test_a_coordinator_on_this_broker_is_asked_in_memory(verifier):
    verifier.coordinates(HERE)
    assert verifier.ask(A0, A1) == [{A0: NONE, A1: NONE}]
    assert verifier.loops.loops == {}


def test_a_coordinator_elsewhere_is_asked_about_all_that_waits_in_one_request(verifier):
    verifier.coordinates(ELSEWHERE)
    first = verifier.ask(A0)
    assert verifier.asked_over_the_wire() == [("x", 7)]
    second, third = verifier.ask(A1, transactional_id="y"), verifier.ask(A1, producer_id=8)
    verifier.answers(("x", {A0: NONE}))
    assert first == [{A0: NONE}]
    assert verifier.asked_over_the_wire() == [("y", 7), ("x", 8)]
    verifier.answers(("y", {A1: NONE}), ("x", {A1: ErrorCode.invalid_producer_id_mapping}))
    assert second == [{A1: NONE}]
    assert third == [{A1: ErrorCode.invalid_producer_id_mapping}]


def test_only_partitions_of_their_own_are_confirmed(verifier):
    """An answer that lacks a partition, or names another, confirms nothing."""
    verifier.coordinates(ELSEWHERE)
    answers = verifier.ask(A0)
    verifier.loops.call(TO)
    verifier.answers(("x", {A1: NONE}))
    assert answers == [{A0: ErrorCode.not_enough_replicas}]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.concurrent_transactions, ErrorCode.not_enough_replicas),
        (ErrorCode.coordinator_load_in_progress, ErrorCode.not_enough_replicas),
        (ErrorCode.not_coordinator, ErrorCode.not_enough_replicas),
        (ErrorCode.invalid_txn_state, ErrorCode.invalid_txn_state),
        (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch),
        (ErrorCode.invalid_producer_id_mapping, ErrorCode.invalid_producer_id_mapping),
    ],
    ids=lambda error: error.name,
)
def test_errors_are_told_in_the_words_of_a_produce(verifier, error, told):
    verifier.coordinates(HERE)
    verifier.errors_here = {A0: error}
    assert verifier.ask(A0, A1) == [{A0: told, A1: NONE}]


def test_while_the_coordinator_is_away_producers_are_to_send_again(verifier):
    assert verifier.ask(A0) == [{A0: ErrorCode.not_enough_replicas}]
    verifier.coordinates(-1)
    assert verifier.ask(A0) == [{A0: ErrorCode.not_enough_replicas}]


def test_a_coordinator_that_cannot_be_reached_lets_producers_send_again(verifier):
    verifier.coordinates(ELSEWHERE)
    answers = verifier.ask(A0)
    verifier.loops.call(TO)
    verifier.loops.answer(TO, error=TimeoutError("silent"))
    assert answers == [{A0: ErrorCode.not_enough_replicas}]


def test_an_answer_that_does_not_fit_the_question_confirms_nothing(verifier):
    verifier.coordinates(ELSEWHERE)
    answers = verifier.ask(A0)
    verifier.loops.call(TO)
    verifier.answers()
    assert answers == [{A0: ErrorCode.not_enough_replicas}]


def test_the_id_s_partition_says_which_broker_coordinates(verifier):
    verifier.coordinates(ELSEWHERE)
    verifier.leads(TopicPartition("__transaction_state", partition_of("x", 4)), HERE)
    assert verifier.ask(A0) == [{A0: NONE}]
    assert [request.transactional_id for request in verifier.here] == ["x"]
