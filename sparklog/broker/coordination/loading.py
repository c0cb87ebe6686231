"""Loads the shards of one broker: reads the log of each new shard into its machine, step by step.

    began leading: end = log end, position = log start
        |
        +--> read up to ``offsets.load.buffer.size`` bytes below the high watermark, and replay them --+
        |                                                                                             |
        +<-- position < end -------------------------------------------------------------------------+
        |
        +--> position = end: loaded

The replay stops once where the last election that may have lost records found the log's end, because a
machine must not rely on the latest state before that offset (``StateMachine.replay_loss``).

A load ends when the high watermark has passed the log's end at the election, because the previous leader may
have acknowledged records up to there, and this one may still lose them. It ends without a result when its
leader epoch does (KAFKA-9307).

One loop makes all steps: first of the loads that clients ask for, then of the short ones. A load that waits
for the high watermark or a damaged log does not delay the others. A replay needs no lock, because no other
thread uses the machine of a loading shard. The partition's lock is held while positions are looked up.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Final

from sparklog.broker.coordination.last_values import LastValues, is_plain, last_values, plain_batches
from sparklog.broker.coordination.shard_host import ShardHost
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.partition.partition import Partition
from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.coordinator.state_machine import StateMachine
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, NamedTopic
from sparklog.model.loops import Await, Loop, Pause, Signal
from sparklog.model.parts import read_parts
from sparklog.model.time import Clock, MonotonicMs
from sparklog.records.control import end_of_transaction
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader, crc_matches, parse_header
from sparklog.storage.damage import refuse_damaged
from sparklog.storage.log import Log
from sparklog.storage.segments.log_read import LogRead
from sparklog.wire.coordinator_records.record_codec import RecordCodec

logger: Final = logging.getLogger(__name__)

POLL_MS: Final = 10
POLL_MAX_MS: Final = 500
"""First and longest pause before the high watermark is read again. It usually moves at once."""

RETRY_MS: Final = 5_000
"""Pause after a log that could not be read."""


@dataclass(slots=True, eq=False)
class Load:
    """One shard that loads."""

    host: ShardHost
    partition: Partition
    codec: RecordCodec
    began_ms: MonotonicMs
    position: int
    """The offset to read next. All records from the log's start up to it are replayed."""
    end: int
    """The log's end at the election, exclusive."""
    not_before_ms: MonotonicMs = MonotonicMs(0)
    """No step is made before this time."""
    is_after_loss: bool = False
    """Whether all records that the last lossy election found are replayed."""
    polls: int = 0
    """Steps that had to wait, each twice as long as the last one, up to ``POLL_MAX_MS``."""
    records: int = 0
    """Records that were replayed."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Keys whose records were skipped, by reason."""


class Loads:
    """The loads of one broker. A step reads about ``step_bytes``."""

    def __init__(self, clock: Clock, metadata: MetadataCache, step_bytes: int) -> None:
        self._clock = clock
        self._metadata = metadata
        self._step_bytes = step_bytes
        self._added: deque[Load] = deque()
        """Loads that the loop has not taken yet; any thread appends."""
        self._loads: list[Load] = []
        """Loads that have not ended; the loop's own."""
        self._signal = Signal()
        self.last_load_ms = 0
        """The time from the election to the end of the load that ended last."""

    def add(self, host: ShardHost, partition: Partition, codec: RecordCodec) -> None:
        """Load the shard of ``host`` from ``partition``, which has just begun to lead; for any thread."""
        began_ms = self._clock.monotonic_ms()
        start, end = partition.log_start_offset, partition.log_end_offset
        self._added.append(Load(host, partition, codec, began_ms, start, end))
        self._signal.give()

    def loop(self) -> Loop:
        """Load for ever, and yield after every step."""
        while True:
            self._signal.take()
            while self._added:
                self._loads.append(self._added.popleft())
            now_ms = self._clock.monotonic_ms()
            due = [load for load in self._loads if load.not_before_ms <= now_ms]
            if due:
                load = min(due, key=_turn)
                if self._step(load):
                    self._loads.remove(load)
                yield Pause(0)
            elif (rest_ms := self._rest_ms()) != 0:
                yield Await(self._signal, rest_ms)

    def _rest_ms(self) -> int | None:
        """The time until a load can go on; None without loads."""
        if not self._loads:
            return None
        now_ms = self._clock.monotonic_ms()
        return max(0, min(load.not_before_ms for load in self._loads) - now_ms)

    def _step(self, load: Load) -> bool:
        """Replay a piece of the log; whether the load has ended."""
        try:
            return self._advance(load)
        except (OSError, CorruptBatch) as error:
            self._note_unreadable(load, error)
        except Exception:
            # A bug that one log provokes must not stop the loads of other shards.
            logger.exception("%s: the coordinator cannot load, and tries again", load.host.topic_partition)
            load.not_before_ms = MonotonicMs(self._clock.monotonic_ms() + RETRY_MS)
        return False

    def _advance(self, load: Load) -> bool:
        high_watermark = load.host.high_watermark()
        loss_end = 0 if load.is_after_loss else load.host.loss_end()
        if isinstance(high_watermark, ErrorCode) or isinstance(loss_end, ErrorCode):
            self._wait(load)  # until the shard resigns, because its leader epoch is over
            return load.host.is_over
        _note_loss(load, loss_end)
        stop = min(load.end, high_watermark) if load.is_after_loss else min(loss_end, high_watermark)
        if load.position < stop:
            self._replay(load, stop)
            _note_loss(load, loss_end)
        elif high_watermark < load.end:
            self._wait(load)
        if load.position >= load.end <= high_watermark:
            self._finish(load)
            return True
        return load.host.is_over  # a later epoch has begun; this machine is dropped

    def _wait(self, load: Load) -> None:
        """Make the next step later, each time twice as late."""
        pause_ms = min(POLL_MS << min(load.polls, 6), POLL_MAX_MS)
        load.polls += 1
        load.not_before_ms = MonotonicMs(self._clock.monotonic_ms() + pause_ms)

    def _replay(self, load: Load, readable_end: int) -> None:
        read = load.partition.inspect(lambda log, _: self._look_up(load, log, readable_end))
        if read is None:
            self._wait(load)  # until the shard resigns
            return
        run, position = read_parts(read.parts), 0
        if not run:
            load.position = readable_end  # compaction has removed all up to there
        while position < len(run):
            plain = plain_batches(run, position)
            if plain.begins:
                _replay_records(load, last_values(run, plain.begins), load.host.shard.machine.replay)
                position, load.position = plain.next_position, plain.next_offset
            others = _not_plain(run, position)
            for (producer_id, is_control), together in groupby(others, _kind_of):
                _replay_others(load, run, list(together), producer_id, is_control=is_control)
            if others:
                last_position, last = others[-1]
                position, load.position = last_position + last.size_bytes, last.next_offset
            elif not plain.begins and position:
                return  # the limit of the read cut the last batch
            elif not plain.begins:
                raise CorruptBatch(f"the batch at offset {load.position} ends behind what was read")

    def _look_up(self, load: Load, log: Log, readable_end: int) -> LogRead | None:
        """The next piece of the log; within the partition's lock."""
        load.position = max(load.position, log.log_start_offset)  # retention may have raised it
        refuse_damaged(log, load.position)
        if load.position >= readable_end:
            return LogRead([], 0, load.position)
        return log.read(load.position, self._step_bytes, readable_end, at_least_one_batch=True)

    def _finish(self, load: Load) -> None:
        took_ms = self._clock.monotonic_ms() - load.began_ms
        self.last_load_ms = took_ms
        where, epoch = load.host.topic_partition, load.host.leader_epoch
        for reason, count in load.skipped.items():
            logger.warning("%s: records of %d keys were skipped while loading: %s", where, count, reason)
        logger.info(
            "%s: the coordinator of leader epoch %d has loaded %d records in %d ms",
            where,
            epoch,
            load.records,
            took_ms,
        )
        topics = load.host.shard.machine.topics()
        load.host.on_loaded()
        # A loading shard is not notified of deletions. It is from now on, so none falls between.
        gone = [topic for topic in topics if self._is_gone(topic)]
        if gone:
            load.host.on_topics_deleted(gone)

    def _is_gone(self, topic: NamedTopic) -> bool:
        """Whether the topic was deleted, or made again under its name."""
        if not self._metadata.is_received:
            return False
        present = self._metadata.topic(topic.name)
        return present is None or (NO_TOPIC_ID not in (topic.id, present.id) and topic.id != present.id)

    def _note_unreadable(self, load: Load, error: OSError | CorruptBatch) -> None:
        """Have the partition check its log, so that another replica leads if one can; try again later."""
        load.not_before_ms = MonotonicMs(self._clock.monotonic_ms() + RETRY_MS)
        logger.error(
            "%s: the coordinator cannot load, because %s cannot be read at offset %d: %s. Its clients are "
            "answered COORDINATOR_LOAD_IN_PROGRESS until it can: if no other replica takes over by itself, "
            "restore the disk and restart the broker, or elect another replica (sparklog elect-leaders)",
            load.host.topic_partition,
            load.partition.log.directory,
            load.position,
            error,
        )
        load.partition.check_log(load.position)


def _turn(load: Load) -> tuple[bool, int]:
    """The order of loads: those that clients ask for first, then those with fewer offsets left."""
    return not load.host.shard.is_asked_for, load.end - load.position


def _note_loss(load: Load, loss_end: int) -> None:
    """Notify the machine if the load has just replayed the records that a lossy election found."""
    if load.position >= loss_end and not load.is_after_loss:
        load.is_after_loss = True
        if loss_end > 0:
            load.host.shard.machine.replay_loss()


def _kind_of(batch: tuple[int, BatchHeader]) -> tuple[int | None, bool]:
    """The producer of a transaction's batch, None for every other; and whether it is a control batch."""
    header = batch[1]
    return header.producer_id if header.is_transactional else None, header.is_control


def _replay_records(load: Load, records: LastValues, replay: Callable[[StateRecord], None]) -> None:
    for key, value in records.items():
        decoded = load.codec.decode(key, value)
        if isinstance(decoded, StateRecord):
            replay(decoded)
            load.records += 1
        else:
            load.skipped[decoded.kind] += 1


def _not_plain(run: bytes, position: int) -> list[tuple[int, BatchHeader]]:
    """The whole batches from ``position`` on, until a plain one. CorruptBatch for a wrong CRC."""
    others: list[tuple[int, BatchHeader]] = []
    while len(run) - position >= ENVELOPE_BYTES:
        header = parse_header(run, position)
        if is_plain(header) or position + header.size_bytes > len(run):
            break
        if not crc_matches(run, position, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its CRC")
        others.append((position, header))
        position += header.size_bytes
    return others


def _replay_others(
    load: Load,
    run: bytes,
    batches: Sequence[tuple[int, BatchHeader]],
    producer_id: int | None,
    *,
    is_control: bool,
) -> None:
    """Replay batches of one kind: a producer's transaction, control records, or payloads in another form."""
    machine = load.host.shard.machine
    if is_control:
        for position, header in batches:
            _replay_end(machine, run, position, header)
    elif producer_id is None:
        _replay_records(load, _latest(run, batches), machine.replay)
    else:
        pending = partial(machine.replay_pending, producer_id=producer_id)
        _replay_records(load, _latest(run, batches), pending)


def _replay_end(machine: StateMachine, run: bytes, position: int, header: BatchHeader) -> None:
    """Replay a control batch, if it ends a transaction."""
    end = end_of_transaction(memoryview(run)[position : position + header.size_bytes], header)
    if end is not None:
        machine.replay_end(header.producer_id, end.is_commit)


def _latest(run: bytes, batches: Sequence[tuple[int, BatchHeader]]) -> LastValues:
    """The last value of each key, in the order of the last records."""
    latest: LastValues = {}
    for rows in read_columns(run, batches):
        for key, value in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True):
            latest.pop(key, None)
            latest[key] = value
    return latest
