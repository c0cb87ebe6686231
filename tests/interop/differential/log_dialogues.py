"""Dialogues about the partitions of transactions: produces, markers, and what consumers of both kinds see."""

from typing import Final

from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from tests.interop.differential.coordinator_dialogues import NOBODY, Dialogue
from tests.interop.differential.producer import (
    BEGAN_MS,
    EARLIEST,
    LATEST,
    Transactions,
    batch,
    older,
)
from tests.interop.differential.sides import new_topic

MAX_TIMESTAMP: Final = -3


def produces_without_an_addition(txn: Transactions) -> None:
    one = txn.init()
    txn.produce(one)
    txn.add(one)
    txn.produce(one, partition=1)
    txn.produce_all({0: batch(one, 0), 1: batch(one, 0)})
    txn.produce(one, 1)
    txn.end(one, commits=True)
    txn.produce(one, 2)
    txn.seen()


def produces_under_a_wrong_id(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one, name=None)
    txn.produce(one, name=f"{txn.name} that is not there")
    txn.produce(NOBODY)
    txn.end(one, commits=True)
    txn.seen()


def plain_batches_before_a_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.produce(one, transactional=False)
    txn.add(one)
    txn.produce(one, 1, transactional=False)
    txn.produce(one, 2, transactional=False, name=None)
    txn.produce(one, 3)
    txn.end(one, commits=True)
    txn.seen()


def plain_batches_within_a_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    txn.produce(one, 1, transactional=False)
    txn.produce(one, 1, transactional=False, name=None)
    txn.produce(one, 1)
    txn.end(one, commits=True)
    txn.produce(one, 2, transactional=False)
    txn.produce(one, 3, transactional=False, name=None)
    txn.seen()


def sequences_within_a_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one, 0, count=2)
    txn.produce(one, 0, count=2)
    txn.produce(one, 5)
    txn.produce(one, 1)
    txn.produce(one, 2)
    txn.end(one, commits=True)
    txn.seen()


def sequences_of_the_next_transaction(txn: Transactions) -> None:
    one = txn.init()
    for sequence in (0, 2):
        txn.add(one)
        txn.produce(one, sequence + 1)
        txn.produce(one, sequence)
        txn.produce(one, sequence + 1)
        txn.end(one, commits=True)
    txn.seen()


def a_transaction_that_does_not_begin_with_sequence_0(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one, 9)
    txn.produce(one, 10)
    txn.end(one, commits=True)
    two = txn.init()
    txn.add(two)
    txn.produce(two, 9)
    txn.produce(two, 0)
    txn.end(two, commits=True)
    txn.seen()


def a_retry_after_the_end(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    txn.end(one, commits=True)
    txn.produce(one)
    txn.produce(one, 1)
    txn.add(one)
    txn.produce(one)
    txn.end(one, commits=False)
    txn.producers(0)
    txn.seen()


def batches_of_other_epochs(txn: Transactions) -> None:
    txn.init()
    one = txn.init()
    txn.add(one)
    txn.produce(older(one))
    txn.produce(older(one, -1))
    txn.produce(one)
    txn.produce(older(one), 1)
    txn.end(one, commits=True)
    txn.seen()


def a_newer_epoch_within_an_open_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    txn.produce(older(one, -1))
    txn.producers(0)


def two_producers_in_one_request(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one, partitions=(0, 1))
    txn.produce_all({0: batch(one, 0), 1: batch(NOBODY, 0)})
    txn.produce_all({0: batch(one, 0), 1: batch(one, 0, transactional=False)})
    txn.end(one, commits=True)
    txn.seen()


def control_batches_of_a_client(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    marker = build_marker(TransactionEnd(True, 0), **one_of(one), now_ms=BEGAN_MS)
    txn.produce(one)
    txn.produce_all({0: bytes(marker)})
    txn.produce(one, 1)
    txn.end(one, commits=True)
    txn.seen()


def one_of(producer: dict[str, int]) -> dict[str, int]:
    return {key: producer[key] for key in ("producer_id", "producer_epoch")}


def an_open_transaction_holds_readers_back(txn: Transactions) -> None:
    plain = txn.init(None)
    txn.produce(plain, transactional=False, name=None)
    one = txn.init()
    txn.add(one)
    txn.produce(one, 0, count=3)
    txn.produce(plain, 1, transactional=False, name=None)
    txn.seen(0, 1, 2, 4, 5, 6)
    txn.offset_at(EARLIEST)
    txn.offset_at(MAX_TIMESTAMP)
    txn.end(one, commits=True)
    txn.seen(0, 1, 2, 4, 5, 6)


def transactions_of_two_producers(txn: Transactions) -> None:
    other = Transactions(txn.talk, f"{txn.name} of the other", txn.topic)
    one, two = txn.init(), other.init()
    txn.add(one)
    other.add(two)
    txn.produce(one)
    other.produce(two)
    txn.produce(one, 1)
    txn.producers(0)
    other.end(two, commits=False)
    txn.seen(0, 1, 2, 3)
    txn.end(one, commits=False)
    txn.seen(0, 1, 2, 3, 4, 5)
    for isolation in (0, 1):
        txn.read(0, isolation=isolation, size=1)
        txn.read(4, isolation=isolation, size=1)


def one_commits_and_the_other_aborts(txn: Transactions) -> None:
    other = Transactions(txn.talk, f"{txn.name} of the other", txn.topic)
    one, two = txn.init(), other.init()
    for sequence in (0, 1):
        txn.add(one)
        other.add(two)
        other.produce(two, sequence)
        txn.produce(one, sequence)
        txn.end(one, commits=True)
        txn.seen()
        other.end(two, commits=False)
    txn.seen(0, 1, 2, 3, 4, 5, 6, 7)


def offsets_by_time_and_isolation(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one, 0, count=4)
    for isolation in (0, 1):
        for time_ms in (BEGAN_MS, BEGAN_MS + 2_000, BEGAN_MS + 9_000, EARLIEST, LATEST, MAX_TIMESTAMP, 0):
            txn.offset_at(time_ms, isolation=isolation)
    txn.end(one, commits=False)
    for isolation in (0, 1):
        for time_ms in (BEGAN_MS, BEGAN_MS + 2_000, EARLIEST, LATEST, MAX_TIMESTAMP):
            txn.offset_at(time_ms, isolation=isolation)


def isolation_levels_that_there_are_not(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    for isolation in (2, -1, 127):
        txn.read(isolation=isolation)
        txn.offset_at(isolation=isolation)
    txn.end(one, commits=True)


def markers_of_an_administrator(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    txn.mark(older(one))
    txn.mark(one, coordinator_epoch=-1)
    txn.producers(0)
    txn.seen()
    txn.mark(one, coordinator_epoch=-1)
    txn.produce(one, 1)
    txn.end(one, commits=True)
    txn.seen(0, 1)


def markers_of_other_epochs(txn: Transactions) -> None:
    txn.init()
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    txn.mark(older(one))
    txn.mark(one, coordinator_epoch=5)
    txn.mark(one, coordinator_epoch=4)
    txn.mark(one, coordinator_epoch=5, commits=True)
    txn.mark(older(one, -1), coordinator_epoch=4)
    txn.mark(older(one, -1), coordinator_epoch=6)
    txn.mark(one, coordinator_epoch=6)
    txn.producers(0)
    txn.seen(0, 1, 2)


def markers_for_producers_that_nobody_knows(txn: Transactions) -> None:
    txn.mark(NOBODY)
    txn.mark({"producer_id": -1, "producer_epoch": 0})
    txn.mark({"producer_id": 4_000_000_001, "producer_epoch": -1})
    txn.producers(0)
    txn.seen()


def markers_for_partitions_that_are_not_there(txn: Transactions) -> None:
    txn.mark(NOBODY, partitions=(0, 77))
    txn.mark(NOBODY, partitions=(-1,))
    txn.mark(NOBODY, topic="nothing of this name")
    txn.mark(NOBODY, topic="")
    txn.mark(NOBODY, partitions=())
    txn.talk.ask("WriteTxnMarkers", markers=[])
    txn.seen()


def producers_that_are_described(txn: Transactions) -> None:
    txn.producers(0, 1)
    txn.producers(77)
    txn.producers(-1)
    txn.producers(topic="nothing of this name")
    txn.producers(topic="")
    txn.producers(topic="a/b")
    plain = txn.init(None)
    txn.produce(plain, 4, count=3, transactional=False, name=None)
    txn.producers(0, 0)
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    txn.producers(0, 1)
    txn.mark(one, coordinator_epoch=3)
    txn.producers(0, 1)


def a_topic_that_is_deleted_under_an_open_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one, partitions=(0, 1))
    txn.produce(one)
    txn.delete_topic()
    txn.describe()
    txn.produce(one, 1)
    txn.end(one, commits=True)
    txn.describe()
    txn.producers(0)
    txn.add(one)


def a_topic_that_is_made_again_under_an_open_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one, partitions=(0, 1))
    txn.produce(one)
    txn.delete_topic()
    new_topic(txn.talk.address, txn.topic.name, may_be_there=False)
    txn.producers(0)
    txn.end(one, commits=True)
    txn.offset_at()
    txn.producers(0)


def records_that_are_deleted_under_an_open_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one, 0, count=3)
    part = {"partition_index": 0, "offset": 2}
    txn.talk.ask("DeleteRecords", topics=[{"name": txn.topic.name, "partitions": [part]}], timeout_ms=5_000)
    txn.seen(0, 2)
    txn.producers(0)
    txn.end(one, commits=False)
    txn.seen(2, 3)
    part = {"partition_index": 0, "offset": -1}
    txn.talk.ask("DeleteRecords", topics=[{"name": txn.topic.name, "partitions": [part]}], timeout_ms=5_000)
    txn.seen(4)
    txn.producers(0)


LOG_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    a_newer_epoch_within_an_open_transaction,
    a_retry_after_the_end,
    a_topic_that_is_deleted_under_an_open_transaction,
    a_topic_that_is_made_again_under_an_open_transaction,
    a_transaction_that_does_not_begin_with_sequence_0,
    an_open_transaction_holds_readers_back,
    batches_of_other_epochs,
    control_batches_of_a_client,
    isolation_levels_that_there_are_not,
    markers_for_partitions_that_are_not_there,
    markers_for_producers_that_nobody_knows,
    markers_of_an_administrator,
    markers_of_other_epochs,
    offsets_by_time_and_isolation,
    one_commits_and_the_other_aborts,
    plain_batches_before_a_transaction,
    plain_batches_within_a_transaction,
    producers_that_are_described,
    produces_under_a_wrong_id,
    produces_without_an_addition,
    records_that_are_deleted_under_an_open_transaction,
    sequences_of_the_next_transaction,
    sequences_within_a_transaction,
    transactions_of_two_producers,
    two_producers_in_one_request,
)
