"""One partition on this broker: its replica machine, and its log, which a ``LogGuard`` protects.

Every change is a step of the guard: under its lock a fact goes to the machine, and the machine's effects on
the log are carried out at once. Effects on the outside (replies, proposals, fetches) leave after the lock is
released, one at a time and in order, so that no client sees offset 12 before offset 10.

Reads take the lock only to look up positions; bytes leave by ``sendfile`` without it.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from sparklog.broker.partition.answers import (
    AppendResult,
    DeletionResult,
    ReadRequest,
    ReadResult,
    StoreShare,
)
from sparklog.broker.partition.batches import Batches
from sparklog.broker.partition.corruption import settle_corruption, should_hand_over
from sparklog.broker.partition.follower_append import FollowerAppend
from sparklog.broker.partition.leader_append import AppendedMarkers, LeaderAppend, Marker
from sparklog.broker.partition.log_guard import LogGuard
from sparklog.broker.partition.producer_gate import ProducerGate
from sparklog.broker.partition.reading import (
    aborted_in,
    check_reader,
    leader_result,
    no_leader,
    offset_of,
    read_as_follower,
    read_as_leader,
)
from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.producers.verification import VerificationGuard
from sparklog.core.replication.actions import OutwardEffect, WakeFetch
from sparklog.core.replication.epoch_history import EarlierHistory
from sparklog.core.replication.follower import FetchPosition, Follower
from sparklog.core.replication.isr import committed_isr, effective_isr
from sparklog.core.replication.leader import NOBODY_WAITS, Beginning, Diverging, IsrReply, Leader
from sparklog.core.replication.read_replica import closest_replica
from sparklog.core.replication.replica import Replica
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.cluster import PartitionState
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import NO_EPOCH, BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.time import Clock, MonotonicMs
from sparklog.storage.log import Log
from sparklog.storage.recovery.damage import find_damage

logger = logging.getLogger(__name__)

T = TypeVar("T")

CHECK_BYTES: Final = 4_194_304
"""How much of a log is checked when a follower seems to refuse batches."""


class Partition:
    """One replica of one partition, with the operations of its role and of its readers.

    All methods may be called from any thread.
    """

    def __init__(
        self,
        replica: Replica,
        log: Log,
        *,
        guard: Guard,
        delivery: Guard,
        outlet: Callable[["Partition", OutwardEffect], None],
        clock: Clock,
        flushing: Guard | None = None,
        why_no_room: Callable[[TopicPartition], str] = lambda _: "",
    ) -> None:
        """``outlet`` carries out outward effects; the three guards are those of ``LogGuard``;
        ``why_no_room`` is ``FreeSpaces``'.
        """
        self.topic_partition: TopicPartition = replica.topic_partition
        self.log = log
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
            clock=clock,
            flushing=flushing,
        )
        self._leader_append = LeaderAppend(
            log, replica, self.log_guard, self._gate, clock, partial(why_no_room, replica.topic_partition)
        )
        self._follower_append = FollowerAppend(log, replica, self.log_guard)

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
        """How far the last stable offset is behind the high watermark."""
        marks = self._replica.marks
        return max(0, marks.high_watermark - marks.last_stable_offset)

    # Roles

    def on_leader_and_isr(self, state: PartitionState, *, broker_epoch: BrokerEpoch) -> ErrorCode:
        """Take up the role that the controller decided; STALE_CONTROLLER_EPOCH if it has a later one.

        KAFKA_STORAGE_ERROR if the log is offline, or if this log is damaged and another should lead.
        """
        with self.log_guard.step:
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
        with self.log_guard.step:
            self.log_guard.apply(self._replica.on_offline(reason))

    def delete(self, remove: Callable[[], None]) -> None:
        """Stop serving for good, and ``remove`` the log from disk."""
        with self.log_guard.step:
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

    # Writing

    def append_as_leader(
        self,
        records: bytearray | memoryview,
        batches: Batches,
        acks: int,
        token: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        leader_epoch: int | None = None,
        after_refusal: bool = False,
        guard: VerificationGuard | None = None,
        connection: int | None = None,
    ) -> AppendResult:
        """Give validated ``batches`` offsets and append them; with acks=all wait under ``token``.

        ``records`` is stamped in place: base offset and leader epoch, which no CRC covers.
        ``leader_epoch``: append only if this replica leads in just this epoch; None: in whichever it leads.
        ``after_refusal``: a batch was refused a moment ago on the connection of these batches.
        ``guard``: of the verification that the batches passed. ``connection``: that they came over.

        The answer is the first of these that applies; the order is part of the rule.

        1. The disk has failed: KAFKA_STORAGE_ERROR.
        2. This replica does not lead, or not in ``leader_epoch``: NOT_LEADER_OR_FOLLOWER.
        3. The log ends at a corruption, and no other replica is in sync: KAFKA_STORAGE_ERROR.
        4. The log was not compared with its history in the store (``Leader``): NOT_ENOUGH_REPLICAS.
        5. The log has the batch already: its offsets, as for a new one. This precedes every refusal that
           follows, because a producer concludes from a refusal that the batch is not in the log.
        6. ``acks`` is unknown, too few replicas are in sync, or a client's batch finds too little room on the
           disk: INVALID_REQUIRED_ACKS, NOT_ENOUGH_REPLICAS.
        7. An earlier batch of its producer was refused and has not been repeated: NOT_ENOUGH_REPLICAS.
        8. Its producer may not send it (epoch, sequence, transaction): the code of ``ProducerGate.check``.
        9. The write fails: KAFKA_STORAGE_ERROR, and the partition is offline.
        10. The batches are appended.
        """
        with self.log_guard.step:
            return self._leader_append.append(
                records,
                batches,
                acks,
                token,
                origin=origin,
                leader_epoch=leader_epoch,
                after_refusal=after_refusal,
                guard=guard,
                connection=connection,
            )

    def append_markers(
        self, markers: Sequence[Marker], token: int, *, connection: int | None
    ) -> AppendedMarkers:
        """Append a coordinator's markers, of which no two are of one producer, in one write; wait under
        ``token`` until all replicas in sync have them.

        Each is judged as ``append_as_leader`` would: one that is refused keeps no other out.
        """
        with self.log_guard.step:
            return self._leader_append.append_markers(markers, token, connection)

    def begin_verification(
        self, records: bytearray | memoryview, batches: Batches
    ) -> VerificationGuard | None:
        """The guard under which to ask the coordinator of transactional ``batches``; None: do not ask."""
        with self.log_guard.step:
            leader = self._replica.leader
            if leader is None or self.log_guard.is_offline:
                return None
            return self._gate.begin_verification(records, batches, leader)

    def note_refused(self, batches: Batches) -> None:
        """``batches`` were refused before their append, and are expected again."""
        with self.log_guard.step:
            self._gate.note_refused(batches)

    def append_as_follower(
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
        with self.log_guard.step:
            return self._follower_append.append(
                records, batches, leader_epoch, fetch_offset, leader_high_watermark, leader_log_start_offset
            )

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

    def forget_produce(self, token: int) -> None:
        with self.log_guard.lock:
            if (leader := self._replica.leader) is not None:
                leader.produces.forget(token)

    # Reading

    def read(self, request: ReadRequest, *, at_least_one_batch: bool, is_retry: bool = False) -> ReadResult:
        """Look up the batches for a fetch. A follower's fetch also reports its progress, unless ``is_retry``.

        A range that cannot be read is answered with an error; the rest of the log is still served.
        """
        with self.log_guard.step:
            try:
                return self._read(request, at_least_one_batch=at_least_one_batch, is_retry=is_retry)
            except (OSError, SparklogError) as error:
                return ReadResult(self.log_guard.unreadable(error))

    def _read(self, request: ReadRequest, *, at_least_one_batch: bool, is_retry: bool) -> ReadResult:
        leader, follower = self._replica.leader, self._replica.follower
        if self.log_guard.is_offline:
            return ReadResult(ErrorCode.kafka_storage_error)
        if follower is not None and request.from_any_replica:
            return read_as_follower(self.log, follower, request, at_least_one_batch=at_least_one_batch)
        if leader is None:
            return ReadResult(self._no_leader(request.current_leader_epoch))
        error = check_reader(leader, request)
        if error is not ErrorCode.none:
            return ReadResult(error)
        read = read_as_leader(self.log, leader, request, at_least_one_batch=at_least_one_batch)
        if isinstance(read, ReadResult):
            return read
        if request.follower is not None and not is_retry:
            self.log_guard.apply(
                leader.on_follower_fetch(
                    request.follower,
                    request.follower_epoch,
                    request.fetch_offset,
                    self._clock.monotonic_ms(),
                    request.log_start_offset,
                )
            )
        return leader_result(leader, read=read, aborted=aborted_in(self.log, request, read))

    def closer_replica(
        self, request: ReadRequest, rack: str, racks: Mapping[BrokerId, str | None]
    ) -> ReadResult | None:
        """The answer that sends a consumer in ``rack`` to a follower near it; None if it may read here."""
        with self.log_guard.lock:
            leader = self._replica.leader
            if leader is None or leader.check_epoch(request.current_leader_epoch) is not ErrorCode.none:
                return None
            closest = closest_replica(leader, request.fetch_offset, rack, racks)
            return None if closest is None else leader_result(leader, preferred=closest)

    def is_in_sync(self, follower: BrokerId) -> bool:
        """Whether we lead, and ``follower`` is in the ISR or about to be."""
        leader = self._replica.leader
        return leader is not None and follower in effective_isr(leader.isr)

    def wait_for_more(self, token: int, request: ReadRequest) -> None:
        """Wake ``token`` when records beyond the fetch offset can be read, or when the answer changes."""
        with self.log_guard.step:
            leader, follower = self._replica.leader, self._replica.follower
            if follower is not None and request.from_any_replica and not self.log_guard.is_offline:
                self.log_guard.apply(follower.on_fetch_waits(token, request.fetch_offset, request.visibility))
                return
            if leader is None:
                self.log_guard.apply([WakeFetch(token)])
                return
            self.log_guard.apply(leader.on_fetch_waits(token, request.fetch_offset, request.visibility))

    def forget_fetch(self, token: int) -> None:
        with self.log_guard.lock:
            if (role := self._replica.role) is not None:
                role.fetches.forget(token)

    def leader_offset(
        self, current_leader_epoch: int, choose: Callable[[Leader, Log], int | None]
    ) -> int | ErrorCode:
        """The offset that ``choose`` names, if this replica leads; its None means OFFSET_NOT_AVAILABLE."""
        with self.log_guard.step:
            role = self._replica.leader
            return offset_of(role, current_leader_epoch, choose, self._replica, self.log_guard)

    def replica_offset(
        self, current_leader_epoch: int, choose: Callable[[Leader | Follower, Log], int | None]
    ) -> int | ErrorCode:
        """As ``leader_offset``, whether this replica leads or follows."""
        with self.log_guard.step:
            role = self._replica.role
            return offset_of(role, current_leader_epoch, choose, self._replica, self.log_guard)

    def epoch_end(self, current_leader_epoch: int, epoch: int) -> tuple[int, int] | ErrorCode:
        """(largest epoch not above ``epoch``, its end) for OffsetForLeaderEpoch (KIP-279)."""
        with self.log_guard.lock:
            leader = self._replica.leader
            if leader is None:
                return self._no_leader(current_leader_epoch)
            error = leader.check_epoch(current_leader_epoch)
            if error is not ErrorCode.none:
                return error
            return self.log.epochs.end_offset_for(epoch, self.log_end_offset)

    # Following

    def fetch_position(self) -> FetchPosition | None:
        self._flush_if_owed()
        with self.log_guard.lock:
            follower = self._replica.follower
            return None if follower is None or self.log_guard.is_offline else follower.fetch_position()

    def _flush_if_owed(self) -> None:
        """With ``log.flush.acks=fsync``: flush, because the next fetch reports the flushed offset."""
        if self._replica.marks.owes_flush:
            self.log_guard.flush()

    def on_diverging(
        self, leader_epoch: int, fetch_offset: int, diverging: Diverging, leader_start: int
    ) -> None:
        with self.log_guard.step:
            follower = self._replica.follower
            if follower is not None and follower.expects(leader_epoch, fetch_offset):
                self.log_guard.apply(follower.on_diverging(diverging, leader_start))

    def on_fetch_error(self, leader_epoch: int, error: ErrorCode) -> None:
        with self.log_guard.step:
            if (follower := self._replica.follower) is not None:
                self.log_guard.apply(follower.on_fetch_error(error, leader_epoch))

    def on_leader_offsets(
        self,
        leader_epoch: int,
        start: int,
        end: int,
        producers: ProducerStates | None = None,
        history: EarlierHistory | None = None,
    ) -> None:
        with self.log_guard.step:
            follower = self._replica.follower
            if follower is not None and follower.leader_epoch == leader_epoch:
                self.log_guard.apply(follower.on_leader_offsets(start, end, producers, history))

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

    # Details

    def _no_leader(self, current_leader_epoch: int) -> ErrorCode:
        return no_leader(self._replica, current_leader_epoch, is_offline=self.log_guard.is_offline)
