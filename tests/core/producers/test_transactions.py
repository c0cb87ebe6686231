"""The last stable offset's rule, against its definition; and what an abort's entry says."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.producers.transactions import AbortedTransaction, Ended, Transactions
from sparklog.model.ids import Offset, ProducerId
from sparklog.model.write_ids import FIRST_PRODUCER_ID, producer_id_of

A, B, C = ProducerId(1), ProducerId(2), ProducerId(3)
MEMBER, OTHER_MEMBER = (ProducerId(producer_id_of(write, 0)) for write in (40, 41))


def test_open_transactions_hold_back_readers_until_their_marker_is_committed():
    transactions = Transactions()
    transactions.begin(A, Offset(5))
    assert transactions.first_unstable(5) == 5
    transactions.end(A, 9)
    assert [transactions.first_unstable(mark) for mark in (5, 9, 10)] == [5, 5, None]


def test_an_ended_transaction_holds_back_readers_although_a_younger_one_is_open():
    transactions = Transactions()
    transactions.begin(A, Offset(5))
    transactions.begin(B, Offset(7))
    transactions.end(A, 9)
    assert [transactions.first_unstable(mark) for mark in (9, 10)] == [5, 7]


def test_a_transaction_that_ends_later_and_began_earlier_covers_the_others():
    transactions = Transactions()
    transactions.begin(A, Offset(1))
    transactions.begin(B, Offset(2))
    transactions.end(B, 3)
    transactions.end(A, 4)
    assert len(transactions.ended()) == 1
    assert [transactions.first_unstable(mark) for mark in (2, 3, 4, 5)] == [1, 1, 1, None]


def test_the_entry_of_an_aborted_transaction_names_the_first_other_that_is_open():
    transactions = Transactions()
    transactions.begin(A, Offset(1))
    transactions.begin(B, Offset(2))
    assert transactions.end(A, 3) == AbortedTransaction(A, 1, 3, 2)
    assert transactions.end(B, 4) == AbortedTransaction(B, 2, 4, 5)


def test_a_marker_without_a_transaction_changes_nothing():
    transactions = Transactions()
    assert transactions.end(C, 8) is None
    assert transactions == Transactions()


def test_members_of_atomic_writes_hold_back_only_those_who_wait_for_all_transactions():
    transactions = Transactions()
    transactions.begin(MEMBER, Offset(2))
    assert (transactions.first_unstable(9), transactions.first_unstable_of_clients(9)) == (2, None)
    transactions.begin(A, Offset(5))
    assert (transactions.first_unstable(9), transactions.first_unstable_of_clients(9)) == (2, 5)


def test_a_client_s_marker_counts_although_a_member_s_transaction_covers_it():
    transactions = Transactions()
    transactions.begin(MEMBER, Offset(1))
    transactions.begin(A, Offset(2))
    transactions.end(A, 3)
    transactions.end(MEMBER, 4)
    assert [transactions.first_unstable_of_clients(mark) for mark in (3, 4)] == [2, None]


def test_a_restored_transaction_may_be_a_client_s_and_counts_as_one():
    transactions = Transactions.of([], [Ended(3, 8)])
    assert [transactions.first_unstable_of_clients(mark) for mark in (8, 9)] == [3, None]


def test_the_writes_that_are_open_below_an_offset_are_named_once_each():
    transactions = Transactions()
    for first, producer_id in enumerate((A, MEMBER, ProducerId(producer_id_of(40, 7)), OTHER_MEMBER)):
        transactions.begin(producer_id, Offset(first))
    assert [transactions.open_writes(end) for end in (1, 2, 3, 4)] == [set(), {40}, {40}, {40, 41}]
    transactions.end(OTHER_MEMBER, 9)
    assert transactions.open_writes(10) == {40}


MEMBERS_FROM = 3


@dataclass
class Definition:
    """Every transaction that ever was: first offsets of open ones by producer, and (producer, first offset,
    marker). Producers from ``MEMBERS_FROM`` on are members of writes.
    """

    opened: dict[int, int] = field(default_factory=dict)
    ended: list[tuple[int, int, int]] = field(default_factory=list)

    def first_unstable(self, high_watermark: int) -> int | None:
        return min((first for _, first in self._undecided(high_watermark)), default=None)

    def first_unstable_of_clients(self, high_watermark: int) -> int | None:
        firsts = (first for producer, first in self._undecided(high_watermark) if producer < MEMBERS_FROM)
        return min(firsts, default=None)

    def _undecided(self, high_watermark: int) -> list[tuple[int, int]]:
        ended = ((producer, first) for producer, first, marker in self.ended if marker >= high_watermark)
        return [*self.opened.items(), *ended]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=60))
def test_the_first_unstable_offset_is_that_of_the_definition_and_never_falls(steps):
    transactions, definition = Transactions(), Definition()
    high_watermark = stable = 0
    for offset, (producer, advance) in enumerate(steps):
        producer_id = ProducerId(producer + (FIRST_PRODUCER_ID if producer >= MEMBERS_FROM else 0))
        if producer in definition.opened:
            definition.ended.append((producer, definition.opened.pop(producer), offset))
            transactions.end(producer_id, offset)
        else:
            definition.opened[producer] = offset
            transactions.begin(producer_id, Offset(offset))
        transactions.check_invariants()
        high_watermark = min(offset + 1, high_watermark + advance // 8)
        expected = definition.first_unstable(high_watermark)
        assert transactions.first_unstable(high_watermark) == expected
        of_clients = definition.first_unstable_of_clients(high_watermark)
        assert transactions.first_unstable_of_clients(high_watermark) == of_clients
        transactions.on_high_watermark(high_watermark)
        assert transactions.first_unstable(high_watermark) == expected
        assert transactions.first_unstable_of_clients(high_watermark) == of_clients
        assert min(high_watermark, high_watermark if expected is None else expected) >= stable
        stable = min(high_watermark, high_watermark if expected is None else expected)
