"""How much of a history in a store a log shares, after an election that lost records.

An unclean election makes a log the truth that ends before the history does, and then grows past that end with
other records. Offsets alone do not show it; leader epochs do. As a follower is cut by its leader's epochs, so
the history is cut to the end of the greatest epoch that both have (`core.replication.epoch_history`).

Only a log that has *records* of a later leader epoch than the last copy's may cut the history, or one that
leads since an operator gave up the store. What was copied was committed, and the leader of a later epoch
wrote behind it, or lost it. A log without such records has lost what it lacks, however short it is: it begins
anew where the history ends (`beginning`).

The epochs of a history are in the ``.state`` object of its last segment. They need not be read by a log that
has the epoch in which that segment was copied: whatever the copying leader had, that log shares up to its own
end of that epoch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import NO_EPOCH


@dataclass(frozen=True, slots=True)
class Lineage:
    """The end of a history: the leader epoch of the copy of its last segment, and where that ends.

    ``epochs``: leader epochs and their start offsets, up to that end; None: not read.
    """

    copier_epoch: int
    end_offset: int
    epochs: Sequence[tuple[int, int]] | None = None

    def needs_epochs(self, own: EpochHistory) -> bool:
        return self.epochs is None and not own.has(self.copier_epoch)

    def may_be_cut_by(
        self, own: EpochHistory, log_end_offset: int, store_given_up_in_epoch: int = NO_EPOCH
    ) -> bool:
        """Whether a log with these epochs has records of a later leader epoch than the last copy's, or the
        store was given up in a later one.
        """
        return max(own.epoch_of_last_record(log_end_offset), store_given_up_in_epoch) > self.copier_epoch

    def end_shared_with(self, own: EpochHistory, log_end_offset: int) -> int | None:
        """The end of what a log with these epochs shares with the history; None if nothing shows it."""
        if own.has(self.copier_epoch):
            return min(self.end_offset, own.end_offset_for(self.copier_epoch, log_end_offset).end_offset)
        end = self.end_offset
        for epoch, start in reversed(self.epochs or ()):
            if own.has(epoch):
                return min(end, own.end_offset_for(epoch, log_end_offset).end_offset)
            end = start
        return None
