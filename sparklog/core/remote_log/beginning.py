"""Whether a leader's log begins anew at the end of its history in the store, and with which state.

An election may have lost records. Its leader compares the log with the history before it serves clients,
unless the log has a record since. The history counts as a replica, because only committed records were
copied. A log that lacks a part of it and may not cut it (`lineage`) begins anew at the history's end, with
the leader epochs and the producers from before, as a follower does at its leader's. The greater of the two
log starts counts, so that deleted records do not return.

A transaction that is open at the history's end had ended when that end was copied, because only stable
records are copied. Its marker is lost and is never written again, so the transaction does not count as open.
"""

from collections.abc import Sequence
from dataclasses import replace

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.remote_log.lineage import Lineage
from sparklog.core.replication.epoch_history import EarlierHistory, EpochEntry, EpochHistory
from sparklog.core.replication.leader import Beginning
from sparklog.model.ids import NO_OFFSET, LeaderEpoch, Offset


def must_begin_anew(
    lineage: Lineage, own: EpochHistory, *, log_start_offset: int, log_end_offset: int
) -> bool:
    """Whether a log with these epochs lacks a part of the history that it may not cut."""
    # Records below the log's own start are deleted, not lacking.
    if lineage.end_offset <= log_start_offset or lineage.may_be_cut_by(own, log_end_offset):
        return False
    shared_end = lineage.end_shared_with(own, log_end_offset)
    return shared_end is None or shared_end < lineage.end_offset


def begin_anew(
    end_offset: int, log_start_offset: int, epochs: Sequence[tuple[int, int]], producers: ProducerStates
) -> Beginning:
    """The log that begins at the history's ``end_offset``, with the history's ``epochs`` and ``producers``.

    ``log_start_offset`` is the greater of the two log starts.
    """
    known = EpochHistory([EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in epochs])
    known.truncate_to(end_offset)
    # Records before the first epoch were deleted before the last copy; the head may have the old start yet.
    log_start_offset = max(log_start_offset, known.entries[0].start_offset if known.entries else 0)
    known.trim_to(log_start_offset)
    history = EarlierHistory(log_start_offset, tuple(known.entries))
    return Beginning(end_offset, history, without_open_transactions(producers.before(end_offset)))


def without_open_transactions(states: ProducerStates) -> ProducerStates:
    """The same producers, none in a transaction. A producer that has nothing else is left out."""
    return ProducerStates(
        {
            producer_id: replace(state, open_since=NO_OFFSET)
            for producer_id, state in states.producers.items()
            if state.batches or not state.in_transaction
        }
    )
