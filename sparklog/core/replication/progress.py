"""How far a leader knows each follower to be.

A follower counts as caught up at time t when it asked, at t, for everything the leader had; or when it asks
now for everything that the leader had at its previous fetch, which makes it caught up as of then. So a
follower that keeps pace with a busy leader stays in sync, though it never reaches the moving end.
"""

from dataclasses import dataclass

from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch
from sparklog.model.time import MonotonicMs

UNKNOWN_OFFSET = -1
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

    def on_fetch(
        self, fetch_offset: int, leader_log_end_offset: int, broker_epoch: BrokerEpoch, now_ms: MonotonicMs
    ) -> None:
        if fetch_offset >= leader_log_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.leader_end_at_last_fetch != UNKNOWN_OFFSET:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.broker_epoch = broker_epoch
        self.log_end_offset = fetch_offset
        self.last_fetch_ms = now_ms
        self.leader_end_at_last_fetch = leader_log_end_offset

    def is_caught_up(self, leader_log_end_offset: int, now_ms: MonotonicMs, lag_max_ms: int) -> bool:
        if self.log_end_offset == leader_log_end_offset:
            return True
        return now_ms - self.last_caught_up_ms <= lag_max_ms
