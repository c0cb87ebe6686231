"""The half of a partition that knows nothing of replication: its lock, its steps, and the upkeep of its log.

A *step* holds the partition's lock: a fact goes to the machine, its effects on the log are carried out at
once, and what the outside is to hear is put in the outbox, which leaves after the lock is released.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from sparklog.broker.partition.batches import Batches
from sparklog.core.replication.actions import (
    Action,
    AssignEpoch,
    BeganLeading,
    CeasedLeading,
    FlushLog,
    LogEffect,
    OutwardEffect,
    RaiseLogStart,
    ReportLogFailure,
    RestartAt,
    TruncateTo,
    split_actions,
)
from sparklog.core.replication.isr import committed_isr
from sparklog.core.replication.replica import Replica
from sparklog.core.transaction.refused_batches import RefusedBatches
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.time import Clock
from sparklog.storage.disk import may_have_lost
from sparklog.storage.late_removals import remove_files
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig

logger = logging.getLogger(__name__)

T = TypeVar("T")


class PartitionShell:
    """Machine, log and lock of one replica. All public methods may be called from any thread."""

    def __init__(
        self,
        replica: Replica,
        log: Log,
        *,
        guard: Guard,
        delivery: Guard,
        outlet: Callable[[Any, OutwardEffect], None],
        clock: Clock,
        flushing: Guard | None = None,
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
        self._refused = RefusedBatches()
        self._flushing: Guard = threading.Lock() if flushing is None else flushing
        self._flushed_ms = clock.monotonic_ms()
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
    def is_under_replicated(self) -> bool:
        """Whether we lead, and not all replicas are in sync."""
        leader = self._replica.leader
        return leader is not None and len(committed_isr(leader.isr).members) < len(leader.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether we lead, and writes with acks=all are refused for want of replicas in sync."""
        leader = self._replica.leader
        return leader is not None and leader.is_under_min_isr

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
    def should_flush_before_checkpoint(self) -> bool:
        """Whether it has sealed a segment, or raised its start, past what is synced."""
        return self.log.recovery_point < max(self.log.active_segment_base, self.log.log_start_offset)

    def size_bytes(self) -> int:
        with self._guard:
            return self.log.size_bytes

    # Upkeep

    def flush(self) -> None:
        """Bring the log to disk. The fsync itself runs outside the lock, so that nobody waits for it.

        One at a time: a second flush would find nothing left to sync, and vouch for what the first does.
        """
        with self._flushing:
            self._flush()

    def _flush(self) -> None:
        with self._step():
            if self._offline:
                return
            generation = self._replica.generation
            try:
                flush = self.log.begin_flush()
            except (OSError, SparklogError) as error:
                self._take_offline(f"the log cannot be flushed: {error}")
                self._report_failure(error)
                return
        try:
            flush.run()
        except OSError as error:
            self.fail_log(error)
            return
        with self._step():
            now_ms = self._clock.monotonic_ms()
            self._flushed_ms = now_ms
            self.log.finish_flush(flush)
            if not self._offline:
                self._apply(self._replica.on_flushed(flush.offset, generation, now_ms))

    def flush_if_owed(self) -> None:
        """With ``log.flush.acks=fsync``: bring to disk what is not, before anybody vouches for it."""
        if self._replica.marks.owes_flush:
            self.flush()

    def flush_by_time(self) -> None:
        """Bring to disk what has waited for ``flush.ms``."""
        age_ms = self._clock.monotonic_ms() - self._flushed_ms
        if age_ms >= self.log.config.flush_ms and self.log.recovery_point < self.log.log_end_offset:
            self.flush()

    def _flush_if_much(self) -> None:
        """Within a step that appended: enough records to bring them to disk may have gathered."""
        if self.log.log_end_offset - self.log.recovery_point >= self.log.config.flush_messages:
            self._step_effects.append(FlushLog())

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

    def remove_late_files(self) -> None:
        """Remove the files of deleted segments whose time has come; without the lock, as it may take long."""
        with self._guard:
            disk, due = self.log.disk, self.log.late_removals.take_due(self._clock.wall_ms())
        try:
            remove_files(disk, due)
        except OSError as error:
            with self._step():
                self._take_offline(f"a deleted segment could not be removed: {error}")
                self._report_failure(error)

    def inspect(self, look: Callable[[Log, int], T]) -> T | None:
        """What ``look`` makes of log and high watermark; None if this replica has no role or no log left."""
        with self._guard:
            if self._offline or self._replica.role is None:
                return None
            return look(self.log, self._replica.marks.high_watermark)

    def rearrange(self, change: Callable[[Log], bool]) -> bool:
        """A ``change`` of files that moves neither end of the log; False if it or the disk says no."""
        with self._step():
            changed: list[bool] = []
            if not self._offline:
                self._guarded(lambda: changed.append(change(self.log)))
            return changed == [True] and not self._offline

    def fail_log(self, error: OSError) -> None:
        """The disk failed a sync of this log, or a write: what it holds may not be what the disk has."""
        with self._step():
            self.log.fail_flush()
            self._take_offline(f"its disk failed: {error}")
            self._report_failure(error)

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
        self._step_effects.extend(outward)
        for effect in log_effects:
            self._replica.note_log_effect(effect)
            if not self._guarded(lambda effect=effect: self._carry_out(effect)):  # type: ignore[misc]
                return

    def _carry_out(self, effect: LogEffect) -> None:
        match effect:
            case AssignEpoch(epoch, start_offset):
                self.log.assign_epoch(epoch, start_offset)
            case TruncateTo(offset):
                self.log.truncate_to(offset)
            case RestartAt(offset, producers):
                self.log.truncate_fully_and_start_at(offset, producers)
            case RaiseLogStart(offset):
                self.log.raise_log_start(offset)
        self._log_changed()

    def _append(self, records: bytes | bytearray | memoryview, batches: Batches) -> bool:
        def append() -> None:
            self.log.append(records, batches)
            self._log_changed()
            self._flush_if_much()

        return self._guarded(append)

    def _log_changed(self) -> None:
        self._replica.on_log_changed(self.log.log_start_offset, self.log.log_end_offset)

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

    def _report_failure(self, error: OSError | SparklogError) -> None:
        reason = f"the log of {self.topic_partition} failed: {error}"
        self._step_effects.append(ReportLogFailure(reason, may_have_lost(error)))

    def _take_offline(self, reason: str) -> None:
        """Serve nothing any more. The step's outward effects are dropped, because the log under them failed.

        Announcements of leadership stay: listeners must hear of each epoch's end, and of its begin before.
        """
        self._offline = True
        announced = [one for one in self._step_effects if isinstance(one, BeganLeading | CeasedLeading)]
        self._step_effects[:] = [*announced, *split_actions(self._replica.on_offline(reason))[1]]

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


class _Step:
    """Hold the partition's lock; afterwards let its outbox out."""

    __slots__ = ("_partition",)

    def __init__(self, partition: PartitionShell) -> None:
        self._partition = partition

    def __enter__(self) -> None:
        self._partition._guard.acquire()

    def __exit__(self, *unused: object) -> None:
        partition = self._partition
        partition._outbox.extend(partition._step_effects)
        partition._step_effects.clear()
        partition._guard.release()
        partition._deliver()
