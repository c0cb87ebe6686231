"""What a follower appends: a leader's replies, byte for byte; where it fetches on, and what else it hears.

The leader sends bytes by ``sendfile``, after it released its lock. If it lost leadership meanwhile, it may
have truncated, and the bytes may be its log of a later epoch, cut anywhere (KAFKA-18723). Only whole batches
are appended that continue this log within the epoch of the fetch. They may leave a gap, because the batches
in it were compacted away.
"""

import logging
from typing import Final

from sparklog.broker.partition.batches import Batches, begins_within, continuing, whole
from sparklog.broker.partition.log_guard import LogGuard
from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.actions import RestartAt
from sparklog.core.replication.epoch_history import EarlierHistory
from sparklog.core.replication.follower import FetchPosition
from sparklog.core.replication.leader import Diverging
from sparklog.core.replication.replica import Replica
from sparklog.model.errors import ErrorCode
from sparklog.storage.log import Log

logger: Final = logging.getLogger(__name__)


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
        *,
        leader_epoch: int,
        fetch_offset: int,
        leader_high_watermark: int,
        leader_log_start_offset: int,
    ) -> bool:
        """Append a leader's reply, byte for byte; False if it does not continue the log as it is now."""
        with self._log_guard.step:
            return self._append(
                records, batches, leader_epoch, fetch_offset, leader_high_watermark, leader_log_start_offset
            )

    def _append(
        self,
        records: bytes | memoryview,
        batches: Batches,
        leader_epoch: int,
        fetch_offset: int,
        leader_high_watermark: int,
        leader_log_start_offset: int,
    ) -> bool:
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

    # Fetching

    def fetch_position(self) -> FetchPosition | None:
        self._flush_if_owed()
        with self._log_guard.lock:
            follower = self._replica.follower
            return None if follower is None or self._log_guard.is_offline else follower.fetch_position()

    def _flush_if_owed(self) -> None:
        """With ``log.flush.acks=fsync``: flush, because the next fetch reports the flushed offset."""
        if self._replica.marks.owes_flush:
            self._log_guard.flush()

    def on_diverging(
        self, leader_epoch: int, fetch_offset: int, diverging: Diverging, leader_start: int
    ) -> None:
        with self._log_guard.step:
            follower = self._replica.follower
            if follower is not None and follower.expects(leader_epoch, fetch_offset):
                self._log_guard.apply(follower.on_diverging(diverging, leader_start))

    def on_fetch_error(self, leader_epoch: int, error: ErrorCode) -> None:
        with self._log_guard.step:
            if (follower := self._replica.follower) is not None:
                self._log_guard.apply(follower.on_fetch_error(error, leader_epoch))

    def on_leader_offsets(
        self,
        leader_epoch: int,
        start: int,
        end: int,
        producers: ProducerStates | None = None,
        history: EarlierHistory | None = None,
    ) -> None:
        with self._log_guard.step:
            follower = self._replica.follower
            if follower is not None and follower.leader_epoch == leader_epoch:
                self._log_guard.apply(follower.on_leader_offsets(start, end, producers, history))
