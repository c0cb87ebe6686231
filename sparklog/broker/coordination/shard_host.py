"""One shard with what it needs of a broker: a lock, an outbox, a timer, appends, and the waiting replies.

A *step* passes one fact to the shard under its lock, and puts the shard's actions into the outbox. The outbox
is let out after the lock is released, one action at a time and in order: an append may be answered on the
same thread, a reply may run a handler's code. No other lock is taken within the shard's.
"""

import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from sparklog.broker.internal_append import InternalAppends, InternalBatch
from sparklog.broker.partition.append_results import Appended, AppendResult, InDoubt
from sparklog.broker.ports import Ports
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.core.coordinator.actions import Reply, Tell, Token
from sparklog.core.coordinator.shard import (
    Append,
    AppendOutcome,
    Committed,
    ConfirmEpoch,
    MayBeCommitted,
    NotAppended,
    Phase,
    Shard,
    ShardAction,
)
from sparklog.core.coordinator.state_machine import Now, Request
from sparklog.core.replication.leader import Leader
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    LeaderEpoch,
    NamedTopic,
    TopicId,
    TopicPartition,
)
from sparklog.model.ports import Cancellable
from sparklog.model.time import MonotonicMs
from sparklog.records.envelope import Compression
from sparklog.records.kafka.encode import Record

logger: Final = logging.getLogger(__name__)

DOUBT_POLL_MS: Final = 100
"""How often the high watermark is looked at while an append is in doubt."""

Answer = Callable[[Any], None]
"""Takes the response to a request."""

Listener = Callable[["ShardHost", Any], None]
"""Takes what the machine tells the shell of its kind; must be short."""


class ShardHost:
    """One shard on this broker, for one leader epoch of its partition.

    All methods may be called from any thread. ``confirm`` is called to have the leader epoch confirmed,
    ``tell`` with each message of the machine.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        leader_epoch: LeaderEpoch,
        shard: Shard,
        replicas: PartitionTable,
        appends: InternalAppends,
        ports: Ports,
        *,
        append_timeout_ms: int,
        compression: Compression,
        batch_bytes_max: Callable[[], int],
        confirm: Callable[["ShardHost"], None],
        tell: Listener,
    ) -> None:
        self.topic_partition: Final = topic_partition
        self.topic_id: Final = topic_id
        self.leader_epoch: Final = leader_epoch
        self.shard: Final = shard
        self._replicas = replicas
        self._appends = appends
        self._ports = ports
        self._append_timeout_ms = append_timeout_ms
        self._compression = compression
        self._batch_bytes_max = batch_bytes_max
        self._confirm = confirm
        self._tell = tell
        self._guard = ports.new_guard()
        self._delivery = ports.new_guard()
        """Held by the thread that lets out the outbox, which alone touches the timer's entry."""
        self._outbox: deque[ShardAction] = deque()
        self._has_moved = False
        """Whether a step was made since the timer was last set."""
        self._alarm: tuple[MonotonicMs, Cancellable] | None = None
        self._has_rung = False
        self._tokens = itertools.count(1)
        self._answers: dict[Token, Answer] = {}

    # Facts

    def begin(self) -> None:
        self._step(lambda now: self.shard.begin())

    def submit(self, request: Request[Any], answer: Answer) -> None:
        """Have the request answered, now or later, on any thread."""
        token = Token(next(self._tokens))
        self._answers[token] = answer
        self._step(lambda now: self.shard.on_request(token, request, now))

    def on_loaded(self) -> None:
        """The loader has replayed the log into the shard's machine."""
        self._step(self.shard.on_loaded)

    def on_confirmed(self, standstills: int) -> None:
        self._step(lambda now: self.shard.on_confirmed(standstills, now))

    def on_topics_deleted(self, topics: Iterable[NamedTopic]) -> None:
        self._step(lambda now: self.shard.on_topics_deleted(topics, now))

    def on_end(self, producer_id: int, is_commit: bool, offset: int) -> None:
        """The marker at ``offset`` of this partition is below the high watermark."""
        self._step(lambda now: self.shard.on_end(producer_id, is_commit, offset, now))

    def resign(self) -> None:
        self._step(lambda now: self.shard.resign())

    def _on_time(self) -> None:
        if self.shard.has_doubt_to_settle:
            high_watermark = self.high_watermark()
            if not isinstance(high_watermark, ErrorCode):
                self._step(lambda now: self.shard.on_high_watermark(high_watermark, now))
        self._step(self.shard.on_time)

    def high_watermark(self) -> int | ErrorCode:
        """The partition's high watermark, or an error if this broker no longer leads in this epoch."""
        return self._leader_offset(lambda leader: leader.marks.high_watermark)

    def loss_end(self) -> int | ErrorCode:
        """As ``Leader.loss_end``, or an error if this broker no longer leads in this epoch."""
        return self._leader_offset(lambda leader: leader.loss_end)

    def _leader_offset(self, look: Callable[[Leader], int]) -> int | ErrorCode:
        partition = self._replicas.get(self.topic_partition)
        if partition is None:
            return ErrorCode.not_leader_or_follower
        return partition.reads.leader_offset(self.leader_epoch, lambda leader, log: look(leader))

    # Steps

    def now(self) -> Now:
        clock = self._ports.clock
        return Now(clock.monotonic_ms(), clock.wall_ms())

    def _step(self, fact: Callable[[Now], list[ShardAction]]) -> None:
        max_bytes = self._batch_bytes_max()
        with self._guard:
            self.shard.batch_bytes_max = max_bytes
            self._outbox += fact(self.now())
            self._has_moved = True
        self._let_out()

    def _let_out(self) -> None:
        """Carry out what is in the outbox, unless another thread is at it. That thread sees what is added."""
        while (self._outbox or self._has_moved) and self._delivery.acquire(blocking=False):
            try:
                while self._outbox:
                    self._carry_out(self._outbox.popleft())
                if self._has_moved:
                    self._set_alarm()
            finally:
                self._delivery.release()

    def _carry_out(self, action: ShardAction) -> None:
        match action:
            case Reply(token, response):
                self._reply(token, response)
            case Append():
                self._append(action)
            case ConfirmEpoch():
                self._confirm(self)
            case Tell(message):
                self._tell(self, message)

    def _reply(self, token: Token, response: Any) -> None:
        try:
            self._answers.pop(token)(response)
        except Exception:
            # The other requests of this shard must not suffer from one handler's bug.
            logger.exception("%s: a request could not be answered", self.topic_partition)

    def _append(self, append: Append) -> None:
        def answered(results: dict[TopicPartition, AppendResult]) -> None:
            outcome = _outcome(results[self.topic_partition])
            self._step(lambda now: self.shard.on_appended(append.append_id, outcome, now))

        batch = InternalBatch(
            topic_partition=self.topic_partition,
            leader_epoch=self.leader_epoch,
            records=[Record(key=key, value=value) for key, value in append.records],
            max_bytes=self._batch_bytes_max(),
            compression=self._compression,
            producer_id=NO_PRODUCER_ID if append.producer is None else append.producer.producer_id,
            producer_epoch=NO_PRODUCER_EPOCH if append.producer is None else append.producer.producer_epoch,
        )
        self._appends.run([batch], self._append_timeout_ms, answered)

    # Time

    def _set_alarm(self) -> None:
        """Have ``_on_time`` called at the next deadline. An earlier alarm may stay: it sets the next one."""
        with self._guard:
            self._has_moved = False
            now_ms = self._ports.clock.monotonic_ms()
            deadline_ms = self.shard.next_deadline_ms()
            if self.shard.has_doubt_to_settle:
                poll_ms = MonotonicMs(now_ms + DOUBT_POLL_MS)
                deadline_ms = poll_ms if deadline_ms is None else min(deadline_ms, poll_ms)
        if self._has_rung:
            self._has_rung, self._alarm = False, None
        if self._alarm is not None:
            if deadline_ms is not None and self._alarm[0] <= deadline_ms:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if deadline_ms is not None:
            delay_ms = max(0, deadline_ms - now_ms)
            self._alarm = (deadline_ms, self._ports.timer.after(delay_ms, self._ring))

    def _ring(self) -> None:
        """On the timer's thread, which must not write to a log."""
        self._ports.executor.submit(self._rung)

    def _rung(self) -> None:
        self._has_rung = True
        self._on_time()

    @property
    def is_over(self) -> bool:
        return self.shard.phase is Phase.resigned


def _outcome(result: AppendResult) -> AppendOutcome:
    if isinstance(result, Appended):
        return Committed(result.end_offset)
    if isinstance(result, InDoubt):
        return MayBeCommitted(result.error, result.end_offset)
    if result.error is ErrorCode.kafka_storage_error:
        return MayBeCommitted(result.error, None)  # the disk failed in the middle of the write
    return NotAppended(result.error)
