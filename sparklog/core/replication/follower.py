"""A follower of one partition: how it fetches, where it truncates, what it believes to be committed.

The fetch carries the epoch of the follower's last record; the leader's reply either has batches that continue
the log, or says where the two logs part (KIP-101, 279, 320, and 595's diverging epoch). Truncation follows
that, never the high watermark. A reply counts only while its fetch offset is still our end, so that a reply
to an earlier question cannot cut or extend the wrong log (KAFKA-13207).
"""

from dataclasses import dataclass, field

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
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.core.replication.leader import Diverging
from sparklog.core.replication.waits import FetchWaits
from sparklog.core.replication.watermarks import Watermarks
from sparklog.core.transaction.producer_state import ProducerStates
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH, NO_LEADER, BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """What the next fetch asks for."""

    leader_epoch: LeaderEpoch
    fetch_offset: int
    last_fetched_epoch: int


@dataclass(slots=True)
class Follower:
    """One partition's follower in one leader epoch. ``failed`` says that it waits for a newer epoch."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    marks: Watermarks
    epochs: EpochHistory
    failed: ErrorCode | None = None
    fetches: FetchWaits = field(default_factory=FetchWaits)
    lost_in_epoch: LeaderEpoch = NO_EPOCH
    """The last epoch that began with an election which may have lost records."""
    begins_anew: bool = False
    """Whether it shares nothing with its leader, and has asked where that begins and what was sent before."""

    def fetch_position(self) -> FetchPosition | None:
        """What to fetch next, or None while there is nobody to ask."""
        if self.leader == NO_LEADER or self.failed is not None:
            return None
        if self.marks.owes_flush:
            # A fetch claims all below its offset, and with log.flush.acks=fsync that means on disk.
            return None
        return FetchPosition(self.leader_epoch, self.marks.log_end_offset, self.epochs.latest_epoch)

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

    def check_read(self, fetch_offset: int) -> ErrorCode:
        """Whether a consumer may read from ``fetch_offset`` on here (KIP-392). What we do not have yet, the
        leader may have; between our high watermark and our end is nothing to see yet, which is no error.
        """
        if fetch_offset < self.marks.log_start_offset:
            return ErrorCode.offset_out_of_range
        if fetch_offset > self.marks.log_end_offset:
            return ErrorCode.offset_not_available
        return ErrorCode.none

    def on_fetch_waits(self, token: int, fetch_offset: int) -> list[Action]:
        """A consumer found too few bytes; it is woken when there are more, also if that is already so."""
        if fetch_offset < self.marks.high_watermark:
            return [WakeFetch(token)]
        self.fetches.add(token, fetch_offset, is_follower=False)
        return []

    def resign(self) -> list[Action]:
        """The role is over: whoever waits looks again."""
        return [WakeFetch(token) for token in self.fetches.take_all()]

    def on_diverging(self, diverging: Diverging, leader_start: int) -> list[Action]:
        """Truncate to where the logs part; no watermark moves on this reply (KAFKA-14704)."""
        offset = self.truncation_offset(diverging)
        self.begins_anew = self._shares_nothing(offset, leader_start)
        return [AskLeaderOffsets() if self.begins_anew else TruncateTo(offset)]

    def _shares_nothing(self, offset: int, leader_start: int) -> bool:
        """Where logs part before ours begins, they share nothing that we have. What we gave up at our start
        was of the log that an election gave up; the leader's may begin before, and whoever is counted must
        have all of it. (Kafka's follower begins at the cut.)
        """
        start = self.marks.log_start_offset
        is_given_up = offset < start or (offset == start and self.epochs.latest_epoch < self.lost_in_epoch)
        return is_given_up and 0 <= leader_start <= offset

    def truncation_offset(self, diverging: Diverging) -> int:
        """Where to cut, by the leader's answer for our last epoch (KIP-279)."""
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
        """A reply without divergence was taken over; our log now ends at ``marks.log_end_offset``."""
        self.begins_anew = False
        actions: list[Action] = []
        if leader_log_start_offset > self.marks.log_start_offset:
            actions.append(RaiseLogStart(min(leader_log_start_offset, self.marks.log_end_offset)))
        offset = min(leader_high_watermark, self.marks.log_end_offset)
        if offset > self.marks.high_watermark:
            self.marks.high_watermark = offset
            actions += map(WakeFetch, self.fetches.take_for_high_watermark(offset))
        return actions

    def on_fetch_error(self, error: ErrorCode, request_leader_epoch: int) -> list[Action]:
        """The leader refused: ask where its log is, wait for a newer epoch, or try again later."""
        if request_leader_epoch != self.leader_epoch:
            return []
        self.begins_anew = False
        if error is ErrorCode.offset_out_of_range:
            return [AskLeaderOffsets()]
        if error is ErrorCode.fenced_leader_epoch:
            self.failed = error
        return [BackOff(error)]

    def on_leader_offsets(
        self, leader_start: int, leader_end: int, producers: ProducerStates | None = None
    ) -> list[Action]:
        """Where the leader's log starts and ends, asked after OFFSET_OUT_OF_RANGE or where logs share
        nothing, and what it knows of ``producers`` from before its start.

        Only a leader that ends below us makes us truncate, only one that has nothing of what we have makes us
        start anew: a leader that has grown past us in the meantime must not cost us our log (KAFKA-2143).
        """
        start, end = self.marks.log_start_offset, self.marks.log_end_offset
        has_nothing_of_ours = leader_start > end or leader_start == end > start
        if leader_end < end:
            has_nothing_of_ours = self._shares_nothing(leader_end, leader_start)
        if self.begins_anew or has_nothing_of_ours:
            self.begins_anew = False
            return [RestartAt(leader_start, producers)]
        return [TruncateTo(leader_end)] if leader_end < end else []

    def check_invariants(self) -> None:
        self.marks.check_invariants()
