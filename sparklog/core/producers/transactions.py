"""Open and ended transactions of one log, and the end of what read-committed readers may see.

The *last stable offset* (LSO) is the smallest of three offsets:

- the high watermark,
- the first offset of the oldest open transaction,
- the first offset of the oldest ended transaction whose marker is at or above the high watermark. Such a
  marker may still be truncated, and its transaction would be open again.

Below it every transaction is decided, and its marker is committed. So the offset does not fall while the log
is only appended to and the high watermark only rises, and a new leader, which has all committed markers, is
at the old leader's offset when its high watermark is. (Kafka: ProducerStateManager.firstUnstableOffset.)

The two lists are derived from the log, with the producer states (``producer_state``), so that each replica
has the offset that a replay of its log says.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from sparklog.model.ids import Offset, ProducerId
from sparklog.model.write_ids import is_of_a_write, write_and_member


class AbortedTransaction(NamedTuple):
    """A transaction whose records read-committed readers skip: an entry of ``.txnindex``.

    ``last_offset`` is the marker's. ``last_stable_offset``: all transactions that begin below it had ended
    when the marker was appended, so a search for what was aborted below it may end here.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Ended(NamedTuple):
    """A transaction that ended with the marker at ``marker_offset``."""

    first_offset: int
    marker_offset: int


@dataclass(slots=True)
class Transactions:
    """Fed in the order of the log. Both lists ascend by first offset."""

    _open: dict[ProducerId, Offset] = field(default_factory=dict)
    _ended: deque[Ended] = field(default_factory=deque)
    """Without those that another one covers, which began earlier and ended later."""
    _ended_of_clients: deque[Ended] = field(default_factory=deque)
    """The same of transactions of Kafka's clients alone, and of those that were restored."""

    @classmethod
    def of(
        cls, open_since: Iterable[tuple[ProducerId, Offset]], ended: Iterable[Ended] = ()
    ) -> "Transactions":
        """From the open transaction of each producer that has one, and ended ones by their markers."""
        transactions = cls(dict(sorted(open_since, key=lambda one: one[1])))
        for one in ended:
            _add(transactions._ended, one)
            _add(transactions._ended_of_clients, one)
        return transactions

    def begin(self, producer_id: ProducerId, first_offset: Offset) -> None:
        self._open[producer_id] = first_offset

    def end(self, producer_id: ProducerId, marker_offset: int) -> AbortedTransaction | None:
        """The producer's open transaction ends; what its entry is if it is aborted. None without one: a
        marker is also written where a transaction wrote nothing, or where all of it was cleaned away.
        """
        first_offset = self._open.pop(producer_id, None)
        if first_offset is None:
            return None
        ended = Ended(first_offset, marker_offset)
        _add(self._ended, ended)
        if not is_of_a_write(producer_id):
            _add(self._ended_of_clients, ended)
        others = next(iter(self._open.values()), None)
        stable = marker_offset + 1 if others is None else others
        return AbortedTransaction(producer_id, first_offset, marker_offset, stable)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget the ended transactions whose markers are committed."""
        for known in (self._ended, self._ended_of_clients):
            while known and known[0].marker_offset < high_watermark:
                known.popleft()

    def ended(self) -> tuple[Ended, ...]:
        return tuple(self._ended)

    def first_open(self) -> Offset | None:
        """First offset of the oldest open transaction."""
        return next(iter(self._open.values()), None)

    def first_unstable(self, high_watermark: int) -> int | None:
        """First offset of the oldest transaction that is open, or whose marker is not below
        ``high_watermark``.
        """
        return _first_unstable(self.first_open(), self._ended, high_watermark)

    def first_unstable_of_clients(self, high_watermark: int) -> int | None:
        """The same, of transactions of Kafka's clients alone: without members of atomic writes."""
        firsts = (first for producer_id, first in self._open.items() if not is_of_a_write(producer_id))
        return _first_unstable(next(firsts, None), self._ended_of_clients, high_watermark)

    def open_writes(self, end_offset: int) -> frozenset[int]:
        """The numbers of the atomic writes that have a member's transaction open below ``end_offset``."""
        return frozenset(
            write_and_member(producer_id)[0]
            for producer_id, first_offset in self._open.items()
            if first_offset < end_offset and is_of_a_write(producer_id)
        )

    def check_invariants(self) -> None:
        firsts = list(self._open.values())
        assert firsts == sorted(firsts), self
        assert all(one < other for one, other in zip(self._ended, list(self._ended)[1:], strict=False)), self
        covering = {one.first_offset for one in self._ended}
        assert not self._ended_of_clients or min(covering) <= self._ended_of_clients[0].first_offset, self
        assert all(ended.first_offset < ended.marker_offset for ended in self._ended), self


def _add(known: deque[Ended], ended: Ended) -> None:
    while known and known[-1].first_offset >= ended.first_offset:
        known.pop()
    known.append(ended)


def _first_unstable(first_open: int | None, ended: Iterable[Ended], high_watermark: int) -> int | None:
    for one in ended:
        if one.marker_offset >= high_watermark:
            return one.first_offset if first_open is None else min(first_open, one.first_offset)
    return first_open
