"""The leader of one partition: its ISR, its high watermark, and its waiting requests.

Kafka's rules (Partition.scala; KIP-101, 207, 279, 320, 841, 903), with two deliberate differences from its
ZooKeeper era:

* A write with acks=all that a shrinking ISR leaves short of ``min.insync.replicas`` is answered at once with
  NOT_ENOUGH_REPLICAS_AFTER_APPEND, not at its time-out.
* A leader advances the high watermark only while the *committed* ISR has min(min.insync.replicas, replication
  factor) members (KAFKA-15583: otherwise records become visible and are then lost). Replicas that leave such
  an ISR stay eligible as leaders, because nothing is committed without them, not even below the epoch's start
  (docs/decisions/0004).

After an election that may have lost records, a leader whose log has none since then waits until its log was
compared with the history in the remote store, if the topic has one (``awaits_history``). Until then it serves
nobody: a short log would cut its followers, and send consumers back.

The ``on_...`` methods receive facts and return actions. The object lives for one leader epoch.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.producers.verification import Verifications
from sparklog.core.replication.actions import (
    Action,
    AssignEpoch,
    CheckLog,
    CompleteDeletion,
    CompleteProduce,
    FlushLog,
    HandOver,
    ProposeIsr,
    RaiseLogStart,
    RestartAt,
    WakeFetch,
)
from sparklog.core.replication.epoch_fence import check_leader_epoch
from sparklog.core.replication.epoch_history import EarlierHistory, EpochHistory
from sparklog.core.replication.follower_progress import NEVER, UNKNOWN_OFFSET, FollowerProgress
from sparklog.core.replication.isr import (
    CommittedIsr,
    ExpandingIsr,
    IsrState,
    ShrinkingIsr,
    committed_isr,
    effective_isr,
    pending_proposal,
)
from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.waits import DeletionWaits, FetchWaits, ProduceWaits
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH, BrokerEpoch, BrokerId, LeaderEpoch
from sparklog.model.kafka_numbers import ACKS, ACKS_ALL
from sparklog.model.time import MonotonicMs

NOBODY_WAITS: Mapping[BrokerId, MonotonicMs] = MappingProxyType({})

INELIGIBLE_PAUSE_MS = 500
"""Pause before a follower is proposed again that the controller found ineligible. Without it every fetch
would repeat the proposal, for a follower that shuts down or whose disk failed even for long.
"""


@dataclass(frozen=True, slots=True)
class IsrReply:
    """The controller's answer to a proposal (one partition of an AlterPartition response)."""

    error: ErrorCode
    isr: tuple[BrokerId, ...] = ()
    leader_epoch: int = -1
    partition_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Diverging:
    """The point where a follower's log diverges: the largest common epoch and its end (exclusive)."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a log begins anew after the history in its remote store, with what that knows of before."""

    offset: int
    history: EarlierHistory
    producers: ProducerStates = field(repr=False)


@dataclass(slots=True)
class Leader:
    """One partition's leader in one leader epoch."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    leader_epoch: LeaderEpoch
    epoch_start_offset: int
    replicas: tuple[BrokerId, ...]
    isr: IsrState
    marks: Watermarks
    epochs: EpochHistory
    min_isr: int
    lag_max_ms: int
    followers: dict[BrokerId, FollowerProgress] = field(default_factory=dict)
    produces: ProduceWaits = field(default_factory=ProduceWaits)
    fetches: FetchWaits = field(default_factory=FetchWaits)
    deletions: DeletionWaits = field(default_factory=DeletionWaits)
    verifications: Verifications = field(default_factory=Verifications)
    last_tick_ms: MonotonicMs = NEVER
    awaits_history: bool = False
    lost_in_epoch: LeaderEpoch = NO_EPOCH
    store_given_up_in_epoch: LeaderEpoch = NO_EPOCH
    _proposals: int = 0

    @classmethod
    def take_over(
        cls,
        state: PartitionState,
        *,
        broker_id: BrokerId,
        broker_epoch: BrokerEpoch,
        marks: Watermarks,
        epochs: EpochHistory,
        lag_max_ms: int,
        now_ms: MonotonicMs,
        awaits_history: bool = False,
    ) -> "Leader":
        """Begin a leader epoch: ISR members count as caught up now; every follower's log end is unknown."""
        followers = {
            replica: FollowerProgress(last_caught_up_ms=now_ms if replica in state.isr else NEVER)
            for replica in state.replicas
            if replica != broker_id
        }
        return cls(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            leader_epoch=state.leader_epoch,
            epoch_start_offset=marks.log_end_offset,
            replicas=state.replicas,
            isr=CommittedIsr(frozenset(state.isr), state.partition_epoch),
            marks=marks,
            epochs=epochs,
            min_isr=min(state.min_insync_replicas, len(state.replicas)),
            lag_max_ms=lag_max_ms,
            followers=followers,
            awaits_history=awaits_history,
            lost_in_epoch=state.lost_in_epoch,
            store_given_up_in_epoch=state.store_given_up_in_epoch,
        )

    @property
    def loss_end(self) -> int:
        """The log's end, exclusive, at the last election that may have lost records; 0 without such one.

        Records that were acknowledged at this offset or later, before that election, may be gone.
        """
        return 0 if self.lost_in_epoch < 0 else self.epochs.end_before(self.lost_in_epoch)

    def on_history(self, beginning: Beginning | None) -> list[Action]:
        """The log was compared with the history in the store. ``beginning``: where it begins anew, because it
        lacks a part of the history; None if it lacks nothing.

        ``on_appended`` follows, which advances the high watermark in the log as it is then.
        """
        self.awaits_history = False
        if beginning is None:
            return []
        self.epoch_start_offset = beginning.offset
        restart = RestartAt(beginning.offset, beginning.producers, beginning.history)
        return [restart, AssignEpoch(self.leader_epoch, beginning.offset)]

    @property
    def may_lack_records(self) -> bool:
        """Whether an election of this partition may ever have lost acknowledged records."""
        return self.lost_in_epoch >= 0

    # Writing

    def refuse_append(self, acks: int) -> ErrorCode:
        """Why a write may not be appended now, or ``none``."""
        if acks not in ACKS:
            return ErrorCode.invalid_required_acks
        if acks == ACKS_ALL and self.is_under_min_isr:
            return ErrorCode.not_enough_replicas
        return ErrorCode.none

    def why_refused(self, error: ErrorCode) -> str:
        """The message for a producer beside the code; empty if the code suffices."""
        if error is not ErrorCode.not_enough_replicas:
            return ""
        members = sorted(committed_isr(self.isr).members)
        return (
            f"in sync are {len(members)} replicas {members}, but min.insync.replicas={self.min_isr}: "
            "bring the others' brokers back"
        )

    def on_appended(self, now_ms: MonotonicMs) -> list[Action]:
        """The log grew to ``marks.log_end_offset``: wake followers; a lone ISR member commits at once."""
        woken = self.fetches.take_for_log_end(self.marks)
        flush = [FlushLog()] if self.marks.owes_flush else []
        return [*map(WakeFetch, woken), *self._advance_high_watermark(now_ms), *flush]

    def on_flushed(self, now_ms: MonotonicMs) -> list[Action]:
        """More of this log is flushed, which may commit records."""
        return self._advance_high_watermark(now_ms)

    def on_produce_waits(self, token: int, required_offset: int, *, outlasts: bool = False) -> list[Action]:
        """A write with acks=all, appended up to ``required_offset`` (exclusive), waits to be committed.

        ``outlasts``: it goes on waiting if this replica leads in the next epoch too.
        """
        if self.marks.high_watermark >= required_offset:
            return [CompleteProduce(token, ErrorCode.none)]
        if self.is_under_min_isr:
            return [CompleteProduce(token, ErrorCode.not_enough_replicas_after_append)]
        self.produces.add(token, required_offset, outlasts=outlasts)
        return []

    def on_began(self, outlasting: Iterable[tuple[int, int]], now_ms: MonotonicMs) -> list[Action]:
        """The epoch has begun. ``outlasting`` writes, by required offset and token, waited in the one before,
        in which this replica led as well.

        To answer them with an error would have their producers send them again, although all are in the log.
        """
        for required_offset, token in outlasting:
            self.produces.add(token, required_offset, outlasts=True)
        return [*self.on_appended(now_ms), *self._fail_short_writes()]

    # Deleting

    def on_delete_records(self, offset: int) -> list[Action] | ErrorCode:
        """Delete records below ``offset``; -1 means the high watermark (KIP-107)."""
        wanted = self.marks.high_watermark if offset == -1 else offset
        if not 0 <= wanted <= self.marks.high_watermark:
            return ErrorCode.offset_out_of_range
        return [RaiseLogStart(wanted)] if wanted > self.marks.log_start_offset else []

    def on_deletion_waits(
        self, token: int, offset: int, live: Collection[BrokerId], now_ms: MonotonicMs
    ) -> list[Action]:
        """A deletion below ``offset`` waits until every replica on a ``live`` broker has deleted."""
        self.deletions.add(token, offset)
        return self.on_live_brokers(live, now_ms)

    def on_live_brokers(self, live: Collection[BrokerId], now_ms: MonotonicMs) -> list[Action]:
        """Apply the list of live brokers. Dead replicas hold up neither deletions (they delete when they are
        back) nor, unless they are ISR members, the high watermark. The controller removes dead ISR members.
        """
        self.deletions.live = frozenset(live)
        for follower, progress in self.followers.items():
            progress.is_away = follower not in self.deletions.live
        return [*self._advance_high_watermark(now_ms), *self._complete_deletions()]

    @property
    def low_watermark(self) -> int:
        """The least log start of the live replicas; -1 while one is unknown."""
        starts = [
            progress.log_start_offset
            for replica, progress in self.followers.items()
            if replica in self.deletions.live
        ]
        return min([self.marks.log_start_offset, *starts])

    def _complete_deletions(self) -> list[Action]:
        if not self.deletions:
            return []
        low_watermark = self.low_watermark
        satisfied = self.deletions.waits.take_satisfied(low_watermark)
        return [CompleteDeletion(token, ErrorCode.none, low_watermark) for token in satisfied]

    # Reading

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Whether a reader means this leader epoch (-1 if it does not say), and the leader serves already."""
        error = check_leader_epoch(current_leader_epoch, self.leader_epoch)
        is_early = error is ErrorCode.none and self.awaits_history
        return ErrorCode.offset_not_available if is_early else error

    def check_fetch_position(self, fetch_offset: int, last_fetched_epoch: int) -> Diverging | ErrorCode:
        """Compare a fetcher's last record with our history (KIP-595's diverging epoch in fetch replies)."""
        start, end = self.marks.log_start_offset, self.marks.log_end_offset
        if last_fetched_epoch >= 0:
            epoch, end_offset = self.epochs.end_offset_for(last_fetched_epoch, end)
            if epoch < 0 or end_offset < 0 or fetch_offset < start:
                return ErrorCode.offset_out_of_range
            if epoch < last_fetched_epoch or end_offset < fetch_offset:
                return Diverging(epoch, end_offset)
        if not start <= fetch_offset <= end:
            return ErrorCode.offset_out_of_range
        return ErrorCode.none

    def check_local(self, fetch_offset: int) -> ErrorCode:
        """Whether this disk still has ``fetch_offset``, which is within the log, for a follower. A follower
        gets nothing from the remote store, because it need not copy what is there: it begins anew at the
        local start.
        """
        if fetch_offset < self.marks.local_start_offset:
            return ErrorCode.offset_moved_to_tiered_storage
        return ErrorCode.none

    def check_follower_log(
        self, follower: BrokerId, fetch_offset: int, last_fetched_epoch: int, log_start_offset: int
    ) -> Diverging | ErrorCode:
        """Check the records of a follower outside the ISR, whose fetch offset is within this log.

        Epochs show up to which record two logs are equal. An epoch older than this history ended at this
        log's start or before; the exact end was deleted with the records. A follower whose last epoch is so
        old may have records below this log's start that were never committed. It truncates to there, and
        restarts.
        """
        start, known = self.marks.log_start_offset, self.epochs.entries
        has_records = fetch_offset > max(0, log_start_offset)
        if not has_records or not known or not 0 <= last_fetched_epoch < known[0].epoch:
            return ErrorCode.none
        if follower in effective_isr(self.isr):
            return ErrorCode.none  # it had every committed record, including those deleted since
        return Diverging(last_fetched_epoch, start) if fetch_offset > start else ErrorCode.offset_out_of_range

    def latest_offset(self, visibility: Visibility) -> int | None:
        """The answer to ListOffsets(latest); None while it could still decrease (KIP-207)."""
        if visibility is not Visibility.LOG_END and self.marks.high_watermark < self.epoch_start_offset:
            return None
        return self.marks.readable_end(visibility)

    def on_fetch_waits(self, token: int, fetch_offset: int, visibility: Visibility) -> list[Action]:
        """A fetch found too few bytes; wake it when more can be read, or at once if they can already."""
        if fetch_offset < self.marks.readable_end(visibility):
            return [WakeFetch(token)]
        self.fetches.add(token, fetch_offset, visibility)
        return []

    # Followers and the ISR

    def check_follower(self, follower: BrokerId, broker_epoch: BrokerEpoch) -> ErrorCode:
        """Whether ``follower`` is a replica, and not in an earlier incarnation (KIP-903)."""
        progress = self.followers.get(follower)
        if progress is None:
            return ErrorCode.unknown_leader_epoch
        if -1 < broker_epoch < progress.broker_epoch:
            return ErrorCode.stale_broker_epoch
        return ErrorCode.none

    def on_follower_fetch(
        self,
        follower: BrokerId,
        broker_epoch: BrokerEpoch,
        fetch_offset: int,
        now_ms: MonotonicMs,
        log_start_offset: int = UNKNOWN_OFFSET,
    ) -> list[Action]:
        """A fetch from ``fetch_offset`` proves that the follower has all records from its log start up to
        it."""
        progress = self.followers[follower]
        progress.on_fetch(fetch_offset, self.marks.log_end_offset, broker_epoch, now_ms, log_start_offset)
        return [
            *self._advance_high_watermark(now_ms),
            *self._maybe_expand(follower, now_ms),
            *self._complete_deletions(),
            *([CheckLog(fetch_offset)] if progress.refuses else []),
        ]

    def on_damage(self) -> list[Action]:
        """This log is damaged. Another ISR member should lead, because it has every committed record."""
        others = committed_isr(self.isr).members - {self.broker_id}
        return [HandOver()] if others else []

    def on_tick(
        self, now_ms: MonotonicMs, waiting_since: Mapping[BrokerId, MonotonicMs] = NOBODY_WAITS
    ) -> list[Action]:
        """Look for lagging ISR members; call every half ``lag_max_ms``.

        A member whose fetch waits in this broker is judged as of that fetch's arrival, because the leader is
        the slow one (KIP-501). After a pause of the leader no member is judged until all had time to fetch.
        """
        self.verifications.forget_what_is_old(now_ms)
        paused = NEVER != self.last_tick_ms < now_ms - self.lag_max_ms
        self.last_tick_ms = now_ms
        if paused:
            return []
        # A joining follower may have stopped fetching, and nothing else frees the writes that wait for it.
        advance = self._advance_high_watermark(now_ms)
        if pending_proposal(self.isr) is not None:
            return advance
        committed = committed_isr(self.isr)
        leaving = frozenset(
            member
            for member in committed.members - {self.broker_id}
            if not self.followers[member].is_caught_up(
                self.marks.log_end_offset, waiting_since.get(member, now_ms), self.lag_max_ms
            )
        )
        if not leaving:
            return advance
        proposal = self._next_proposal()
        self.isr = ShrinkingIsr(committed, leaving, proposal)
        return [*advance, self._propose(proposal, committed.members - leaving)]

    def on_isr_reply(self, proposal: int, reply: IsrReply, now_ms: MonotonicMs) -> list[Action]:
        """The controller's answer to ``proposal``; ignored unless that one is in flight (KAFKA-12686)."""
        if pending_proposal(self.isr) != proposal:
            return []
        committed = committed_isr(self.isr)
        if reply.error in (ErrorCode.operation_not_attempted, ErrorCode.ineligible_replica):
            if reply.error is ErrorCode.ineligible_replica and isinstance(self.isr, ExpandingIsr):
                refused = self.followers[self.isr.joining]
                refused.proposed_again_ms = MonotonicMs(now_ms + INELIGIBLE_PAUSE_MS)
                refused.is_refused = True
            self.isr = committed
            # Writes may have waited for the refused follower; one that has shut down never fetches again.
            return self._advance_high_watermark(now_ms)
        if reply.error is not ErrorCode.none:
            # A LeaderAndIsr with a newer leader epoch or state is on its way; until it arrives the larger ISR
            # stays in force.
            return []
        if reply.leader_epoch != self.leader_epoch or reply.partition_epoch < committed.partition_epoch:
            return []
        self.isr = CommittedIsr(frozenset(reply.isr), reply.partition_epoch)
        return self._on_isr_changed(now_ms)

    def _on_isr_changed(self, now_ms: MonotonicMs) -> list[Action]:
        """A shrink may have removed the replica that held back the high watermark (KAFKA-13091)."""
        return [*self._advance_high_watermark(now_ms), *self._fail_short_writes()]

    @property
    def is_under_min_isr(self) -> bool:
        return len(committed_isr(self.isr).members) < self.min_isr

    def resign(self) -> list[Action]:
        """Leadership ends: every waiting request is answered; its records stay in the log."""
        produces, deletions = self.produces.take_all(), self.deletions.waits.take_all()
        return [
            *(CompleteProduce(token, ErrorCode.not_leader_or_follower) for token in produces),
            *(CompleteDeletion(token, ErrorCode.not_leader_or_follower) for token in deletions),
            *map(WakeFetch, self.fetches.take_all()),
        ]

    def _maybe_expand(self, follower: BrokerId, now_ms: MonotonicMs) -> list[Action]:
        committed = committed_isr(self.isr)
        if pending_proposal(self.isr) is not None or follower in committed.members:
            return []
        if now_ms < self.followers[follower].proposed_again_ms:
            return []
        if self.followers[follower].log_end_offset < self._joining_from:
            return []
        proposal = self._next_proposal()
        self.followers[follower].is_refused = False
        self.isr = ExpandingIsr(committed, follower, proposal)
        return [self._propose(proposal, committed.members | {follower})]

    @property
    def _joining_from(self) -> int:
        """The log end that a follower needs to join the ISR, so that it has every committed record. It is at
        least the epoch's start, because earlier leaders may have committed beyond this high watermark
        (KAFKA-7128).
        """
        return max(self.marks.high_watermark, self.epoch_start_offset)

    def _propose(self, proposal: int, members: Iterable[BrokerId]) -> ProposeIsr:
        return ProposeIsr(
            proposal=proposal,
            leader_epoch=self.leader_epoch,
            partition_epoch=committed_isr(self.isr).partition_epoch,
            members=tuple((member, self._epoch_of(member)) for member in sorted(members)),
        )

    def _epoch_of(self, member: BrokerId) -> BrokerEpoch:
        return self.broker_epoch if member == self.broker_id else self.followers[member].broker_epoch

    def _next_proposal(self) -> int:
        self._proposals += 1
        return self._proposals

    def _advance_high_watermark(self, now_ms: MonotonicMs) -> list[Action]:
        if self.marks.high_watermark >= self.marks.own_end_offset:
            return []  # it cannot rise: that saves most fetches of followers the look at all replicas
        if self.is_under_min_isr or self.awaits_history:
            return []  # the history may have committed other records at these offsets
        offset = self._replicated_offset(now_ms)
        if offset <= self.marks.high_watermark:
            return []
        self.marks.set_high_watermark(offset)
        return [
            *(CompleteProduce(token, ErrorCode.none) for token in self.produces.take_satisfied(offset)),
            *map(WakeFetch, self.fetches.take_for_high_watermark(self.marks)),
        ]

    def _replicated_offset(self, now_ms: MonotonicMs) -> int:
        """The least log end of the effective ISR and of caught-up followers that may join it."""
        leader_end, members = self.marks.log_end_offset, effective_isr(self.isr)
        ends = [self.marks.own_end_offset]
        for replica, progress in self.followers.items():
            joining = (
                progress.log_end_offset != UNKNOWN_OFFSET
                and not (progress.is_refused or progress.is_away)
                and progress.is_caught_up(leader_end, now_ms, self.lag_max_ms)
            )
            if replica in members or joining:
                ends.append(progress.log_end_offset)
        return min(ends)

    def _fail_short_writes(self) -> list[Action]:
        if not self.is_under_min_isr:
            return []
        error = ErrorCode.not_enough_replicas_after_append
        return [CompleteProduce(token, error) for token in self.produces.take_all()]

    def check_invariants(self) -> None:
        self.marks.check_invariants()
        assert self.broker_id in committed_isr(self.isr).members, self
        assert self.broker_id not in self.followers, self
        assert set(self.followers) | {self.broker_id} >= effective_isr(self.isr), self
        assert self.epoch_start_offset <= self.marks.log_end_offset, self
