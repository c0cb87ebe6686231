"""Epoch history: which leader epoch began at which offset, so that logs can be cut where they diverge.

Every batch carries the epoch of the leader that wrote it. The history is the list of pairs
``(epoch, start offset)`` along one log, both strictly growing. A follower asks the leader where its own last
epoch ended; the answer tells it how much of its log the leader shares (KIP-101, KIP-279). Cutting at the high
watermark instead, as Kafka once did, loses or forks acknowledged records.

A new leader assigns ``(its epoch, log end offset)`` *before* it appends, so that it never has to say
"unknown" about an epoch it led without writing (KAFKA-7415). Every truncation prunes the history, also one
that cuts nothing, or an entry at the log's end would be reported as diverging for ever (KAFKA-10706).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparklog.model.ids import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset


class EpochEntry(NamedTuple):
    """``epoch`` begins at ``start_offset`` and lasts until the next entry, or the end of the log."""

    epoch: LeaderEpoch
    start_offset: Offset


class EpochEnd(NamedTuple):
    """The greatest epoch not above the one asked for, and the exclusive offset at which it ends."""

    epoch: LeaderEpoch
    end_offset: Offset


UNDEFINED: Final = EpochEnd(NO_EPOCH, NO_OFFSET)
"""The answer for an epoch about which this log knows nothing."""


@dataclass(frozen=True, slots=True)
class EarlierHistory:
    """What a log knows of records that are in its remote store only, before its local start: where they
    begin, and their ``epochs``, which end at the local start.
    """

    log_start_offset: int
    epochs: tuple[EpochEntry, ...] = ()


@dataclass(slots=True)
class EpochHistory:
    """The epochs of one log, oldest first."""

    entries: list[EpochEntry] = field(default_factory=list)

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> "EpochHistory":
        """A history from ``(epoch, start offset)`` pairs; ValueError when they do not grow."""
        history = cls([EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in pairs])
        problem = history._problem()
        if problem:
            raise ValueError(problem)
        return history

    @property
    def latest_epoch(self) -> LeaderEpoch:
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that ``epoch`` begins at ``start_offset``; whether that changed anything.

        Later entries that contradict the new one are dropped: what is being written now is the truth.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}: neither may be negative")
        if self.entries:
            last = self.entries[-1]
            if epoch == last.epoch and start_offset >= last.start_offset:
                return False
        while self.entries and (
            self.entries[-1].epoch >= epoch or self.entries[-1].start_offset >= start_offset
        ):
            self.entries.pop()
        self.entries.append(EpochEntry(LeaderEpoch(epoch), Offset(start_offset)))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where ``epoch`` ended in this log; for an epoch it never had, where the one before it did."""
        if epoch < 0 or epoch > self.latest_epoch:
            return UNDEFINED
        if epoch == self.latest_epoch:
            return EpochEnd(LeaderEpoch(epoch), Offset(log_end_offset))
        following = bisect_right(self.entries, epoch, key=_epoch_of)
        if following == 0:
            return EpochEnd(LeaderEpoch(epoch), self.entries[0].start_offset)
        return EpochEnd(self.entries[following - 1].epoch, self.entries[following].start_offset)

    def end_before(self, epoch: int) -> Offset:
        """Where the epochs before ``epoch`` end in this log, which has ``epoch`` or a later one."""
        return self.entries[bisect_left(self.entries, epoch, key=_epoch_of)].start_offset

    def has(self, epoch: int) -> bool:
        """Whether ``epoch`` began in this log."""
        following = bisect_right(self.entries, epoch, key=_epoch_of)
        return following > 0 and self.entries[following - 1].epoch == epoch

    def epoch_at(self, offset: int) -> LeaderEpoch:
        """The epoch that wrote the record at ``offset``; NO_EPOCH before the first entry."""
        index = bisect_right(self.entries, offset, key=_start_of)
        return self.entries[index - 1].epoch if index else NO_EPOCH

    def epoch_of_last_record(self, log_end_offset: int, lost_in_epoch: int = NO_EPOCH) -> LeaderEpoch:
        """The epoch of the last record of a log that ends at ``log_end_offset`` (exclusive); NO_EPOCH if it
        never had one. A leader's note of its epoch is no record.

        Where retention removed all records, the history begins at the log's end, with the last record's epoch
        or with a later leader's note. That leader had all committed records if no election since lost any
        (``lost_in_epoch``), and then its epoch counts as well.
        """
        epoch = self.epoch_at(log_end_offset - 1)
        if epoch != NO_EPOCH or log_end_offset == 0:
            return epoch
        noted = self.epoch_at(log_end_offset)
        return noted if lost_in_epoch < 0 or noted < lost_in_epoch else NO_EPOCH

    def truncate_to(self, offset: int) -> bool:
        """Forget epochs that begin at or after ``offset``; whether there were any."""
        kept = len(self.entries)
        while kept and self.entries[kept - 1].start_offset >= offset:
            kept -= 1
        changed = kept < len(self.entries)
        del self.entries[kept:]
        return changed

    def trim_to(self, log_start_offset: int) -> bool:
        """Forget what lies before ``log_start_offset``; the epoch in force there now begins there."""
        covering = bisect_right(self.entries, log_start_offset, key=_start_of) - 1
        if covering < 0 or (covering == 0 and self.entries[0].start_offset == log_start_offset):
            return False
        self.entries[: covering + 1] = [EpochEntry(self.entries[covering].epoch, Offset(log_start_offset))]
        return True

    def before(self, offset: int) -> tuple[EpochEntry, ...]:
        """The epochs that begin before ``offset``."""
        return tuple(entry for entry in self.entries if entry.start_offset < offset)

    def begin_with(self, entries: Iterable[EpochEntry]) -> None:
        """Replace the whole history."""
        self.entries[:] = entries

    def copy(self) -> "EpochHistory":
        return EpochHistory(list(self.entries))

    def check_invariants(self) -> None:
        problem = self._problem()
        assert problem is None, problem

    def _problem(self) -> str | None:
        previous = EpochEntry(NO_EPOCH, NO_OFFSET)
        for entry in self.entries:
            if entry.epoch <= previous.epoch or entry.start_offset <= previous.start_offset:
                return f"epoch entry {tuple(entry)} does not grow beyond {tuple(previous)}"
            previous = entry
        return None


def _epoch_of(entry: EpochEntry) -> int:
    return entry.epoch


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset
