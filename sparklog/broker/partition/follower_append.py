"""What a follower appends: a leader's replies, byte for byte; called within a partition's step.

The leader sends bytes by ``sendfile``, after it released its lock. If it lost leadership meanwhile, it may
have truncated, and the bytes may be its log of a later epoch, cut anywhere (KAFKA-18723). Only whole batches
are appended that continue this log within the epoch of the fetch. They may leave a gap, because the batches
in it were compacted away.
"""

import logging

from sparklog.broker.partition.batches import Batches, begins_within, continuing, whole
from sparklog.broker.partition.log_guard import LogGuard
from sparklog.core.replication.actions import RestartAt
from sparklog.core.replication.replica import Replica
from sparklog.model.errors import ErrorCode
from sparklog.storage.log import Log

logger = logging.getLogger(__name__)


class FollowerAppend:
    """One per replica, kept when its role changes."""

    def __init__(self, log: Log, replica: Replica, log_guard: LogGuard) -> None:
        self._log = log
        self._replica = replica
        self._log_guard = log_guard

    def append(
        self,
        records: bytes | memoryview,
        batches: Batches,
        leader_epoch: int,
        fetch_offset: int,
        leader_high_watermark: int,
        leader_log_start_offset: int,
    ) -> bool:
        """False if the reply does not continue the log as it is now."""
        follower = self._replica.follower
        if follower is None or not follower.expects(leader_epoch, fetch_offset) or self._log_guard.is_offline:
            return False
        end_offset = fetch_offset
        if batches and begins_within(self._log, batches[0][1], fetch_offset):
            end_offset = batches[0][1].base_offset
        taken = continuing(batches, end_offset, (self._log.epochs.latest_epoch, leader_epoch))
        if batches and not taken:
            logger.warning(
                "%s: the leader sent what does not continue our log", self._replica.topic_partition
            )
            self._log_guard.apply(follower.on_fetch_error(ErrorCode.corrupt_message, leader_epoch))
            return False
        if taken and not self._take_over(whole(records, taken), taken, fetch_offset):
            return False
        self._log_guard.apply(follower.on_appended(leader_high_watermark, leader_log_start_offset))
        return True

    def _take_over(self, records: bytes | memoryview, taken: Batches, fetch_offset: int) -> bool:
        if taken[0][1].base_offset >= fetch_offset:
            return self._log_guard.append(records, taken)

        self._replica.note_log_effect(RestartAt(taken[0][1].base_offset))

        def begin_with_the_whole_batch() -> None:
            self._log.start_within(records, taken, fetch_offset)
            self._log_guard.log_changed()

        return self._log_guard.carry_out(begin_with_the_whole_batch)
