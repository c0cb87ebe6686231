"""The last stable offset's rule, against its definition; and what an abort's entry says."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.transaction.transactions import AbortedTransaction, Transactions
from sparklog.model.ids import Offset, ProducerId

A, B, C = ProducerId(1), ProducerId(2), ProducerId(3)


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


@dataclass
class Definition:
    """Every transaction that ever was, as (first offset, marker or None)."""

    opened: dict[int, int] = field(default_factory=dict)
    ended: list[tuple[int, int]] = field(default_factory=list)

    def first_unstable(self, high_watermark: int) -> int | None:
        undecided = [
            *self.opened.values(),
            *(first for first, marker in self.ended if marker >= high_watermark),
        ]
        return min(undecided, default=None)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=60))
def test_the_first_unstable_offset_is_that_of_the_definition_and_never_falls(steps):
    transactions, definition = Transactions(), Definition()
    high_watermark = stable = 0
    for offset, (producer, advance) in enumerate(steps):
        producer_id = ProducerId(producer)
        if producer in definition.opened:
            definition.ended.append((definition.opened.pop(producer), offset))
            transactions.end(producer_id, offset)
        else:
            definition.opened[producer] = offset
            transactions.begin(producer_id, Offset(offset))
        transactions.check_invariants()
        high_watermark = min(offset + 1, high_watermark + advance // 8)
        expected = definition.first_unstable(high_watermark)
        assert transactions.first_unstable(high_watermark) == expected
        transactions.on_high_watermark(high_watermark)
        assert transactions.first_unstable(high_watermark) == expected
        assert min(high_watermark, high_watermark if expected is None else expected) >= stable
        stable = min(high_watermark, high_watermark if expected is None else expected)
