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

    @classmethod
    def of(
        cls, open_since: Iterable[tuple[ProducerId, Offset]], ended: Iterable[Ended] = ()
    ) -> "Transactions":
        """From the open transaction of each producer that has one, and ended ones by their markers."""
        transactions = cls(dict(sorted(open_since, key=lambda one: one[1])))
        for one in ended:
            transactions._add_ended(one)
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
        self._add_ended(Ended(first_offset, marker_offset))
        others = next(iter(self._open.values()), None)
        stable = marker_offset + 1 if others is None else others
        return AbortedTransaction(producer_id, first_offset, marker_offset, stable)

    def _add_ended(self, ended: Ended) -> None:
        while self._ended and self._ended[-1].first_offset >= ended.first_offset:
            self._ended.pop()
        self._ended.append(ended)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget the ended transactions whose markers are committed."""
        while self._ended and self._ended[0].marker_offset < high_watermark:
            self._ended.popleft()

    def ended(self) -> tuple[Ended, ...]:
        return tuple(self._ended)

    def first_open(self) -> Offset | None:
        """First offset of the oldest open transaction."""
        return next(iter(self._open.values()), None)

    def first_unstable(self, high_watermark: int) -> int | None:
        """First offset of the oldest transaction that is open, or whose marker is not below
        ``high_watermark``.
        """
        first = self.first_open()
        for ended in self._ended:
            if ended.marker_offset >= high_watermark:
                return ended.first_offset if first is None else min(first, ended.first_offset)
        return first

    def check_invariants(self) -> None:
        firsts = list(self._open.values())
        assert firsts == sorted(firsts), self
        assert all(one < other for one, other in zip(self._ended, list(self._ended)[1:], strict=False)), self
        assert all(ended.first_offset < ended.marker_offset for ended in self._ended), self
