"""One partition on this broker: its replica machine, and its log, which a ``LogGuard`` protects.

Every change is a step of the guard: under its lock a fact goes to the machine, and the machine's effects on
the log are carried out at once. Effects on the outside (replies, proposals, fetches) leave after the lock is
released, one at a time and in order, so that no client sees offset 12 before offset 10.

Appends of a leader, appends of a follower, and reads are classes of their own over the same guard. Here is
what they share: the role, deletions of records, and the log's upkeep.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, TypeVar

from sparklog.broker.partition.answers import (
    DeletionResult,
    StoreShare,
)
from sparklog.broker.partition.corruption import settle_corruption, should_hand_over
from sparklog.broker.partition.follower_append import FollowerAppend
from sparklog.broker.partition.leader_append import LeaderAppend
from sparklog.broker.partition.log_guard import LogGuard
from sparklog.broker.partition.producer_gate import ProducerGate
from sparklog.broker.partition.reads import Reads
from sparklog.broker.partition.topic_traffic import TopicCounts
from sparklog.core.replication.actions import OutwardEffect
from sparklog.core.replication.follower_progress import UNKNOWN_OFFSET
from sparklog.core.replication.isr import committed_isr, effective_isr
from sparklog.core.replication.leader import NOBODY_WAITS, Beginning, IsrReply, Leader
from sparklog.core.replication.replica import Replica
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH, BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.time import Clock, MonotonicMs
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.storage.damage import find_damage
from sparklog.storage.log import Log

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

CHECK_BYTES: Final = 4_194_304
"""How much of a log is checked when a follower seems to refuse batches."""


class Partition:
    """One replica of one partition, with its roles.

    All methods may be called from any thread.
    """

    def __init__(
        self,
        replica: Replica,
        log: Log,
        *,
        guard: Guard,
        delivery: Guard,
        flushing: Guard,
        outlet: Callable[["Partition", OutwardEffect], None],
        clock: Clock,
        counts: TopicCounts,
        why_no_room: Callable[[TopicPartition, int], str] = lambda _partition, _size_bytes: "",
    ) -> None:
        """``outlet`` carries out outward effects; the three guards are those of ``LogGuard``;
        ``why_no_room`` is ``FreeSpaces``'.
        """
        self.topic_partition: TopicPartition = replica.topic_partition
        self.log = log
        self.schema_version = 0
        """The newest version of the topic's columns, as of the replica's last role; 0 if it has none."""
        document = log.schema.document
        self.columns: TopicColumns | None = None if document is None else TopicColumns(document)
        """The topic's columns, as the log's directory has them; None of an untyped topic."""
        self._replica = replica
        self._clock = clock
        self._gate = ProducerGate(log, clock)
        self._store_share: StoreShare | None = None
        self.log_guard = LogGuard(
            replica.topic_partition,
            log,
            replica,
            lock=guard,
            delivery=delivery,
            outlet=partial(outlet, self),
            flushing=flushing,
            clock=clock,
        )
        self.counts: Final = counts
        """Counts of its topic."""
        self.leader_append: Final = LeaderAppend(
            log,
            replica,
            self.log_guard,
            self._gate,
            clock,
            partial(why_no_room, replica.topic_partition),
            counts,
        )
        self.follower_append: Final = FollowerAppend(log, replica, self.log_guard)
        self.reads: Final = Reads(log, replica, self.log_guard, clock)

    # Properties that need no step

    @property
    def topic_id(self) -> TopicId:
        return self.log.topic_id

    @property
    def leader_epoch(self) -> int:
        return self._replica.leader_epoch

    @property
    def is_leader(self) -> bool:
        return self._replica.leader is not None

    @property
    def is_under_replicated(self) -> bool:
        """Whether we lead, and not all replicas are in sync."""
        leader = self._replica.leader
        return leader is not None and len(committed_isr(leader.isr).members) < len(leader.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether we lead, and writes with acks=all are refused because too few replicas are in sync."""
        leader = self._replica.leader
        return leader is not None and leader.is_under_min_isr

    @property
    def store_share(self) -> StoreShare | None:
        """What the remote store has of the log; None unless this replica leads and has looked since."""
        share = self._store_share
        return share if share and self.is_leader and share.leader_epoch == self.leader_epoch else None

    def note_store_share(self, share: StoreShare) -> None:
        self._store_share = share

    @property
    def awaits_history(self) -> bool:
        """Whether it leads, and serves nobody before its log was compared with the history in the store."""
        leader = self._replica.leader
        return leader is not None and leader.awaits_history

    @property
    def store_given_up_in_epoch(self) -> int:
        """As ``PartitionState``; -1 if another replica leads."""
        leader = self._replica.leader
        return NO_EPOCH if leader is None else leader.store_given_up_in_epoch

    def on_history(self, leader_epoch: int, beginning: Beginning | None) -> bool:
        """The comparison's outcome, as ``Leader.on_history``; False if it is of another leader epoch."""
        with self.log_guard.step:
            leader = self._replica.leader
            if leader is None or not leader.awaits_history or leader.leader_epoch != leader_epoch:
                return False
            self.log_guard.apply(leader.on_history(beginning))
            if self.log_guard.is_offline:
                return False
            self.log_guard.apply(leader.on_appended(self._clock.monotonic_ms()))
            return True

    @property
    def is_offline(self) -> bool:
        return self.log_guard.is_offline

    @property
    def high_watermark(self) -> int:
        return self._replica.marks.high_watermark

    @property
    def log_end_offset(self) -> int:
        return self._replica.marks.log_end_offset

    @property
    def log_start_offset(self) -> int:
        return self._replica.marks.log_start_offset

    @property
    def unstable_offsets(self) -> int:
        """How many offsets the last stable offset lags the high watermark."""
        marks = self._replica.marks
        return max(0, marks.high_watermark - marks.last_stable_offset)

    def follower_lags(self) -> dict[BrokerId, int]:
        """How many offsets each follower lacks, as far as it has fetched in this epoch; empty unless we
        lead.
        """
        leader, end = self._replica.leader, self._replica.marks.log_end_offset
        if leader is None:
            return {}
        return {
            follower: max(0, end - progress.log_end_offset)
            for follower, progress in leader.followers.items()
            if progress.log_end_offset != UNKNOWN_OFFSET
        }

    def is_in_sync(self, follower: BrokerId) -> bool:
        """Whether we lead, and ``follower`` is in the ISR or about to be."""
        leader = self._replica.leader
        return leader is not None and follower in effective_isr(leader.isr)

    # Columns

    @property
    def is_typed(self) -> bool:
        return self.schema_version > 0 or self.columns is not None

    @property
    def lacks_columns(self) -> bool:
        """Whether the topic has a version of its columns that this replica does not know yet."""
        known = 0 if self.columns is None else self.columns.document.version
        return known < self.schema_version and not self.log_guard.is_offline

    def keep_columns(self, document: SchemaDocument) -> None:
        """Write the topic's columns into the log's directory, and use them from now on."""
        with self.log_guard.step:
            if self.log_guard.is_offline:
                return
            if self.log_guard.carry_out(lambda: self.log.schema.write(document)):
                self.columns = TopicColumns(document)

    # Roles

    def on_leader_and_isr(self, state: PartitionState, *, broker_epoch: BrokerEpoch) -> ErrorCode:
        """Take up the role that the controller decided; STALE_CONTROLLER_EPOCH if it has a later one.

        KAFKA_STORAGE_ERROR if the log is offline, or if this log is damaged and another should lead.

        The outward effects of this, of ``stop`` and of ``delete`` wait for ``log_guard.deliver``.
        """
        with self.log_guard.held_step:
            if self.log_guard.is_offline:
                return ErrorCode.kafka_storage_error
            if state.leader_epoch < self._replica.leader_epoch:
                return ErrorCode.stale_controller_epoch
            if state.leader_epoch == self._replica.leader_epoch:
                # A repetition: the answer was lost, or a new controller does not know of the damage.
                is_unfit = should_hand_over(self.log, self._replica, state)
                return ErrorCode.kafka_storage_error if is_unfit else ErrorCode.none
            if not settle_corruption(self.log_guard, self._replica, state):
                return ErrorCode.kafka_storage_error
            self.log_guard.apply(
                self._replica.on_leader_and_isr(
                    state,
                    broker_epoch=broker_epoch,
                    now_ms=self._clock.monotonic_ms(),
                    has_store=self.log.config.remote_storage,
                )
            )
            return ErrorCode.kafka_storage_error if self.log_guard.is_offline else ErrorCode.none

    def check_log(self, offset: int) -> None:
        """Check the log from ``offset`` on, because followers seem to refuse its batches. Damaged batches are
        no longer served, and another replica leads if one can.
        """
        with self.log_guard.step:
            leader = self._replica.leader
            if leader is None or self.log_guard.is_offline:
                return
            damage = find_damage(self.log, offset, CHECK_BYTES)
            if damage is not None:
                logger.error("%s: damaged on disk: %s", self.topic_partition, damage.reason)
                self.log_guard.carry_out(lambda: self.log.note_damage(damage))
            self._hand_over_if_damaged(leader)

    def _hand_over_if_damaged(self, leader: Leader) -> None:
        if self.log.corruption is not None and not self.log_guard.is_offline:
            self.log_guard.apply(leader.on_damage())

    def end_without_leader(self, leader_epoch: int) -> tuple[int, int]:
        """Epoch of the last record (-1: none), and the log's end, if ``leader_epoch`` has no leader;
        otherwise, and for an offline log, -1 and -1. The log does not change in an epoch without a leader.
        """
        with self.log_guard.lock:
            follower, end = self._replica.follower, self.log.log_end_offset
            if follower is None or self.log_guard.is_offline or not follower.has_no_leader_in(leader_epoch):
                return -1, -1
            return self.log.epochs.epoch_of_last_record(end, follower.lost_in_epoch), end

    def stop(self, reason: str) -> None:
        """Serve nothing more until a LeaderAndIsr with a newer epoch."""
        with self.log_guard.held_step:
            self.log_guard.apply(self._replica.on_offline(reason))

    def delete(self, remove: Callable[[], None]) -> None:
        """Stop serving for good, and ``remove`` the log from disk."""
        with self.log_guard.held_step:
            self.log_guard.take_offline("the replica is being deleted")
            remove()

    def go_offline(self, reason: str) -> None:
        with self.log_guard.step:
            self.log_guard.take_offline(reason)

    def on_tick(
        self,
        now_ms: MonotonicMs | None = None,
        waiting_since: Mapping[BrokerId, MonotonicMs] = NOBODY_WAITS,
    ) -> None:
        """Look for followers that lag.

        ``now_ms``: when the lock was asked for, because a fetch that waits for it is not late.
        ``waiting_since``: when the fetch in progress of each follower arrived.
        """
        now_ms = self._clock.monotonic_ms() if now_ms is None else now_ms
        with self.log_guard.step:
            self._gate.forget_what_is_old(now_ms)
            if (leader := self._replica.leader) is not None:
                self.log_guard.apply(leader.on_tick(now_ms, waiting_since))

    def on_isr_reply(self, leader_epoch: int, proposal: int, reply: IsrReply) -> int:
        """Apply the controller's answer to a proposal; returns by how many members the ISR grew."""
        with self.log_guard.step:
            leader = self._replica.leader
            if leader is None or leader.leader_epoch != leader_epoch:
                return 0
            before = committed_isr(leader.isr).members
            self.log_guard.apply(leader.on_isr_reply(proposal, reply, self._clock.monotonic_ms()))
            grown = len(committed_isr(leader.isr).members) - len(before)
            if grown > 0:
                self._hand_over_if_damaged(leader)  # before, no other replica could lead
            return grown

    # Deletion of records

    def delete_records(self, offset: int, live: Collection[BrokerId], token: int) -> DeletionResult:
        """Delete records below ``offset`` (-1: the high watermark), and wait under ``token`` until every
        replica on a ``live`` broker has deleted them.
        """
        with self.log_guard.step:
            leader = self._replica.leader
            if self.log_guard.is_offline:
                return DeletionResult(ErrorCode.kafka_storage_error)
            if leader is None:
                return DeletionResult(ErrorCode.not_leader_or_follower)
            if leader.awaits_history:
                return DeletionResult(ErrorCode.leader_not_available)
            if not self.log.config.deletes:
                return DeletionResult(ErrorCode.policy_violation)
            raising = leader.on_delete_records(offset)
            if isinstance(raising, ErrorCode):
                return DeletionResult(raising)
            wanted = self._replica.marks.high_watermark if offset == -1 else offset
            self.log_guard.apply(raising)
            if self._replica.leader is not leader:
                return DeletionResult(ErrorCode.kafka_storage_error)
            self.log_guard.apply(leader.on_deletion_waits(token, wanted, live, self._clock.monotonic_ms()))
            return DeletionResult(ErrorCode.none, waits=True)

    def on_live_brokers(self, live: Collection[BrokerId]) -> None:
        """Stop waiting for replicas on brokers that are not ``live``, unless they are ISR members."""
        with self.log_guard.step:
            if (leader := self._replica.leader) is not None:
                self.log_guard.apply(leader.on_live_brokers(live, self._clock.monotonic_ms()))

    def forget_deletion(self, token: int) -> None:
        with self.log_guard.lock:
            if (leader := self._replica.leader) is not None:
                leader.deletions.forget(token)

    # Retention and compaction

    def delete_old_segments(self) -> int:
        """Let retention remove old committed segments; returns their number."""
        return self.trim(lambda log, committed: log.delete_old_segments(committed))

    def delete_local_segments(self, offset: int, generation: int) -> int:
        """Remove local segments below ``offset``, which the remote store has; returns their number.

        ``generation``: of the log when that was seen. A truncation since then may have changed what is there.
        """

        def delete(log: Log, committed: int) -> int:
            may_go = log.generation == generation and self._replica.may_give_up_front
            return log.delete_local_segments(min(offset, committed)) if may_go else 0

        return self.trim(delete)

    def trim(self, delete: Callable[[Log, int], int]) -> int:
        """Let ``delete`` remove committed records from the log's front; what it returned, 0 if offline."""
        deleted: list[int] = []
        with self.log_guard.step:
            is_up = self._replica.role is not None and not self.log_guard.is_offline
            if is_up and self.log_guard.carry_out(
                lambda: deleted.append(delete(self.log, self.high_watermark))
            ):
                self.log_guard.log_changed()
        return sum(deleted)

    def inspect(self, look: Callable[[Log, int], T]) -> T | None:
        """The result of ``look`` on log and high watermark; None without a role, or if the log is offline."""
        with self.log_guard.lock:
            if self.log_guard.is_offline or self._replica.role is None:
                return None
            return look(self.log, self._replica.marks.high_watermark)
