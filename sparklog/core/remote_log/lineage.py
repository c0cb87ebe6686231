"""The part of a history in a store that a log shares, after an election that lost records.

After an unclean election the leader's log may end before the history, and then grow past that end with other
records. Leader epochs show it; offsets do not. The history is cut to the end of the greatest epoch that both
have, as a follower is by its leader's epochs (`core.replication.epoch_history`).

A log may cut the history if it has *records* of a later leader epoch than the last copy's, or if it leads
since an operator gave up the store. The leader of a later epoch either wrote after all that was copied, or
lost it in an unclean election. A log without such records has lost what it lacks, and begins anew at the
history's end (`beginning`).

The ``.state`` object of the last segment has the epochs of the history. A log that has the epoch of that copy
need not read them: it shares what the copying leader had, up to its own end of that epoch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import NO_EPOCH


@dataclass(frozen=True, slots=True)
class Lineage:
    """The end of a history. ``copier_epoch`` is the leader epoch in which its last segment was copied.

    ``epochs`` are the leader epochs and their start offsets, up to that end; None if they are not read.
    """

    copier_epoch: int
    end_offset: int
    epochs: Sequence[tuple[int, int]] | None = None

    def needs_epochs(self, own: EpochHistory) -> bool:
        return self.epochs is None and not own.has(self.copier_epoch)

    def may_be_cut_by(
        self, own: EpochHistory, log_end_offset: int, store_given_up_in_epoch: int = NO_EPOCH
    ) -> bool:
        """Whether the log has records of a later leader epoch than the last copy's, or the store was given up
        in a later one.
        """
        return max(own.epoch_of_last_record(log_end_offset), store_given_up_in_epoch) > self.copier_epoch

    def end_shared_with(self, own: EpochHistory, log_end_offset: int) -> int | None:
        """The end of the part that the log shares; None if no epoch shows it."""
        if own.has(self.copier_epoch):
            return min(self.end_offset, own.end_offset_for(self.copier_epoch, log_end_offset).end_offset)
        end = self.end_offset
        for epoch, start in reversed(self.epochs or ()):
            # In the history, an epoch ends where the next one starts.
            if own.has(epoch):
                return min(end, own.end_offset_for(epoch, log_end_offset).end_offset)
            end = start
        return None
