"""Whether a leader's log begins anew where its history in the store ends, and what it knows there.

After an election that may have lost records, and before it serves anybody, a leader without a record since
then compares its log with the history. The history counts as a replica: only committed records were copied.
If the log lacks a part of it, and may not cut it (`lineage`), the log begins anew at the history's end, as a
follower does at its leader's: with the leader epochs and the producers from before. Of the two log starts the
greater counts, so that deleted records do not return.

Transactions that were open at the history's end had ended when it was copied, because only what is stable is
copied. Their markers are lost, and nobody writes them again, so none of them counts as open.
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
    """Whether a log with these epochs lacks a part of the history that it may not cut. Records below its own
    start are deleted, and not lacking.
    """
    if lineage.end_offset <= log_start_offset or lineage.may_be_cut_by(own, log_end_offset):
        return False
    shared_end = lineage.end_shared_with(own, log_end_offset)
    return shared_end is None or shared_end < lineage.end_offset


def begin_anew(
    end_offset: int, log_start_offset: int, epochs: Sequence[tuple[int, int]], producers: ProducerStates
) -> Beginning:
    """The log that begins at ``end_offset``, the history's. ``log_start_offset``: the greater of the two,
    before that. ``epochs`` and ``producers`` are those of the history.
    """
    known = EpochHistory([EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in epochs])
    known.truncate_to(end_offset)
    # Records before the first epoch were deleted before the last copy, although the head may not say so yet.
    log_start_offset = max(log_start_offset, known.entries[0].start_offset if known.entries else 0)
    known.trim_to(log_start_offset)
    history = EarlierHistory(log_start_offset, tuple(known.entries))
    return Beginning(end_offset, history, without_open_transactions(producers.before(end_offset)))


def without_open_transactions(states: ProducerStates) -> ProducerStates:
    return ProducerStates(
        {
            producer_id: replace(state, open_since=NO_OFFSET)
            for producer_id, state in states.producers.items()
            if state.batches or not state.in_transaction
        }
    )
