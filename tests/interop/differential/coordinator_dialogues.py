"""Dialogues with the coordinator of transactions, written by hand: each state with each request."""

from collections.abc import Callable
from typing import Final

from tests.interop.differential.producer import Transactions, older

Dialogue = Callable[[Transactions], None]

NOBODY: Final = {"producer_id": 4_000_000_000, "producer_epoch": 0}
TIMEOUT_MAX_MS: Final = 900_000
LAST_EPOCH: Final = 32_767
ODD_PREFIXES: Final = (" ", ".", "a/b", "\u202e")


def a_transaction_that_commits(txn: Transactions) -> None:
    one = txn.init()
    txn.describe()
    txn.add(one, partitions=(0, 1))
    txn.describe()
    txn.produce(one)
    txn.produce(one, 1)
    txn.produce(one, partition=1)
    txn.producers(0, 1)
    txn.end(one, commits=True)
    txn.producers(0, 1)
    txn.seen()


def a_transaction_that_aborts(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    txn.end(one, commits=False)
    txn.describe()
    txn.producers(0)
    txn.seen(0, 1, 2)


def transactions_without_records(txn: Transactions) -> None:
    one = txn.init()
    for commits in (True, False):
        txn.add(one)
        txn.end(one, commits=commits)
        txn.seen()
        txn.producers(0)


def an_end_that_is_repeated(txn: Transactions) -> None:
    one = txn.init()
    for commits in (True, False):
        txn.add(one)
        txn.produce(one, 0 if commits else 1)
        for _ in range(3):
            txn.end(one, commits=commits)
        txn.end(one, commits=not commits)
        txn.describe()
    txn.seen()


def an_end_of_nothing(txn: Transactions) -> None:
    one = txn.init()
    for commits in (True, False):
        txn.end(one, commits=commits)
    txn.describe()
    txn.end(older(one), commits=True)
    txn.end(older(one, -1), commits=True)


def requests_of_an_unknown_id(txn: Transactions) -> None:
    txn.describe()
    txn.add(NOBODY)
    txn.add_group(NOBODY)
    txn.end(NOBODY, commits=True)
    txn.commit_offset(NOBODY)
    txn.produce(NOBODY)
    txn.init(identity=(NOBODY["producer_id"], 3))
    txn.describe()
    txn.listed()


def requests_with_another_producer_id(txn: Transactions) -> None:
    one = txn.init()
    for is_open in (False, True):
        if is_open:
            txn.add(one)
        txn.add(NOBODY)
        txn.add_group(NOBODY)
        txn.end(NOBODY, commits=False)
        txn.produce(NOBODY)
        txn.commit_offset(NOBODY)
        txn.init(identity=(NOBODY["producer_id"], 0))
    txn.describe()


def a_producer_whose_successor_is_there(txn: Transactions) -> None:
    one = txn.init()
    txn.init()
    txn.add(one)
    txn.add_group(one)
    txn.end(one, commits=True)
    txn.end(one, commits=False)
    txn.produce(one)
    txn.commit_offset(one)
    txn.init(identity=(one["producer_id"], one["producer_epoch"]))
    txn.describe()


def an_epoch_that_nobody_has_yet(txn: Transactions) -> None:
    early = older(txn.init(), -5)
    txn.add(early)
    txn.add_group(early)
    txn.end(early, commits=True)
    txn.produce(early)
    txn.commit_offset(early)
    txn.init(identity=(early["producer_id"], early["producer_epoch"]))
    txn.describe()


def a_successor_fences_an_open_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    two = txn.init_until_done()
    txn.producers(0)
    txn.produce(one, 1, by="the zombie")
    txn.end(one, commits=True)
    txn.add(one)
    txn.add(two)
    txn.produce(two)
    txn.produce(one, 2, by="the zombie")
    txn.end(one, commits=False)
    txn.end(two, commits=True)
    txn.producers(0)
    txn.seen(0, 1, 2, 3, 4)


def the_first_answer_to_a_successor(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.init()
    txn.settle()
    txn.end(one, commits=False)
    txn.describe()
    txn.init(timeout_ms=0)


def a_successor_of_a_complete_transaction(txn: Transactions) -> None:
    for commits in (True, False):
        one = txn.init()
        txn.add(one)
        txn.end(one, commits=commits)
        txn.init()
        txn.end(one, commits=commits)
        txn.describe()


def time_outs_out_of_bounds(txn: Transactions) -> None:
    for timeout_ms in (0, -1, TIMEOUT_MAX_MS + 1, 2**31 - 1, -(2**31)):
        txn.init(timeout_ms=timeout_ms)
    txn.describe()
    txn.init(timeout_ms=TIMEOUT_MAX_MS)
    txn.init(timeout_ms=1)
    txn.describe()
    txn.init(timeout_ms=0)
    txn.init(None, timeout_ms=0)
    txn.init(None, timeout_ms=-1)


def an_open_transaction_that_times_out(txn: Transactions) -> None:
    one = txn.init(timeout_ms=300)
    txn.add(one)
    txn.produce(one)
    txn.settle()
    txn.producers(0)
    txn.end(one, commits=True)
    txn.end(one, commits=False)
    txn.add(one)
    txn.produce(one, 1)
    txn.init(identity=(one["producer_id"], one["producer_epoch"]))
    txn.init()
    txn.describe()
    txn.seen(0, 1)


def idempotent_producers_without_an_id(txn: Transactions) -> None:
    txn.init(None)
    for identity in ((-1, 5), (5, -1), (5, 0), (5, LAST_EPOCH - 1), (5, LAST_EPOCH), (-7, -7), (-1, -7)):
        txn.init(None, identity=identity)


def a_producer_that_wants_its_next_epoch(txn: Transactions) -> None:
    one = txn.init()
    identity = (one["producer_id"], one["producer_epoch"])
    two = txn.init(identity=identity)
    txn.init(identity=identity)
    txn.init(identity=(two["producer_id"], two["producer_epoch"]))
    txn.init(identity=identity)
    txn.describe()


def identities_that_do_not_fit(txn: Transactions) -> None:
    producer_id = txn.init()["producer_id"]
    for identity in (
        (producer_id, -1),
        (-1, 0),
        (producer_id, 7),
        (producer_id, LAST_EPOCH),
        (producer_id, -2),
        (-2, -2),
        (producer_id + 1_000_000, 0),
        (producer_id + 1_000_000, LAST_EPOCH - 1),
    ):
        txn.init(identity=identity)
    txn.describe()


def a_next_epoch_within_a_transaction(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one)
    txn.produce(one)
    identity = (one["producer_id"], one["producer_epoch"])
    txn.init(identity=identity)
    txn.settle()
    txn.init(identity=identity)
    txn.init(identity=(identity[0], identity[1] + 1))
    txn.describe()
    txn.init()


def another_epoch_within_a_transaction(txn: Transactions) -> None:
    txn.init()
    one = txn.init()
    txn.add(one)
    for by in (1, -1):
        txn.init(identity=(one["producer_id"], one["producer_epoch"] - by))
        txn.settle_or_open()


def empty_ids(txn: Transactions) -> None:
    empty = Transactions(txn.talk, "", txn.topic)
    empty.init()
    for producer in (NOBODY, {"producer_id": -1, "producer_epoch": -1}):
        empty.add(producer)
        empty.add(producer, "nothing of this name")
        empty.add_group(producer)
        empty.end(producer, commits=True)
        empty.produce(producer)
        empty.commit_offset(producer, group="a group")
    txn.talk.ask("DescribeTransactions", transactional_ids=[""])
    txn.talk.ask("FindCoordinator", key="", key_type=1, coordinator_keys=[""])


def ids_of_every_kind(txn: Transactions) -> None:
    names = [f"{suffix}{txn.name}" for suffix in ODD_PREFIXES]
    for name in (*names, *(txn.name.ljust(length, "x") for length in (249, 300))):
        other = Transactions(txn.talk, name, txn.topic)
        one = other.init()
        other.add(one)
        other.end(one, commits=True)
        txn.talk.ask("FindCoordinator", key=name, key_type=1, coordinator_keys=[name])


def additions_of_what_is_not_there(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one, txn.topic.name, "nothing of this name")
    txn.describe()
    txn.add(one, partitions=(0, 77))
    txn.add(one, partitions=(-1,))
    txn.add(one, "")
    txn.add(one, "a/b", txn.topic.name)
    txn.add(NOBODY, "nothing of this name")
    txn.describe()


def additions_of_every_kind(txn: Transactions) -> None:
    one = txn.init()
    txn.add(one, partitions=())
    txn.describe()
    txn.add(one)
    txn.add(one)
    txn.add(one, partitions=(0, 1))
    txn.describe()
    txn.add(one, partitions=(0, 0))
    txn.add(one, txn.topic.name, txn.topic.name)
    txn.add(one, partitions=())
    txn.add(one, "__consumer_offsets")
    txn.add(one, "__transaction_state")
    txn.describe()
    txn.end(one, commits=True)


def verifications_between_brokers(txn: Transactions) -> None:
    one = txn.init()
    txn.verify((txn.name, one, (0,)))
    txn.add(one)
    txn.verify((txn.name, one, (0,)))
    txn.verify((txn.name, one, (0, 1)))
    txn.verify((txn.name, older(one), (0,)), (txn.name, older(one, -1), (0,)), (txn.name, NOBODY, (0,)))
    txn.verify((f"{txn.name} that is not there", one, (0,)), ("", one, (0,)))
    txn.end(one, commits=True)
    txn.verify((txn.name, one, (0,)))


def additions_between_brokers(txn: Transactions) -> None:
    one = txn.init()
    txn.verify((txn.name, one, (0,)), only=False)
    txn.describe()
    txn.verify((txn.name, older(one), (0,)), only=False)
    txn.verify((txn.name, one, (0, 77)), only=False)
    txn.verify(("", one, (0,)), only=False)
    txn.describe()
    txn.end(one, commits=False)


def several_are_described(txn: Transactions) -> None:
    txn.init()
    txn.describe(txn.name, txn.name, f"{txn.name} that is not there")
    txn.talk.ask("DescribeTransactions", transactional_ids=[])
    txn.describe(txn.name, "")


def ids_by_their_state(txn: Transactions) -> None:
    states = ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort")
    producers = {}
    for state in states:
        other = Transactions(txn.talk, f"{txn.name} {state}", txn.topic)
        one = producers[state] = other.init()
        if state != "Empty":
            other.add(one)
        if state.startswith("Complete"):
            other.end(one, commits=state.endswith("Commit"))
    txn.listed()
    for state in (*states, "PrepareCommit", "PrepareAbort", "PrepareEpochFence", "Dead", "ongoing", "", "?"):
        txn.listed(state)
    txn.listed("Ongoing", "Empty")
    txn.listed("Ongoing", "nothing")
    one = producers["Ongoing"]["producer_id"]
    txn.listed(producer_ids=[one])
    txn.listed(producer_ids=[one, -1, 2**62])
    txn.listed("Empty", producer_ids=[one])
    txn.listed(producer_ids=[2**62])
    Transactions(txn.talk, f"{txn.name} Ongoing", txn.topic).end(producers["Ongoing"], commits=False)


COORDINATOR_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    a_next_epoch_within_a_transaction,
    a_producer_that_wants_its_next_epoch,
    a_producer_whose_successor_is_there,
    a_successor_fences_an_open_transaction,
    a_successor_of_a_complete_transaction,
    a_transaction_that_aborts,
    a_transaction_that_commits,
    additions_between_brokers,
    additions_of_every_kind,
    additions_of_what_is_not_there,
    an_end_of_nothing,
    an_end_that_is_repeated,
    an_epoch_that_nobody_has_yet,
    an_open_transaction_that_times_out,
    another_epoch_within_a_transaction,
    empty_ids,
    idempotent_producers_without_an_id,
    identities_that_do_not_fit,
    ids_by_their_state,
    ids_of_every_kind,
    requests_of_an_unknown_id,
    requests_with_another_producer_id,
    several_are_described,
    the_first_answer_to_a_successor,
    time_outs_out_of_bounds,
    transactions_without_records,
    verifications_between_brokers,
)
