"""One partition on this broker: its replica machine and its log, both guarded by one lock.

Every change is a *step*: under the lock a fact goes to the machine, and the machine's effects on the log are
carried out at once, so that machine and log never disagree. Effects on the outside (replies, proposals,
fetches) are put in the partition's outbox and leave after the lock is released, one at a time and in order,
so that nobody sees offset 12 before offset 10. A log effect that fails takes the partition offline before the
lock is let go, and what that step wanted to tell the outside is dropped.

Reads take the lock only to look up positions; bytes leave by ``sendfile`` without it.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from sparklog.broker.answers import AppendResult, ReadRequest, ReadResult
from sparklog.broker.batches import Batches, continuing, stamp_all, whole
from sparklog.core.replication.actions import (
    Action,
    AssignEpoch,
    LogEffect,
    OutwardEffect,
    RaiseLogStart,
    ReportLogFailure,
    RestartAt,
    TruncateTo,
    WakeFetch,
    split_actions,
)
from sparklog.core.replication.follower import FetchPosition
from sparklog.core.replication.leader import ACKS_ALL, Diverging, IsrReply, Leader
from sparklog.core.replication.replica import Replica
from sparklog.core.transaction.producer_state import Duplicate, Refused
from sparklog.model.cluster import PartitionState
from sparklog.model.errors import CorruptBatch, ErrorCode, SparklogError
from sparklog.model.ids import BrokerEpoch, TopicId, TopicPartition
from sparklog.model.parts import Part
from sparklog.model.ports import Guard
from sparklog.model.time import Clock
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.snapshots import producer_batch

logger = logging.getLogger(__name__)


Outlet = Callable[["Partition", OutwardEffect], None]


class Partition:
    """The shell around one replica. All methods may be called from any thread."""

    def __init__(
        self, replica: Replica, log: Log, *, guard: Guard, delivery: Guard, outlet: Outlet, clock: Clock
    ) -> None:
        self.topic_partition: TopicPartition = replica.topic_partition
        self.log = log
        self._replica = replica
        self._guard = guard
        self._delivery = delivery
        self._outlet = outlet
        self._clock = clock
        self._outbox: deque[OutwardEffect] = deque()
        self._step_effects: list[OutwardEffect] = []
        self._offline = False
        with self._step():
            self._log_changed()

    # What others may look at without a step

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
    def is_offline(self) -> bool:
        return self._offline

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
    def has_unsynced_sealed_segment(self) -> bool:
        return self.log.recovery_point < self.log.active_segment_base

    def story(self) -> str:
        with self._guard:
            return self._replica.story()

    # Roles

    def on_leader_and_isr(
        self, state: PartitionState, *, broker_epoch: BrokerEpoch, min_insync_replicas: int
    ) -> ErrorCode:
        """Take up the role that the controller decided; STALE_CONTROLLER_EPOCH if it is not a newer one."""
        with self._step():
            if self._offline:
                return ErrorCode.kafka_storage_error
            if state.leader_epoch <= self._replica.leader_epoch:
                return ErrorCode.stale_controller_epoch
            if not self._settle_corruption(state):
                return ErrorCode.kafka_storage_error
            self._apply(
                self._replica.on_leader_and_isr(
                    state,
                    broker_epoch=broker_epoch,
                    min_insync_replicas=min_insync_replicas,
                    now_ms=self._clock.monotonic_ms(),
                )
            )
            return ErrorCode.kafka_storage_error if self._offline else ErrorCode.none

    def _settle_corruption(self, state: PartitionState) -> bool:
        """Whether the log is fit for the role. A follower cuts at a corruption and fetches again from there.

        A member of the ISR must not, whoever leads: what it would cut may be committed and, should the
        others die before it caught up again, nowhere else. The error makes the controller take it out of
        the ISR, and elect another if it should have led; told again without being a member, it cuts. The last
        member waits for an operator.
        """
        corruption = self.log.corruption
        if corruption is None:
            return True
        if self._replica.broker_id in state.isr:
            logger.error("%s: in the ISR with a corrupt log: %s", self.topic_partition, corruption.reason)
            return False
        logger.warning("%s: %s; fetching again from there", self.topic_partition, corruption.reason)
        self._apply([TruncateTo(self.log.log_end_offset)])
        return not self._offline

    def go_offline(self, reason: str) -> None:
        with self._step():
            self._take_offline(reason)

    def on_tick(self) -> None:
        """Look for followers that fell behind."""
        with self._step():
            if (leader := self._replica.leader) is not None:
                self._apply(leader.on_tick(self._clock.monotonic_ms()))

    def on_isr_reply(self, leader_epoch: int, proposal: int, reply: IsrReply) -> None:
        with self._step():
            leader = self._replica.leader
            if leader is not None and leader.leader_epoch == leader_epoch:
                self._apply(leader.on_isr_reply(proposal, reply, self._clock.monotonic_ms()))

    # Writing

    def append_as_leader(
        self, records: bytearray | memoryview, batches: Batches, acks: int, token: int
    ) -> AppendResult:
        """Give validated ``batches`` offsets and append them; with acks=all wait under ``token``.

        ``records`` is stamped in place: base offset and leader epoch, which no CRC covers.
        """
        with self._step():
            leader = self._replica.leader
            if self._offline:
                return AppendResult(ErrorCode.kafka_storage_error)
            if leader is None:
                return AppendResult(ErrorCode.not_leader_or_follower)
            error = leader.refuse_append(acks)
            if error is not ErrorCode.none:
                return AppendResult(error)
            repeated = self._check_producer(batches)
            if isinstance(repeated, Refused):
                return AppendResult(repeated.code, message=repeated.message)
            if isinstance(repeated, Duplicate):
                return self._wait(leader, acks, token, repeated.base_offset, repeated.last_offset + 1)
            base_offset = self._replica.marks.log_end_offset
            stamped = stamp_all(records, batches, base_offset, leader.leader_epoch)
            if not self._append(records, stamped):
                return AppendResult(ErrorCode.kafka_storage_error)
            self._apply(leader.on_appended(self._clock.monotonic_ms()))
            return self._wait(leader, acks, token, base_offset, self._replica.marks.log_end_offset)

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
        """Take over a leader's reply, byte for byte; False if it is not about our log as it is now.

        Bytes leave a leader by ``sendfile``, after its lock was released. If it lost its office meanwhile it
        may have truncated, and what we get is its log of a later epoch, cut anywhere (KAFKA-18723). So only
        whole batches that continue our log within the epoch that we asked in are taken.
        """
        with self._step():
            follower = self._replica.follower
            if follower is None or not follower.expects(leader_epoch, fetch_offset) or self._offline:
                return False
            taken = continuing(batches, fetch_offset, (self.log.epochs.latest_epoch, leader_epoch))
            if batches and not taken:
                logger.warning("%s: the leader sent what does not continue our log", self.topic_partition)
                self._apply(follower.on_fetch_error(ErrorCode.corrupt_message, leader_epoch))
                return False
            if taken and taken[0][1].base_offset > fetch_offset == self.log_start_offset:
                self._apply([RestartAt(taken[0][1].base_offset)])
            if taken and not self._append(whole(records, taken), taken):
                return False
            self._apply(follower.on_appended(leader_high_watermark, leader_log_start_offset))
            return True

    def forget_produce(self, token: int) -> None:
        with self._guard:
            if (leader := self._replica.leader) is not None:
                leader.produces.forget(token)

    # Reading

    def read(self, request: ReadRequest, *, at_least_one_batch: bool, is_retry: bool = False) -> ReadResult:
        """Positions of what a fetcher may have now. A follower's first try tells how far it is.

        A range that cannot be read is answered with an error; the rest of the log is served on.
        """
        with self._step():
            try:
                return self._read(request, at_least_one_batch=at_least_one_batch, is_retry=is_retry)
            except (OSError, SparklogError) as error:
                return ReadResult(self._unreadable(error))

    def _read(self, request: ReadRequest, *, at_least_one_batch: bool, is_retry: bool) -> ReadResult:
        leader = self._replica.leader
        if self._offline:
            return ReadResult(ErrorCode.kafka_storage_error)
        error = self._check_reader(leader, request)
        if error is not ErrorCode.none or leader is None:
            return ReadResult(error)
        position = leader.check_fetch_position(request.fetch_offset, request.last_fetched_epoch)
        if isinstance(position, Diverging):
            return self._result(leader, diverging=position)
        if position is not ErrorCode.none:
            return self._result(leader, error=position)
        is_follower = request.follower is not None
        read = self.log.read(
            request.fetch_offset,
            request.max_bytes,
            leader.readable_end(is_follower=is_follower),
            at_least_one_batch=at_least_one_batch,
        )
        if read is None:
            return self._result(leader, error=ErrorCode.offset_out_of_range)
        if request.follower is not None and not is_retry:
            self._apply(
                leader.on_follower_fetch(
                    request.follower,
                    request.follower_epoch,
                    request.fetch_offset,
                    self._clock.monotonic_ms(),
                )
            )
        return self._result(leader, parts=tuple(read.parts), size_bytes=read.size_bytes)

    def wait_for_more(self, token: int, request: ReadRequest) -> None:
        """Wake ``token`` when there is something beyond the fetch offset, or another answer to give."""
        with self._step():
            leader = self._replica.leader
            if leader is None:
                self._apply([WakeFetch(token)])
                return
            is_follower = request.follower is not None
            self._apply(leader.on_fetch_waits(token, request.fetch_offset, is_follower=is_follower))

    def forget_fetch(self, token: int) -> None:
        with self._guard:
            if (leader := self._replica.leader) is not None:
                leader.fetches.forget(token)

    def leader_offset(
        self, current_leader_epoch: int, choose: Callable[[Leader, Log], int | None]
    ) -> int | ErrorCode:
        """An offset that only the leader may name, by ``choose``; None of it means not available yet."""
        with self._guard:
            leader = self._replica.leader
            if leader is None:
                return self._no_leader(current_leader_epoch)
            error = leader.check_epoch(current_leader_epoch)
            if error is not ErrorCode.none:
                return error
            try:
                offset = choose(leader, self.log)
            except (OSError, SparklogError) as problem:
                return self._unreadable(problem)
            return ErrorCode.offset_not_available if offset is None else offset

    def _unreadable(self, error: OSError | SparklogError) -> ErrorCode:
        logger.error("%s: the log cannot be read there: %s", self.topic_partition, error)
        if isinstance(error, CorruptBatch):
            return ErrorCode.corrupt_message
        return ErrorCode.kafka_storage_error

    def epoch_end(self, current_leader_epoch: int, epoch: int) -> tuple[int, int] | ErrorCode:
        """(largest epoch not above ``epoch``, its end) for OffsetForLeaderEpoch (KIP-279)."""
        with self._guard:
            leader = self._replica.leader
            if leader is None:
                return self._no_leader(current_leader_epoch)
            error = leader.check_epoch(current_leader_epoch)
            if error is not ErrorCode.none:
                return error
            return self.log.epochs.end_offset_for(epoch, self._replica.marks.log_end_offset)

    # Following

    def fetch_position(self) -> FetchPosition | None:
        with self._guard:
            follower = self._replica.follower
            return None if follower is None or self._offline else follower.fetch_position()

    def on_diverging(self, leader_epoch: int, fetch_offset: int, diverging: Diverging) -> None:
        with self._step():
            follower = self._replica.follower
            if follower is not None and follower.expects(leader_epoch, fetch_offset):
                self._apply(follower.on_diverging(diverging))

    def on_fetch_error(self, leader_epoch: int, error: ErrorCode) -> None:
        with self._step():
            if (follower := self._replica.follower) is not None:
                self._apply(follower.on_fetch_error(error, leader_epoch))

    def on_leader_offsets(self, leader_epoch: int, start: int, end: int) -> None:
        with self._step():
            follower = self._replica.follower
            if follower is not None and follower.leader_epoch == leader_epoch:
                self._apply(follower.on_leader_offsets(start, end))

    # The disk

    def flush(self) -> None:
        """Bring the log to disk. The fsync itself runs outside the lock, so that nobody waits for it."""
        with self._step():
            if self._offline:
                return
            try:
                flush = self.log.begin_flush()
            except (OSError, SparklogError) as error:
                self._take_offline(f"the log cannot be flushed: {error}")
                return
        try:
            flush.run()
        except OSError as error:
            with self._step():
                self.log.fail_flush()
                self._take_offline(f"fsync failed: {error}")
                self._report_failure(error)
            return
        with self._step():
            self.log.finish_flush(flush)

    def delete_old_segments(self) -> int:
        """Let retention remove what is committed and too old; how many segments that were."""
        with self._step():
            deleted = 0
            if self._replica.role is None or self._offline:
                return 0

            def delete() -> None:
                nonlocal deleted
                deleted = self.log.delete_old_segments(self._replica.marks.high_watermark)
                self._log_changed()

            self._guarded(delete)
            return deleted

    def expire_producers(self, max_age_ms: int) -> None:
        """Forget producers that wrote nothing for so long; every new producer adds one."""
        with self._guard:
            self.log.producers.expire(self._clock.wall_ms(), max_age_ms)

    def stop(self, reason: str) -> None:
        """Serve nothing more until a LeaderAndIsr with a newer epoch."""
        with self._step():
            self._apply(self._replica.on_offline(reason))

    def delete(self, remove: Callable[[], None]) -> None:
        """Stop serving for good, and ``remove`` the log from disk."""
        with self._step():
            self._take_offline("the replica is being deleted")
            remove()

    def configure(self, config: LogConfig) -> None:
        """Go on with the topic's settings as they are now."""
        with self._guard:
            self.log.config = config

    # Steps

    def _step(self) -> AbstractContextManager[None]:
        return _Step(self)

    def _apply(self, actions: Sequence[Action]) -> None:
        log_effects, outward = split_actions(actions)
        for effect in log_effects:
            self._replica.note_log_effect(effect)
            if not self._guarded(lambda effect=effect: self._carry_out(effect)):  # type: ignore[misc]
                return
        self._step_effects.extend(outward)

    def _carry_out(self, effect: LogEffect) -> None:
        match effect:
            case AssignEpoch(epoch, start_offset):
                self.log.assign_epoch(epoch, start_offset)
            case TruncateTo(offset):
                self.log.truncate_to(offset)
            case RestartAt(offset):
                self.log.truncate_fully_and_start_at(offset)
            case RaiseLogStart(offset):
                self.log.raise_log_start(offset)
        self._log_changed()

    def _append(self, records: bytes | bytearray | memoryview, batches: Batches) -> bool:
        def append() -> None:
            self.log.append(records, batches)
            self._log_changed()

        return self._guarded(append)

    def _log_changed(self) -> None:
        changed = self._replica.on_log_changed(self.log.log_start_offset, self.log.log_end_offset)
        self._step_effects.extend(split_actions(changed)[1])

    def _guarded(self, effect: Callable[[], object]) -> bool:
        """Carry out an effect on the log; if the disk fails, the partition goes offline at once."""
        try:
            effect()
        except Exception as error:
            # Also a bug's exception: whatever it left half done, nobody may build on it.
            logger.exception("%s: the log failed and goes offline", self.topic_partition)
            self._take_offline(f"{type(error).__name__}: {error}")
            if isinstance(error, OSError):
                self._report_failure(error)
            return False
        return True

    def _report_failure(self, error: OSError) -> None:
        self._step_effects.append(ReportLogFailure(f"the log of {self.topic_partition} failed: {error}"))

    def _take_offline(self, reason: str) -> None:
        self._offline = True
        self._step_effects[:] = split_actions(self._replica.on_offline(reason))[1]

    def _deliver(self) -> None:
        """Hand out what is in the outbox, in order; one thread at a time does it for all."""
        while self._outbox:
            if not self._delivery.acquire(blocking=False):
                return
            try:
                while self._outbox:
                    self._let_out(self._outbox.popleft())
            finally:
                self._delivery.release()

    def _let_out(self, effect: OutwardEffect) -> None:
        """One effect that cannot be carried out must keep neither the others, nor whoever happens to deliver
        (a producer's handler, housekeeping, a timer), from going on.
        """
        try:
            self._outlet(self, effect)
        except Exception:
            logger.exception("%s: %s could not be carried out", self.topic_partition, effect)

    # Details

    def _check_producer(self, batches: Batches) -> Duplicate | Refused | None:
        for _, header in batches:
            if not header.has_producer:
                continue
            verdict = self.log.producers.check(producer_batch(header))
            if isinstance(verdict, Duplicate | Refused):
                return verdict
        return None

    def _wait(self, leader: Leader, acks: int, token: int, base_offset: int, end_offset: int) -> AppendResult:
        waits = acks == ACKS_ALL
        if waits:
            self._apply(leader.on_produce_waits(token, end_offset))
        return AppendResult(ErrorCode.none, base_offset, self.log_start_offset, waits)

    def _check_reader(self, leader: Leader | None, request: ReadRequest) -> ErrorCode:
        if leader is None:
            return self._no_leader(request.current_leader_epoch)
        error = leader.check_epoch(request.current_leader_epoch)
        if error is ErrorCode.none and request.follower is not None:
            error = leader.check_follower(request.follower, request.follower_epoch)
        return error

    def _no_leader(self, current_leader_epoch: int) -> ErrorCode:
        """A follower fences by epoch before it says that it does not lead (KIP-320)."""
        if self._offline:
            return ErrorCode.kafka_storage_error
        if -1 < current_leader_epoch < self._replica.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        if current_leader_epoch > self._replica.leader_epoch:
            return ErrorCode.unknown_leader_epoch
        return ErrorCode.not_leader_or_follower

    def _result(
        self,
        leader: Leader,
        *,
        error: ErrorCode = ErrorCode.none,
        parts: tuple[Part, ...] = (),
        size_bytes: int = 0,
        diverging: Diverging | None = None,
    ) -> ReadResult:
        marks = leader.marks
        return ReadResult(error, parts, size_bytes, marks.high_watermark, marks.log_start_offset, diverging)


class _Step:
    """Hold the partition's lock; afterwards let its outbox out."""

    __slots__ = ("_partition",)

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def __enter__(self) -> None:
        self._partition._guard.acquire()

    def __exit__(self, *unused: object) -> None:
        partition = self._partition
        partition._outbox.extend(partition._step_effects)
        partition._step_effects.clear()
        partition._guard.release()
        partition._deliver()
