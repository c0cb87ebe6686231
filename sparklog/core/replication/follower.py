"""A follower of one partition: its fetch position, its truncation and its high watermark.

A fetch carries the epoch of the follower's last record. The leader's reply either has batches that continue
the log, or the point where the logs diverge (KIP-101, 279, 320, and 595's diverging epoch). The follower
truncates to that point, never to the high watermark. A reply counts only if its fetch offset is still the
log's end, so that a late reply cannot truncate or extend a changed log (KAFKA-13207).
"""

from dataclasses import dataclass, field

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.actions import (
    Action,
    AskLeaderOffsets,
    BackOff,
    RaiseLogStart,
    RestartAt,
    TruncateTo,
    WakeFetch,
)
from sparklog.core.replication.epoch_fence import check_leader_epoch
from sparklog.core.replication.epoch_history import EarlierHistory, EpochHistory
from sparklog.core.replication.leader import Diverging
from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.waits import FetchWaits
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH, NO_LEADER, BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """What the next fetch asks for."""

    leader_epoch: LeaderEpoch
    fetch_offset: int
    last_fetched_epoch: int
    asks_first: bool = False
    """Whether the leader's offsets must be known before anything is fetched."""


@dataclass(slots=True)
class Follower:
    """One partition's follower in one leader epoch. ``failed``: it was fenced, and waits for a newer
    epoch."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    marks: Watermarks
    epochs: EpochHistory
    failed: ErrorCode | None = None
    fetches: FetchWaits = field(default_factory=FetchWaits)
    lost_in_epoch: LeaderEpoch = NO_EPOCH
    """The last epoch that began with an election which may have lost records."""
    begins_anew: bool = False
    """Whether its log shares no record with the leader's, and it has asked for the leader's log start and
    producer states, to restart its log there."""
    is_front_known: bool = False
    """Whether it has asked in this epoch where its leader's disk begins."""

    def has_no_leader_in(self, leader_epoch: int) -> bool:
        """Whether this is the present leader epoch, and nobody leads in it."""
        return self.leader == NO_LEADER and self.leader_epoch == leader_epoch

    @property
    def is_front_in_doubt(self) -> bool:
        """Whether the leader's disk may have records that neither this one nor the remote store has.

        After an election that lost records, what this log gave up on its disk may have been cut from the
        history since. As long as this log has nothing of an epoch since then, it has to ask.
        """
        has_history = self.marks.log_start_offset < self.marks.local_start_offset
        return has_history and not self.is_front_known and not self.may_give_up_front

    @property
    def may_give_up_front(self) -> bool:
        """Whether what the remote store has may leave this disk. As long as this log has nothing of an epoch
        since an election that lost records, the store may lose what it has from before, and this replica,
        which may be in sync, would have to begin anew.
        """
        return self.epochs.latest_epoch >= self.lost_in_epoch

    def fetch_position(self) -> FetchPosition | None:
        """The position of the next fetch, or None without a leader to ask, or with a flush due."""
        if self.leader == NO_LEADER or self.failed is not None:
            return None
        if self.marks.owes_flush:
            # A fetch reports all records below its offset as stored, which with fsync means on disk.
            return None
        return FetchPosition(
            self.leader_epoch,
            self.marks.log_end_offset,
            self.epochs.latest_epoch,
            self.is_front_in_doubt,
        )

    def expects(self, leader_epoch: int, fetch_offset: int) -> bool:
        """Whether a reply to a fetch from ``fetch_offset`` is about the log as it is now."""
        return (
            self.failed is None
            and leader_epoch == self.leader_epoch
            and fetch_offset == self.marks.log_end_offset
        )

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Whether a consumer means this leader epoch; -1 if it does not say."""
        return check_leader_epoch(current_leader_epoch, self.leader_epoch)

    def latest_offset(self, visibility: Visibility) -> int | None:
        """The end of this log, as far as it is seen so: it may lag the leader's, and go back."""
        return self.marks.readable_end(visibility)

    def check_read(self, fetch_offset: int) -> ErrorCode:
        """Whether a consumer may read from ``fetch_offset`` on here (KIP-392). Beyond this log's end the
        leader may have records; between the high watermark and the end a read is empty, without an error.
        """
        if fetch_offset < self.marks.log_start_offset:
            return ErrorCode.offset_out_of_range
        is_doubtful = fetch_offset < self.marks.local_start_offset and self.is_front_in_doubt
        if fetch_offset > self.marks.log_end_offset or is_doubtful:
            return ErrorCode.offset_not_available
        return ErrorCode.none

    def on_fetch_waits(self, token: int, fetch_offset: int, visibility: Visibility) -> list[Action]:
        """A consumer found too few bytes; wake it when it may read more, or at once if it may already."""
        if fetch_offset < self.marks.readable_end(visibility):
            return [WakeFetch(token)]
        self.fetches.add(token, fetch_offset, visibility)
        return []

    def resign(self) -> list[Action]:
        """The role ends: wake all waiting fetches."""
        return [WakeFetch(token) for token in self.fetches.take_all()]

    def on_diverging(self, diverging: Diverging, leader_start: int) -> list[Action]:
        """Truncate to where the logs diverge; this reply moves no high watermark (KAFKA-14704)."""
        offset = self.truncation_offset(diverging)
        self.begins_anew = self._shares_nothing(offset, leader_start)
        return [AskLeaderOffsets() if self.begins_anew else TruncateTo(offset)]

    def _shares_nothing(self, offset: int, leader_start: int) -> bool:
        """If the logs diverge before this log's local start, this disk shares no record with the leader's.

        The records below this log's start were part of a log that an unclean election discarded. The leader's
        log may start earlier, and an ISR member must have all of it. (Kafka's follower starts at the cut.)
        """
        start = self.marks.local_start_offset
        is_given_up = offset < start or (offset == start and self.epochs.latest_epoch < self.lost_in_epoch)
        return is_given_up and 0 <= leader_start <= offset

    def truncation_offset(self, diverging: Diverging) -> int:
        """The offset to truncate to, from the leader's answer for this log's last epoch (KIP-279)."""
        log_end_offset = self.marks.log_end_offset
        if diverging.end_offset < 0:
            return self.marks.high_watermark
        if diverging.epoch < 0:
            return min(diverging.end_offset, log_end_offset)
        own_epoch, own_end = self.epochs.end_offset_for(diverging.epoch, log_end_offset)
        if own_epoch < 0:
            return min(diverging.end_offset, log_end_offset)
        if own_epoch != diverging.epoch:
            return min(own_end, log_end_offset)
        return min(own_end, diverging.end_offset, log_end_offset)

    def on_appended(self, leader_high_watermark: int, leader_log_start_offset: int) -> list[Action]:
        """A reply without divergence was appended; the log now ends at ``marks.log_end_offset``."""
        self.begins_anew = False
        actions: list[Action] = []
        if leader_log_start_offset > self.marks.log_start_offset:
            actions.append(RaiseLogStart(min(leader_log_start_offset, self.marks.log_end_offset)))
        offset = min(leader_high_watermark, self.marks.log_end_offset)
        if offset > self.marks.high_watermark:
            self.marks.set_high_watermark(offset)
            actions += map(WakeFetch, self.fetches.take_for_high_watermark(self.marks))
        return actions

    def on_fetch_error(self, error: ErrorCode, request_leader_epoch: int) -> list[Action]:
        """The leader refused: ask for its offsets, wait for a newer epoch, or retry later."""
        if request_leader_epoch != self.leader_epoch:
            return []
        self.begins_anew = False
        if error in (ErrorCode.offset_out_of_range, ErrorCode.offset_moved_to_tiered_storage):
            return [AskLeaderOffsets()]
        if error is ErrorCode.fenced_leader_epoch:
            self.failed = error
        return [BackOff(error)]

    def on_leader_offsets(
        self,
        leader_start: int,
        leader_end: int,
        producers: ProducerStates | None = None,
        history: EarlierHistory | None = None,
    ) -> list[Action]:
        """The leader's local start and end, requested after OFFSET_OUT_OF_RANGE, when the fetch offset is
        only in the remote store, when the logs share no record, or its front is in doubt. ``producers``:
        their states from before its local start. ``history``: what the remote store has before that.

        The follower truncates only if the leader's log ends before its own, and restarts only if the logs
        share no record, or if it lacks what the leader's disk begins with and the store may lack it, too: an
        ISR member must have all of it. A leader whose log has grown meanwhile must not cost the follower its
        log (KAFKA-2143). A log whose records are in the remote store alone restarts, too, where the leader
        has deleted those: else it would report records that the leader's epochs no longer show.
        """
        start, end = self.marks.local_start_offset, self.marks.log_end_offset
        has_nothing_of_ours = leader_start > end or leader_start == end > self.marks.log_start_offset
        if leader_end < end:
            has_nothing_of_ours = self._shares_nothing(leader_end, leader_start)
        lacks_front = self.is_front_in_doubt and leader_start < start
        self.is_front_known = True
        if self.begins_anew or has_nothing_of_ours or lacks_front:
            self.begins_anew = False
            return [RestartAt(leader_start, producers, history)]
        return [TruncateTo(leader_end)] if leader_end < end else []

    def check_invariants(self) -> None:
        self.marks.check_invariants()
