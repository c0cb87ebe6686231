"""One log under one lock: steps, the outbox of what they say to the outside, flushes, and failing disks.

A *step* holds the lock: a fact goes to the machine, the machine's effects on the log are carried out at once,
so that machine and log never disagree, and its outward effects are put into the outbox. The outbox is let out
after the lock is released, one effect at a time and in order. A log effect that fails takes the log offline
before the lock is released, and drops what that step wanted to say to the outside.

The guard knows no replication: its machine is whatever answers the four facts of ``LogMachine``.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from sparklog.broker.partition.batches import Batches
from sparklog.core.producers.transactions import Transactions
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
from sparklog.model.errors import CorruptBatch, ErrorCode, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.time import Clock, MonotonicMs
from sparklog.storage.disk import may_have_lost
from sparklog.storage.late_removals import remove_files
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig

logger: Final = logging.getLogger(__name__)


class LogMachine(Protocol):
    """The facts that a log guard reports to its machine, always within a step."""

    @property
    def generation(self) -> int:
        """Raised by every truncation: a flush that began in an earlier one vouches for nothing. The machine's
        own count, not the log's: ``core.replication.replica.Replica.generation`` says how they differ.
        """

    def on_log_changed(
        self,
        log_start_offset: int,
        log_end_offset: int,
        transactions: Transactions,
        *,
        local_start_offset: int | None,
    ) -> None: ...

    def note_log_effect(self, effect: Action) -> None: ...

    def on_flushed(self, offset: int, generation: int, now_ms: MonotonicMs) -> list[Action]: ...

    def on_offline(self, reason: str) -> list[Action]: ...


class StepWatcher(Protocol):
    """Whoever must know that a partition may have changed."""

    def on_step(self) -> None:
        """A step ends: whoever takes the lock from now on sees its changes. It must be short, and not fail,
        because the lock is still held.
        """


class LogGuard:
    """A log, and what protects it.

    Methods of "Upkeep" take the lock, and may be called from any thread; those of
    "Within a step" need it held.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        log: Log,
        machine: LogMachine,
        *,
        lock: Guard,
        delivery: Guard,
        outlet: Callable[[OutwardEffect], None],
        flushing: Guard,
        clock: Clock,
    ) -> None:
        """``delivery`` is held by the thread that lets out the outbox, ``flushing`` by the one that syncs."""
        self.topic_partition = topic_partition
        self.log = log
        self.lock = lock
        self.is_offline = False
        self.step = _Step(self)
        """``with guard.step:`` takes the lock, and lets out the outbox after it is released."""
        self.held_step = _HeldStep(self)
        """As ``step``, but the outbox waits for ``deliver``: the caller has a guard that must be released
        first.
        """
        self.watcher: StepWatcher | None = None
        """Learns of each step that ends: what a step may change has not changed since the last one."""
        self._machine = machine
        self._delivery = delivery
        self._outlet = outlet
        self._clock = clock
        self._outbox: deque[OutwardEffect] = deque()
        self._step_effects: list[OutwardEffect] = []
        self._flushing = flushing
        self._flushed_ms = clock.monotonic_ms()
        with self.step:
            self.log_changed()

    # Upkeep

    @property
    def should_flush_before_checkpoint(self) -> bool:
        """Whether the log has sealed a segment, or raised its start, past what is synced."""
        return self.log.recovery_point < max(self.log.active_segment_base, self.log.log_start_offset)

    def size_bytes(self) -> int:
        with self.lock:
            return self.log.size_bytes

    def configure(self, config: LogConfig) -> None:
        """Go on with the topic's settings as they are now."""
        with self.lock:
            self.log.config = config

    def flush(self) -> None:
        """Bring the log to disk. The fsync itself runs outside the lock, so that nothing waits for it.

        One at a time: a second flush would find nothing left to sync, and vouch for what the first does.
        """
        with self._flushing:
            self._flush()

    def _flush(self) -> None:
        with self.step:
            if self.is_offline:
                return
            generation = self._machine.generation
            try:
                flush = self.log.begin_flush()
            except (OSError, SparklogError) as error:
                self.take_offline(f"the log cannot be flushed: {error}")
                self.report_failure(error)
                return
        try:
            flush.run()
        except OSError as error:
            self.fail(error)
            return
        with self.step:
            now_ms = self._clock.monotonic_ms()
            self._flushed_ms = now_ms
            self.log.finish_flush(flush)
            if not self.is_offline:
                self.apply(self._machine.on_flushed(flush.offset, generation, now_ms))

    def flush_by_time(self) -> None:
        """Bring to disk what has waited for ``flush.ms``."""
        age_ms = self._clock.monotonic_ms() - self._flushed_ms
        if age_ms >= self.log.config.flush_ms and self.log.recovery_point < self.log.log_end_offset:
            self.flush()

    def remove_late_files(self) -> None:
        """Remove files of deleted segments that are due; without the lock, because it may take long."""
        with self.lock:
            disk, due = self.log.disk, self.log.late_removals.take_due(self._clock.wall_ms())
        try:
            remove_files(disk, due)
        except OSError as error:
            with self.step:
                self.take_offline(f"a deleted segment could not be removed: {error}")
                self.report_failure(error)

    def rearrange(self, change: Callable[[Log], bool]) -> bool:
        """A ``change`` of files that moves neither end of the log; False if it refuses, or the disk fails."""
        with self.step:
            changed: list[bool] = []
            if not self.is_offline:
                self.carry_out(lambda: changed.append(change(self.log)))
            return changed == [True] and not self.is_offline

    def expire_producers(self, max_age_ms: int) -> None:
        """Forget producers that have written nothing for ``max_age_ms``; every new producer adds one."""
        with self.lock:
            self.log.producers.expire(self._clock.wall_ms(), max_age_ms)

    def fail(self, error: OSError) -> None:
        """The disk failed a sync of this log, or a write: the log may hold what the disk does not have."""
        with self.step:
            self.log.fail_flush()
            self.take_offline(f"its disk failed: {error}")
            self.report_failure(error)

    # Within a step

    def apply(self, actions: Sequence[Action]) -> None:
        """Carry out the effects on the log, and put the outward ones into the outbox."""
        if not actions:
            return
        log_effects, outward = split_actions(actions)
        self._step_effects.extend(outward)
        for effect in log_effects:
            self._machine.note_log_effect(effect)
            if not self.carry_out(partial(self._change_log, effect)):
                return

    def append(self, records: bytes | bytearray | memoryview, batches: Batches) -> bool:
        """Write ``batches``, which stand in ``records``, to the end of the log; False if the disk fails."""

        def append() -> None:
            self.log.append(records, batches)
            self.log_changed()
            self._flush_if_much()

        return self.carry_out(append)

    def carry_out(self, effect: Callable[[], object]) -> bool:
        """Do something to the log; if that fails, the log goes offline at once, and the answer is False."""
        try:
            effect()
        except Exception as error:
            # Also for a bug: nothing may build on what it left half done.
            logger.exception("%s: the log failed and goes offline", self.topic_partition)
            self.take_offline(f"{type(error).__name__}: {error}")
            if isinstance(error, OSError):
                self.report_failure(error)
            return False
        return True

    def log_changed(self) -> None:
        """The machine learns where the log begins and ends now, and its transactions."""
        log = self.log
        self._machine.on_log_changed(
            log.log_start_offset,
            log.log_end_offset,
            log.producers.transactions,
            local_start_offset=log.local_start_offset,
        )

    def take_offline(self, reason: str) -> None:
        """Serve nothing any more. The step's outward effects are dropped, because the log under them failed.

        Announcements of leadership stay: listeners must be notified of each epoch's begin and end, in order.
        """
        self.is_offline = True
        announced = [one for one in self._step_effects if isinstance(one, BeganLeading | CeasedLeading)]
        self._step_effects[:] = [*announced, *split_actions(self._machine.on_offline(reason))[1]]

    def report_failure(self, error: OSError | SparklogError) -> None:
        """Have the whole log directory taken offline."""
        reason = f"the log of {self.topic_partition} failed: {error}"
        self._step_effects.append(ReportLogFailure(reason, may_have_lost(error)))

    def unreadable(self, error: OSError | SparklogError) -> ErrorCode:
        """The answer for a range that cannot be read; the rest of the log is still served, if it can be."""
        logger.error("%s: the log cannot be read there: %s", self.topic_partition, error)
        if isinstance(error, CorruptBatch):
            return ErrorCode.corrupt_message
        if may_have_lost(error):  # an index was rebuilt, and could not be written
            self.take_offline(f"{type(error).__name__}: {error}")
            self.report_failure(error)
        return ErrorCode.kafka_storage_error

    def _change_log(self, effect: LogEffect) -> None:
        match effect:
            case AssignEpoch(epoch, start_offset):
                self.log.assign_epoch(epoch, start_offset)
            case TruncateTo(offset):
                self.log.truncate_to(offset)
            case RestartAt(offset, producers, history):
                self.log.truncate_fully_and_start_at(offset, producers, history)
            case RaiseLogStart(offset):
                self.log.raise_log_start(offset)
        self.log_changed()

    def _flush_if_much(self) -> None:
        if self.log.log_end_offset - self.log.recovery_point >= self.log.config.flush_messages:
            self._step_effects.append(FlushLog())

    # After a step

    def end_step(self) -> None:
        """Put the step's effects into the outbox, and release the lock."""
        if self._step_effects:
            self._outbox.extend(self._step_effects)
            self._step_effects.clear()
        if self.watcher is not None:
            self.watcher.on_step()
        self.lock.release()

    def deliver(self) -> None:
        """Let out the outbox, in order; one thread at a time does it for all."""
        while self._outbox:
            if not self._delivery.acquire(blocking=False):
                return
            try:
                while self._outbox:
                    self._let_out(self._outbox.popleft())
            finally:
                self._delivery.release()

    def _let_out(self, effect: OutwardEffect) -> None:
        """An effect that fails must stop neither the next ones, nor the thread that happens to deliver it: a
        producer's handler, housekeeping, a timer.
        """
        try:
            self._outlet(effect)
        except Exception:
            logger.exception("%s: %s could not be carried out", self.topic_partition, effect)


class _Step:
    """Holds the lock of a guard for the length of a ``with``. It has no state, so one serves all threads."""

    __slots__ = ("_guard",)

    def __init__(self, guard: LogGuard) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        self._guard.lock.acquire()

    def __exit__(self, *unused: object) -> None:
        self._guard.end_step()
        self._guard.deliver()


class _HeldStep(_Step):
    """A step without a delivery."""

    __slots__ = ()

    def __exit__(self, *unused: object) -> None:
        self._guard.end_step()
