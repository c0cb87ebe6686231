"""Producer states: what a log remembers of its idempotent producers, so that a retry is written once.

A producer numbers its records per partition. The log keeps, for each producer id, its epoch and its last five
batches; five is how many requests a Kafka client may have in flight. A batch whose first and last sequence
equal one of the five is a retry: it is answered with the offsets of the original and not written again. Any
other batch must continue where the last one ended.

The states are derived from the log: the leader, followers and recovery all ``apply`` what was appended, in
order, so that any replica can take over without forgetting a retry. A snapshot is a shortcut for that replay
and keeps all five batches (Kafka's keeps one, so that a restart there shrinks the window).

A producer that has been silent for long enough is forgotten, but never while its transaction is open. Silence
is measured by this machine's clock when the batch came in, not by the batch's own timestamps: those may be
years old in data that is being copied.
"""

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Final

import crc32c

from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import NO_OFFSET, Offset, ProducerId

BATCHES_KEPT: Final = 5
SEQUENCE_MAX: Final = 2**31 - 1
NO_SEQUENCE: Final = -1

SNAPSHOT_VERSION: Final = 1
SNAPSHOT_HEADER: Final = struct.Struct(">hIi")
"""Version, CRC-32C of everything after this field, number of producers."""
SNAPSHOT_PRODUCER: Final = struct.Struct(">qhiqqb")
"""Producer id, epoch, coordinator epoch, last seen (ms), first offset of the open transaction, batches."""
SNAPSHOT_BATCH: Final = struct.Struct(">iiqqq")
"""First sequence, last sequence, first offset, last offset, timestamp (ms)."""
_CRC_START: Final = 6

assert SNAPSHOT_HEADER.size == 10
assert SNAPSHOT_PRODUCER.size == 31
assert SNAPSHOT_BATCH.size == 32


class CorruptSnapshot(SparklogError):  # noqa: N818 (the field's word for the thing itself)
    """Bytes that are not an intact snapshot of producer states; replay the log instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerBatch:
    """What the states need to know of one batch. A control batch (a transaction marker) has no sequences."""

    producer_id: int
    producer_epoch: int
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int
    is_transactional: bool = False
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class Fresh:
    """The batch continues its producer's sequence, or begins one: append it."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The batch is already in the log, here: answer with this and do not append."""

    base_offset: int
    last_offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The batch may not be appended."""

    code: ErrorCode
    message: str


Verdict = Fresh | Duplicate | Refused


@dataclass(frozen=True, slots=True)
class RememberedBatch:
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


def _recent() -> deque[RememberedBatch]:
    return deque(maxlen=BATCHES_KEPT)


@dataclass(slots=True)
class ProducerState:
    """One producer id as this log knows it."""

    epoch: int
    batches: deque[RememberedBatch] = field(default_factory=_recent)
    last_seen_ms: int = 0
    open_since: Offset = NO_OFFSET
    """First offset of the open transaction, or NO_OFFSET."""
    coordinator_epoch: int = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def in_transaction(self) -> bool:
        return self.open_since != NO_OFFSET


def next_sequence(sequence: int) -> int:
    """The sequence after ``sequence``; they wrap to 0 after 2^31 - 1."""
    return 0 if sequence == SEQUENCE_MAX else sequence + 1


@dataclass(slots=True)
class ProducerStates:
    """All producers of one log."""

    producers: dict[ProducerId, ProducerState] = field(default_factory=dict)

    def check(self, batch: ProducerBatch) -> Verdict:
        """Whether the leader may append a client's ``batch``. Replicated batches are not checked."""
        state = self.producers.get(ProducerId(batch.producer_id))
        if batch.first_sequence < 0:
            return _refused(batch, state, ErrorCode.invalid_record, "a producer id without a sequence")
        if state is None:
            return Fresh()
        if batch.producer_epoch < state.epoch:
            return _refused(
                batch, state, ErrorCode.invalid_producer_epoch, f"epoch {state.epoch} is in force"
            )
        if batch.producer_epoch == state.epoch:
            for known in state.batches:
                if (known.first_sequence, known.last_sequence) == (batch.first_sequence, batch.last_sequence):
                    return Duplicate(known.first_offset, known.last_offset, known.timestamp_ms)
        expected = next_sequence(state.last_sequence) if batch.producer_epoch == state.epoch else 0
        if batch.first_sequence != expected:
            return _refused(batch, state, ErrorCode.out_of_order_sequence_number, f"expected {expected}")
        if state.in_transaction and not batch.is_transactional:
            reason = f"its transaction has been open since offset {state.open_since}"
            return _refused(batch, state, ErrorCode.invalid_txn_state, reason)
        return Fresh()

    def apply(self, batch: ProducerBatch, now_ms: int) -> None:
        """Remember a batch that was appended. The log is the truth here, so nothing is refused."""
        producer_id = ProducerId(batch.producer_id)
        state = self.producers.get(producer_id)
        if state is None:
            state = self.producers[producer_id] = ProducerState(batch.producer_epoch)
        elif state.epoch != batch.producer_epoch:
            state.epoch = batch.producer_epoch
            state.batches.clear()
        state.last_seen_ms = max(state.last_seen_ms, now_ms)
        if batch.is_control:
            state.open_since = NO_OFFSET
            return
        state.batches.append(
            RememberedBatch(
                batch.first_sequence,
                batch.last_sequence,
                batch.first_offset,
                batch.last_offset,
                batch.timestamp_ms,
            )
        )
        if batch.is_transactional and not state.in_transaction:
            state.open_since = Offset(batch.first_offset)

    def first_open_offset(self) -> Offset | None:
        """First offset of the oldest open transaction: readers of committed records stop before it."""
        return min(
            (state.open_since for state in self.producers.values() if state.in_transaction), default=None
        )

    def expire(self, now_ms: int, max_age_ms: int) -> list[ProducerId]:
        """Forget producers that were silent for ``max_age_ms``; whom that hit."""
        expired = [
            producer_id
            for producer_id, state in self.producers.items()
            if now_ms - state.last_seen_ms >= max_age_ms and not state.in_transaction
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return expired

    def clear(self) -> None:
        self.producers.clear()

    def snapshot(self) -> bytes:
        """The states as bytes; ``restore`` reads them back."""
        body = bytearray(struct.pack(">i", len(self.producers)))
        for producer_id, state in self.producers.items():
            body += SNAPSHOT_PRODUCER.pack(
                producer_id,
                state.epoch,
                state.coordinator_epoch,
                state.last_seen_ms,
                state.open_since,
                len(state.batches),
            )
            for batch in state.batches:
                body += SNAPSHOT_BATCH.pack(
                    batch.first_sequence,
                    batch.last_sequence,
                    batch.first_offset,
                    batch.last_offset,
                    batch.timestamp_ms,
                )
        return struct.pack(">hI", SNAPSHOT_VERSION, crc32c.crc32c(body)) + bytes(body)

    @classmethod
    def restore(cls, data: bytes) -> "ProducerStates":
        """The states in a snapshot; CorruptSnapshot when it is damaged or of a version we do not know."""
        count = _checked_count(data)
        states = cls()
        position = SNAPSHOT_HEADER.size
        for _ in range(count):
            try:
                position = states._restore_producer(data, position)
            except struct.error:
                raise CorruptSnapshot(
                    f"producer snapshot ends inside producer {len(states.producers)}"
                ) from None
        if position != len(data):
            raise CorruptSnapshot(
                f"producer snapshot has {len(data) - position} bytes after its last producer"
            )
        return states

    def _restore_producer(self, data: bytes, position: int) -> int:
        producer_id, epoch, coordinator_epoch, seen_ms, open_since, count = SNAPSHOT_PRODUCER.unpack_from(
            data, position
        )
        position += SNAPSHOT_PRODUCER.size
        if not 0 <= count <= BATCHES_KEPT:
            raise CorruptSnapshot(f"producer {producer_id} has {count} batches in its snapshot")
        state = ProducerState(epoch, _recent(), seen_ms, Offset(open_since), coordinator_epoch)
        for _ in range(count):
            state.batches.append(RememberedBatch(*SNAPSHOT_BATCH.unpack_from(data, position)))
            position += SNAPSHOT_BATCH.size
        self.producers[ProducerId(producer_id)] = state
        return position

    def check_invariants(self) -> None:
        for producer_id, state in self.producers.items():
            assert len(state.batches) <= BATCHES_KEPT, (producer_id, state)
            offsets = [
                offset for batch in state.batches for offset in (batch.first_offset, batch.last_offset)
            ]
            assert offsets == sorted(offsets), (producer_id, state)


def _refused(batch: ProducerBatch, state: ProducerState | None, code: ErrorCode, reason: str) -> Refused:
    last = state.last_sequence if state else NO_SEQUENCE
    return Refused(
        code,
        f"producer {batch.producer_id} epoch {batch.producer_epoch} sends sequence {batch.first_sequence} "
        f"after {last}: {reason}",
    )


def _checked_count(data: bytes) -> int:
    if len(data) < SNAPSHOT_HEADER.size:
        raise CorruptSnapshot(f"producer snapshot of {len(data)} bytes is shorter than its header")
    version, crc, count = SNAPSHOT_HEADER.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"producer snapshot has version {version}, known is {SNAPSHOT_VERSION}")
    actual = crc32c.crc32c(memoryview(data)[_CRC_START:])
    if crc != actual:
        raise CorruptSnapshot(f"producer snapshot has CRC {actual:#010x}, its header says {crc:#010x}")
    if not 0 <= count <= (len(data) - SNAPSHOT_HEADER.size) // SNAPSHOT_PRODUCER.size:
        raise CorruptSnapshot(f"producer snapshot of {len(data)} bytes cannot hold {count} producers")
    return int(count)
