"""Open writes as administrators of Kafka see transactions."""

import pytest

from sparklog.core.coordinator.actions import Token, Written
from sparklog.core.transaction_coordinator.requests import (
    DescribeTransaction,
    InitProducerId,
    ListTransactions,
    MarkersWritten,
)
from sparklog.core.transaction_coordinator.settings import TransactionSettings
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.core.transaction_coordinator.transaction_machine import TransactionMachine
from sparklog.core.write_coordinator.transaction_state_machine import TransactionStateMachine
from sparklog.model.errors import ErrorCode
from tests.core.coordinator.machine_dialogue import WALL_MS
from tests.core.write_coordinator.dialogue import APP, BILLS, ORDERS, TIMEOUT_MS, Dialogue

EVERYTHING = ListTransactions(frozenset(), frozenset())


class Shard:
    """Both kinds in one shard; the dialogue speaks with the writes, ``ask`` with either."""

    def __init__(self):
        self.dialogue = Dialogue()
        self.machine = TransactionStateMachine(
            TransactionMachine(TransactionSettings()), self.dialogue.machine
        )

    def ask(self, request):
        (reply,) = self.machine.on_request(Token(1_000), request, self.dialogue.now)
        return reply.response

    def listed(self, request=EVERYTHING):
        return [(name, value.producer_id, value.state) for name, value in self.ask(request).transactions]

    def described(self, name=APP):
        return self.ask(DescribeTransaction(name))


def test_an_open_write_is_described_with_the_partitions_of_its_members():
    shard = Shard()
    first = shard.dialogue.member(attempt="a", topics=(ORDERS,))
    shard.dialogue.member(attempt="b", topics=(ORDERS, BILLS))
    value = shard.described().value
    assert (value.producer_id, value.state, value.timeout_ms) == (first, TransactionState.ONGOING, TIMEOUT_MS)
    assert value.topics == (BILLS, ORDERS)
    assert value.start_ms == WALL_MS


def test_a_write_is_listed_once_or_for_each_producer_that_is_asked_about():
    shard = Shard()
    first = shard.dialogue.member(attempt="a")
    second = shard.dialogue.member(attempt="b")
    ongoing = TransactionState.ONGOING
    assert shard.listed() == [(APP, first, ongoing)]
    asked = ListTransactions(frozenset(), frozenset({second, first, 7}))
    assert sorted(shard.listed(asked)) == [(APP, first, ongoing), (APP, second, ongoing)]
    assert shard.listed(ListTransactions(frozenset({ongoing}), frozenset({second}))) == [
        (APP, second, ongoing)
    ]
    assert shard.listed(ListTransactions(frozenset({TransactionState.EMPTY}), frozenset())) == []


def test_a_member_that_has_its_marker_is_not_shown_any_more():
    shard = Shard()
    winner = shard.dialogue.finished(attempt="a")
    loser = shard.dialogue.member(attempt="b", topics=(BILLS,))
    shard.dialogue.commit(winner)
    prepared = TransactionState.PREPARE_COMMIT
    assert shard.listed() == [(APP, winner, prepared)]
    assert shard.described().value.topics == (BILLS, ORDERS)
    shard.dialogue.ask(MarkersWritten(APP, loser, 0, False))
    assert shard.described().value.topics == (ORDERS,)
    assert shard.listed(ListTransactions(frozenset(), frozenset({loser}))) == []


@pytest.mark.parametrize("name", [APP, "unknown"])
def test_an_app_without_an_open_write_is_no_transaction(name):
    shard = Shard()
    shard.dialogue.committed(version=1)
    assert shard.listed() == []
    assert shard.described(name).error is ErrorCode.transactional_id_not_found


def test_a_transactional_id_of_the_same_name_is_described_instead():
    shard = Shard()
    member = shard.dialogue.member()
    initialise = InitProducerId(APP, 60_000, fresh_producer_id=9)
    (write,) = shard.machine.on_request(Token(1), initialise, shard.dialogue.now)
    shard.machine.on_written(write.write_id, Written(), shard.dialogue.now)
    assert shard.described().value.producer_id == 9
    assert [producer_id for _, producer_id, _ in shard.listed()] == [9, member]
