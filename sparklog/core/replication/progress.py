"""How far a leader knows each follower to be.

A follower counts as caught up at time t when it asked, at t, for everything the leader had; or when it asks
now for everything that the leader had at its previous fetch, which makes it caught up as of then. So a
follower that keeps pace with a busy leader stays in sync, though it never reaches the moving end.
"""

from dataclasses import dataclass

from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch
from sparklog.model.time import MonotonicMs

UNKNOWN_OFFSET = -1
SAME_AGAIN_MIN = 2
NEVER = MonotonicMs(-(2**62))


@dataclass(slots=True)
class FollowerProgress:
    """One follower. ``log_end_offset`` is unknown until it fetches in this leader's epoch."""

    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_caught_up_ms: MonotonicMs = NEVER
    last_fetch_ms: MonotonicMs = NEVER
    leader_end_at_last_fetch: int = UNKNOWN_OFFSET
    proposed_again_ms: MonotonicMs = NEVER
    is_refused: bool = False
    """The controller would not count it when it was proposed last: it is about to leave, not to join."""
    is_away: bool = False
    """Its broker was not among those that live when that was told last: it is not about to join either."""
    same_again: int = 0
    """Fetches in a row for what the fetch before could have had already."""

    def on_fetch(
        self,
        fetch_offset: int,
        leader_log_end_offset: int,
        broker_epoch: BrokerEpoch,
        now_ms: MonotonicMs,
        log_start_offset: int = UNKNOWN_OFFSET,
    ) -> None:
        if fetch_offset >= leader_log_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.leader_end_at_last_fetch != UNKNOWN_OFFSET:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        had_more = fetch_offset < self.leader_end_at_last_fetch
        self.same_again = self.same_again + 1 if fetch_offset == self.log_end_offset and had_more else 0
        self.broker_epoch = broker_epoch
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.last_fetch_ms = now_ms
        self.is_away = False
        self.leader_end_at_last_fetch = leader_log_end_offset

    @property
    def refuses(self) -> bool:
        """Whether it is time to suspect that what it gets is damaged. It may just have lost its connection,
        so not at once, and ever more seldom while nothing changes.
        """
        return self.same_again >= SAME_AGAIN_MIN and self.same_again & (self.same_again - 1) == 0

    def is_caught_up(self, leader_log_end_offset: int, now_ms: MonotonicMs, lag_max_ms: int) -> bool:
        if self.log_end_offset == leader_log_end_offset:
            return True
        return now_ms - self.last_caught_up_ms <= lag_max_ms
