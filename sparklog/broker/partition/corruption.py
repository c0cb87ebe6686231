"""Whether a log with a corruption is fit for a role, and what becomes of it."""

import logging
from typing import Final

from sparklog.broker.partition.log_guard import LogGuard
from sparklog.core.replication.actions import TruncateTo
from sparklog.core.replication.replica import Replica
from sparklog.model.cluster_facts import PartitionState
from sparklog.storage.log import Log

logger: Final = logging.getLogger(__name__)


def settle_corruption(guard: LogGuard, replica: Replica, state: PartitionState) -> bool:
    """Within a step: whether the log is fit for the role that ``state`` gives it.

    * A follower outside the ISR cuts its log at the corruption, and fetches again from there.
    * A member of the ISR must not cut, even as a follower: it may hold the only copy of committed records. It
      refuses the role, so that the controller takes it out of the ISR and elects another; then it cuts.
    * The last member of the ISR leads, and serves what can be read.
    * Without a leader, nothing is truncated.

    After an election that could lose records, and that preferred this log to others, the rest of it is the
    truth: its leader cuts, and takes appends again. It does not if the log has begun an epoch since, because
    then the log was damaged later; nor if it is the only replica, because then an operator must decide.
    """
    log = guard.log
    corruption, reason = log.corruption, log.corruption.reason if log.corruption else ""
    if corruption is None or not state.has_leader:
        return True
    is_given_up = corruption.ends_log and log.epochs.latest_epoch < state.lost_in_epoch
    if state.leader == replica.broker_id and is_given_up and len(state.replicas) > 1:
        logger.error("%s: %s; the rest of the log is given up", guard.topic_partition, reason)
    elif state.isr == (replica.broker_id,):
        logger.error("%s: %s; the only replica in sync serves the rest", guard.topic_partition, reason)
        return True
    elif replica.broker_id in state.isr:
        logger.error("%s: in the ISR with a corrupt log: %s", guard.topic_partition, reason)
        return False
    else:
        logger.warning("%s: %s; fetching again from there", guard.topic_partition, reason)
    guard.apply([TruncateTo(corruption.offset)])
    return not guard.is_offline


def should_hand_over(log: Log, replica: Replica, state: PartitionState) -> bool:
    """Whether a damaged leader should give way, by the ISR that the controller knows: ours may be another."""
    is_damaged = replica.leader is not None and log.corruption is not None
    return is_damaged and bool(set(state.isr) - {replica.broker_id})
