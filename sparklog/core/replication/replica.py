"""One replica of one partition: its watermarks, and the role it has now.

A leader epoch is taken up once: only a strictly greater one changes the role (KIP-101; stale or repeated
LeaderAndIsr requests change nothing). The shell feeds facts to ``role`` directly; changes of role go through
here. The recent events are part of every illegal transition.

Each leader epoch of this replica is announced: ``BeganLeading`` and later ``CeasedLeading``, in turn and with
rising epochs. A process that dies announces nothing; its next one begins with a greater epoch.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sparklog.core.producers.transactions import Transactions
from sparklog.core.producers.verification import Verifications
from sparklog.core.recent_events import RecentEvents
from sparklog.core.replication.actions import (
    Action,
    AssignEpoch,
    BeganLeading,
    CeasedLeading,
    RaiseLogStart,
    RestartAt,
    StartFetching,
    StopFetching,
    TruncateTo,
)
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.core.replication.follower import Follower
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.time import MonotonicMs

EVENTS_MAX = 64
"""Fewer than other machines have: a broker has thousands of replicas."""


@dataclass(slots=True)
class Replica:
    """``role`` is None until a first LeaderAndIsr, and again when the replica goes offline."""

    broker_id: BrokerId
    topic_partition: TopicPartition
    epochs: EpochHistory
    marks: Watermarks
    lag_max_ms: int
    role: Leader | Follower | None = None
    leader_epoch: int = -1
    generation: int = 0
    """Raised by every truncation: a flush that was begun before vouches for nothing after it.

    ``storage.log.Log`` has a count of its own, because the two do not rise together. The machine's rises when
    the replica decides to cut its log, even if that removes nothing. The log's rises when its files are cut,
    and when its directory is renamed; its recovery point and the cleaner's swaps depend on it. About a flush
    both are right: neither counts one that began before a cut.
    """
    events: RecentEvents = field(default_factory=lambda: RecentEvents(EVENTS_MAX))

    @property
    def leader(self) -> Leader | None:
        return self.role if isinstance(self.role, Leader) else None

    @property
    def follower(self) -> Follower | None:
        return self.role if isinstance(self.role, Follower) else None

    @property
    def may_give_up_front(self) -> bool:
        """Whether what the remote store has may leave this disk: at a leader always."""
        return self.follower is None or self.follower.may_give_up_front

    def on_leader_and_isr(
        self,
        state: PartitionState,
        *,
        broker_epoch: BrokerEpoch,
        now_ms: MonotonicMs,
        has_store: bool = False,
    ) -> list[Action]:
        """Take up a leader epoch greater than any before, as leader or as follower. ``has_store``: whether
        the topic's history is in a remote store.
        """
        if state.leader_epoch <= self.leader_epoch:
            return []
        if self.broker_id not in state.replicas:
            what = f"broker {self.broker_id} is no replica of {self.topic_partition} in {state}"
            raise self.events.illegal(what)
        self.events.note(f"leader {state.leader} in epoch {state.leader_epoch}, ISR {list(state.isr)}")
        stays = self.leader if state.leader == self.broker_id else None
        outlasting = [] if stays is None else stays.produces.take_outlasting(self.marks.log_end_offset)
        verifications = Verifications()
        if stays is not None and state.leader_epoch == stays.leader_epoch + 1:
            verifications = stays.verifications  # nobody else led in between, and appended a marker
        actions = self._leave_role()
        self.leader_epoch = state.leader_epoch
        if state.leader == self.broker_id:
            awaits_history = has_store and self._has_nothing_since_loss(state)
            return actions + self._lead(
                state, broker_epoch, now_ms, outlasting, verifications, awaits_history=awaits_history
            )
        self.role = Follower(
            state.leader, state.leader_epoch, self.marks, self.epochs, lost_in_epoch=state.lost_in_epoch
        )
        fetch: Action = (
            StartFetching(state.leader, state.leader_epoch) if state.has_leader else StopFetching()
        )
        return [*actions, fetch]

    def on_offline(self, reason: str) -> list[Action]:
        """The log failed, or the replica is being removed: nothing is served any more."""
        self.events.note(f"offline: {reason}")
        return [*self._leave_role(), StopFetching()]

    def on_log_changed(
        self,
        log_start_offset: int,
        log_end_offset: int,
        transactions: Transactions,
        *,
        local_start_offset: int | None = None,
    ) -> None:
        """The log was appended to, truncated or trimmed; watermarks follow into its range.

        ``local_start_offset``: where it begins on this disk; None: at the log start.
        ``transactions``: those of the log, which go on changing with it.
        """
        before = self.marks.high_watermark
        if log_end_offset < self.marks.log_end_offset:
            self.generation += 1
        if self.marks.flushed_offset is not None:
            self.marks.flushed_offset = min(self.marks.flushed_offset, log_end_offset)
        self.marks.log_start_offset = log_start_offset
        self.marks.local_start_offset = log_start_offset if local_start_offset is None else local_start_offset
        self.marks.log_end_offset = log_end_offset
        self.marks.transactions = transactions
        self.marks.clamp()
        if self.marks.high_watermark < before:
            self.events.note(f"high watermark {before} fell to {self.marks.high_watermark} with a truncation")

    def on_flushed(self, offset: int, generation: int, now_ms: MonotonicMs) -> list[Action]:
        """All below ``offset`` was on disk when the flush, begun in ``generation``, was through."""
        flushed = self.marks.flushed_offset
        if flushed is None or generation != self.generation or offset <= flushed:
            return []
        self.marks.flushed_offset = offset
        return self.role.on_flushed(now_ms) if isinstance(self.role, Leader) else []

    def note_log_effect(self, effect: Action) -> None:
        if isinstance(effect, TruncateTo | RestartAt):
            self.generation += 1
            if isinstance(effect, RestartAt) and self.marks.flushed_offset is not None:
                self.marks.flushed_offset = min(self.marks.flushed_offset, effect.offset)
        if isinstance(effect, TruncateTo | RestartAt | RaiseLogStart):
            self.events.note(f"{effect} of a log that ended at {self.marks.log_end_offset}")

    def check_invariants(self) -> None:
        self.marks.check_invariants()
        if self.role is not None:
            self.role.check_invariants()
            what = f"{self.topic_partition} on broker {self.broker_id} has a role of another epoch"
            assert self.role.leader_epoch == self.leader_epoch, self.events.illegal(what)

    def _leave_role(self) -> list[Action]:
        """The last actions of the role that ends; every wait that ends with it is answered before listeners
        are notified.
        """
        actions = [] if self.role is None else self.role.resign()
        if isinstance(self.role, Leader):
            actions.append(CeasedLeading(self.role.leader_epoch))
        self.role = None
        return actions

    def _has_nothing_since_loss(self, state: PartitionState) -> bool:
        """Whether an election may have lost records, and this log has no record of its epoch or later. One
        that gave up the store is no reason to ask the store.
        """
        if state.lost_in_epoch <= state.store_given_up_in_epoch:
            return False
        last_epoch = self.epochs.epoch_of_last_record(self.marks.log_end_offset, state.lost_in_epoch)
        return last_epoch < state.lost_in_epoch

    def _lead(
        self,
        state: PartitionState,
        broker_epoch: BrokerEpoch,
        now_ms: MonotonicMs,
        outlasting: Iterable[tuple[int, int]],
        verifications: Verifications,
        *,
        awaits_history: bool,
    ) -> list[Action]:
        self.role = Leader.take_over(
            state,
            broker_id=self.broker_id,
            broker_epoch=broker_epoch,
            marks=self.marks,
            epochs=self.epochs,
            lag_max_ms=self.lag_max_ms,
            now_ms=now_ms,
            awaits_history=awaits_history,
        )
        self.role.verifications = verifications
        # The epoch begins before anything is appended in it (KAFKA-7415).
        begin = AssignEpoch(state.leader_epoch, self.marks.log_end_offset)
        announced = BeganLeading(state.leader_epoch)
        return [begin, StopFetching(), announced, *self.role.on_began(outlasting, now_ms)]
