"""The leader's view of each follower's progress.

A follower is caught up at the time of a fetch from the leader's log end. A fetch from the log end that the
leader had at the follower's previous fetch makes it caught up as of that previous fetch. A follower that
keeps pace with a busy leader therefore stays in sync, although it never reaches the moving end.
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
    """The controller found it ineligible when it was last proposed, so it will not join soon."""
    is_away: bool = False
    """Its broker is not in the last list of live brokers, so it will not join soon."""
    same_again: int = 0
    """Consecutive fetches from the same offset, although the leader had more at the previous one."""

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
        """Whether it seems to refuse batches, which may then be damaged. True not at the first repetition,
        because a connection may have been lost, and then at ever longer intervals (powers of two).
        """
        return self.same_again >= SAME_AGAIN_MIN and self.same_again & (self.same_again - 1) == 0

    def is_caught_up(self, leader_log_end_offset: int, now_ms: MonotonicMs, lag_max_ms: int) -> bool:
        if self.log_end_offset == leader_log_end_offset:
            return True
        return now_ms - self.last_caught_up_ms <= lag_max_ms
