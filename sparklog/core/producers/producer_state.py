"""Producer states: what a log remembers of its idempotent producers, so that a retry is written once.

A producer numbers its records per partition. The log keeps, for each producer id, its epoch and its last five
batches; five is how many requests a Kafka client may have in flight. A batch whose first and last sequence
equal one of the five is a retry: it is answered with the offsets of the original and not written again. Any
other batch must continue where the last one ended.

The states are derived from the log: the leader, followers and recovery all ``apply`` appended batches in
order, so that any replica can take over without forgetting a retry. A snapshot saves that replay. It starts
as Kafka's does, with one batch for each producer, so that Kafka's tools can read it. After the part that
Kafka reads it has all five batches, because with one a restart would shrink the window, and the ended
transactions whose markers may still be truncated, because the last stable offset depends on them.

After its start has moved, a log no longer has the earlier batches, but their producers may send them again.
A replica that restarts its log at the leader's log start therefore gets the states ``before`` that offset,
as Kafka's followers of tiered logs get a snapshot (KIP-405; Kafka's other followers get none).

A member of an atomic write (``model.write_ids``) is forgotten with its marker: its producer id never comes
again, and a batch that comes late is refused by its coordinator (``verification``).

A producer is forgotten when it has been silent long enough, but never while its transaction is open. Silence
is measured from the host's clock at the batch's arrival, not from the batch's timestamps, because those may
be years old in copied data.
"""

import struct
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

import crc32c

from sparklog.core.producers.transactions import AbortedTransaction, Ended, Transactions
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import NO_OFFSET, Offset, ProducerId
from sparklog.model.transaction_end import TransactionEnd
from sparklog.model.write_ids import is_of_a_write

BATCHES_KEPT: Final = 5
SEQUENCE_MAX: Final = 2**31 - 1
PRODUCERS_HANDED_ON_MAX: Final = 10_000
NO_SEQUENCE: Final = -1
OFFSET_DELTA_MAX: Final = 2**31 - 1

SNAPSHOT_VERSION: Final = 1
SNAPSHOT_HEADER: Final = struct.Struct(">hIi")
"""Version, CRC-32C of everything after this field, number of producers."""
SNAPSHOT_PRODUCER: Final = struct.Struct(">qhiqiqiq")
"""Producer id, epoch, last sequence, last offset, offset delta, timestamp (ms), coordinator epoch, first
offset of the open transaction: Kafka's entry."""
SNAPSHOT_MARK: Final = b"spk2"
"""Begins sparklog's own part, after Kafka's entries."""
SNAPSHOT_MARK_WITHOUT_ENDED: Final = b"spk1"
"""Begins sparklog's own part in snapshots from before ended transactions were in it."""
SNAPSHOT_COUNT: Final = struct.Struct(">i")
"""Number of ended transactions that follow."""
SNAPSHOT_ENDED: Final = struct.Struct(">qq")
"""First offset and marker's offset of an ended transaction whose marker was not known to be committed."""
SNAPSHOT_HISTORY: Final = struct.Struct(">qb")
"""For each producer, in the same order: last seen (ms), batches that follow."""
SNAPSHOT_BATCH: Final = struct.Struct(">iiqqq")
"""First sequence, last sequence, first offset, last offset, timestamp (ms)."""
_CRC_START: Final = 6

assert SNAPSHOT_HEADER.size == 10
assert SNAPSHOT_PRODUCER.size == 46
assert SNAPSHOT_HISTORY.size == 9
assert SNAPSHOT_BATCH.size == 32


class CorruptSnapshot(SparklogError):  # noqa: N818 (the field's word for the thing itself)
    """Bytes that are not an intact snapshot of producer states; replay the log instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerBatch:
    """One batch as the states need it. A coordinator's batches, such as transaction markers, have no
    sequences: NO_SEQUENCE.
    """

    producer_id: int
    producer_epoch: int
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int
    is_transactional: bool = False
    is_control: bool = False
    has_records: bool = True
    """False for what compaction left of a batch whose records are gone."""
    end: TransactionEnd | None = None
    """The end that a transaction marker says, while it still has its record."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """The batch continues its producer's sequence, or begins one: append it."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The batch is already in the log, at these offsets: answer with them, without an append."""

    base_offset: int
    last_offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class RefusedSequence:
    """The batch may not be appended."""

    code: ErrorCode
    message: str


Verdict = Fresh | Duplicate | RefusedSequence


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

    def reaches_before(self, offset: int) -> bool:
        """Whether it has batches or an open transaction from before ``offset``."""
        sent = self.batches and self.batches[0].last_offset < offset
        return bool(sent) or NO_OFFSET < self.open_since < offset

    def before(self, offset: int) -> "ProducerState":
        """This state reduced to batches and transactions from before ``offset``."""
        batches = [batch for batch in self.batches if batch.last_offset < offset]
        open_since = self.open_since if self.open_since < offset else NO_OFFSET
        return ProducerState(
            self.epoch, deque(batches, BATCHES_KEPT), self.last_seen_ms, open_since, self.coordinator_epoch
        )


def next_sequence(sequence: int) -> int:
    """The sequence after ``sequence``; they wrap to 0 after 2^31 - 1."""
    return 0 if sequence == SEQUENCE_MAX else sequence + 1


def is_later(sequence: int, other: int) -> bool:
    """Whether ``sequence`` is after ``other``. They wrap: the later one is less than half of them ahead."""
    return 0 < (sequence - other) % (SEQUENCE_MAX + 1) <= SEQUENCE_MAX // 2


@dataclass(slots=True)
class ProducerStates:
    """All producers of one log."""

    producers: dict[ProducerId, ProducerState] = field(default_factory=dict)
    transactions: Transactions = field(init=False)

    def __post_init__(self) -> None:
        self.transactions = _open_in(self.producers)

    def check(self, batch: ProducerBatch, origin: AppendOrigin = AppendOrigin.CLIENT) -> Verdict:
        """Whether the leader may append ``batch``. Replicated batches are not checked.

        A coordinator's batch has no sequence to check, and is never taken for a retry.
        """
        state = self.producers.get(ProducerId(batch.producer_id))
        is_numbered = origin is AppendOrigin.CLIENT
        if is_numbered and batch.first_sequence < 0:
            return _refused(batch, state, ErrorCode.invalid_record, "a producer id without a sequence")
        if is_numbered and not batch.is_transactional and is_of_a_write(batch.producer_id):
            return _refused(batch, state, ErrorCode.invalid_txn_state, "it belongs to an atomic write")
        if state is None:
            return Fresh()
        if batch.producer_epoch < state.epoch:
            return _refused(
                batch, state, ErrorCode.invalid_producer_epoch, f"epoch {state.epoch} is in force"
            )
        if batch.end is not None and batch.end.coordinator_epoch < state.coordinator_epoch:
            reason = f"a coordinator of epoch {state.coordinator_epoch} has ended its transactions since"
            return _refused(batch, state, ErrorCode.transaction_coordinator_fenced, reason)
        if is_numbered:
            verdict = _check_sequence(batch, state)
            if not isinstance(verdict, Fresh):
                return verdict
        if state.in_transaction and not batch.is_transactional:
            reason = f"its transaction has been open since offset {state.open_since}"
            return _refused(batch, state, ErrorCode.invalid_txn_state, reason)
        return Fresh()

    def awaits_verification(self, batch: ProducerBatch) -> bool:
        """Whether ``batch`` would begin a transaction here, so that its coordinator must know of it first."""
        if not batch.is_transactional or batch.is_control:
            return False
        state = self.producers.get(ProducerId(batch.producer_id))
        return state is None or not state.in_transaction or state.epoch != batch.producer_epoch

    def lacks_what_is_before(self, batch: ProducerBatch) -> bool:
        """Whether sequences before ``batch`` are missing; for an unknown producer or epoch, whether it does
        not start at sequence 0.
        """
        state = self.producers.get(ProducerId(batch.producer_id))
        if state is None or batch.producer_epoch > state.epoch:
            return batch.first_sequence > 0
        return batch.producer_epoch == state.epoch and is_later(
            batch.first_sequence, next_sequence(state.last_sequence)
        )

    def apply(self, batch: ProducerBatch, now_ms: int) -> AbortedTransaction | None:
        """Remember an appended batch; the transaction that it aborts, if it is an abort marker of one.

        The log is the source of truth, so no batch is refused. A batch without records begins no transaction:
        compaction removes only what belongs to decided ones.
        """
        producer_id = ProducerId(batch.producer_id)
        state = self.producers.get(producer_id)
        if state is None:
            state = self.producers[producer_id] = ProducerState(batch.producer_epoch)
        elif state.epoch != batch.producer_epoch:
            state.epoch = batch.producer_epoch
            state.batches.clear()
        state.last_seen_ms = max(state.last_seen_ms, now_ms)
        if batch.is_control:
            return self._end(producer_id, state, batch)
        if batch.first_sequence != NO_SEQUENCE:
            state.batches.append(
                RememberedBatch(
                    batch.first_sequence,
                    batch.last_sequence,
                    batch.first_offset,
                    batch.last_offset,
                    batch.timestamp_ms,
                )
            )
        if batch.is_transactional and batch.has_records and not state.in_transaction:
            state.open_since = Offset(batch.first_offset)
            self.transactions.begin(producer_id, state.open_since)
        return None

    def _end(
        self, producer_id: ProducerId, state: ProducerState, batch: ProducerBatch
    ) -> AbortedTransaction | None:
        if batch.end is None:
            return None
        state.open_since = NO_OFFSET
        state.coordinator_epoch = batch.end.coordinator_epoch
        ended = self.transactions.end(producer_id, batch.first_offset)
        if is_of_a_write(producer_id):
            del self.producers[producer_id]
        return None if batch.end.is_commit else ended

    def expire(self, now_ms: int, max_age_ms: int) -> list[ProducerId]:
        """Forget producers that were silent for ``max_age_ms``; returns them."""
        expired = [
            producer_id
            for producer_id, state in self.producers.items()
            if now_ms - state.last_seen_ms >= max_age_ms and not state.in_transaction
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return expired

    def before(self, offset: int) -> "ProducerStates":
        """The states that a log from ``offset`` on lacks: batches that ended before it, and transactions that
        were open at it.

        Limited to the PRODUCERS_HANDED_ON_MAX producers seen last, a few megabytes.
        """
        earlier = [one for one in self.producers.items() if one[1].reaches_before(offset)]
        if len(earlier) > PRODUCERS_HANDED_ON_MAX:
            earlier = nlargest(PRODUCERS_HANDED_ON_MAX, earlier, key=lambda one: one[1].last_seen_ms)
        return ProducerStates({producer_id: state.before(offset) for producer_id, state in earlier})

    def snapshot(self) -> bytes:
        """The states as bytes; ``restore`` reads them back."""
        body = bytearray(struct.pack(">i", len(self.producers)))
        for producer_id, state in self.producers.items():
            body += _kafka_entry(producer_id, state)
        body += SNAPSHOT_MARK
        ended = self.transactions.ended()
        body += SNAPSHOT_COUNT.pack(len(ended))
        for one in ended:
            body += SNAPSHOT_ENDED.pack(*one)
        for state in self.producers.values():
            body += SNAPSHOT_HISTORY.pack(state.last_seen_ms, len(state.batches))
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
        """The states in a snapshot of sparklog or Kafka; CorruptSnapshot if it is damaged or its version is
        unknown. A producer in Kafka's snapshot has one batch, and was last seen at that batch's timestamp.
        """
        count = _checked_count(data)
        end = SNAPSHOT_HEADER.size + count * SNAPSHOT_PRODUCER.size
        states = cls()
        for entry in SNAPSHOT_PRODUCER.iter_unpack(data[SNAPSHOT_HEADER.size : end]):
            states.producers[ProducerId(entry[0])] = _from_kafka_entry(entry)
        if len(states.producers) != count:
            raise CorruptSnapshot(f"producer snapshot names {count - len(states.producers)} producers twice")
        ended: list[Ended] = []
        if end < len(data):
            ended, end = _restore_ended(data, end)
            _restore_history(states.producers, data, end)
        states.transactions = _open_in(states.producers, ended)
        return states

    def check_invariants(self) -> None:
        for producer_id, state in self.producers.items():
            assert len(state.batches) <= BATCHES_KEPT, (producer_id, state)
            offsets = [
                offset for batch in state.batches for offset in (batch.first_offset, batch.last_offset)
            ]
            assert offsets == sorted(offsets), (producer_id, state)
        self.transactions.check_invariants()
        first_open = min((state.open_since for state in self.producers.values() if state.in_transaction),
                         default=None)  # fmt: skip
        assert self.transactions.first_open() == first_open, (self.transactions, first_open)


def _open_in(producers: Mapping[ProducerId, ProducerState], ended: Iterable[Ended] = ()) -> Transactions:
    open_since = ((one, state.open_since) for one, state in producers.items() if state.in_transaction)
    return Transactions.of(open_since, ended)


def handed_on(states: ProducerStates | None) -> bytes:
    """The states as bytes for a replica that restarts its log; empty without states."""
    return states.snapshot() if states is not None and states.producers else b""


def taken_over(data: bytes | memoryview) -> ProducerStates | None:
    """The states that ``handed_on`` encoded; CorruptSnapshot if they are damaged."""
    return ProducerStates.restore(bytes(data)) if data else None


def _check_sequence(batch: ProducerBatch, state: ProducerState) -> Verdict:
    """Whether a batch, not of an earlier epoch, is a retry or continues its producer's sequence."""
    is_of_this_epoch = batch.producer_epoch == state.epoch
    for known in state.batches if is_of_this_epoch else ():
        if (known.first_sequence, known.last_sequence) == (batch.first_sequence, batch.last_sequence):
            return Duplicate(known.first_offset, known.last_offset, known.timestamp_ms)
    expected = next_sequence(state.last_sequence) if is_of_this_epoch else 0
    if batch.first_sequence != expected:
        return _refused(batch, state, ErrorCode.out_of_order_sequence_number, f"expected {expected}")
    return Fresh()


def _refused(
    batch: ProducerBatch, state: ProducerState | None, code: ErrorCode, reason: str
) -> RefusedSequence:
    last = state.last_sequence if state else NO_SEQUENCE
    return RefusedSequence(
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


def has_history(data: bytes) -> bool:
    """Whether an intact snapshot has sparklog's own part after Kafka's entries."""
    return len(data) > SNAPSHOT_HEADER.size + _checked_count(data) * SNAPSHOT_PRODUCER.size


def _kafka_entry(producer_id: int, state: ProducerState) -> bytes:
    last = state.batches[-1] if state.batches else None
    return SNAPSHOT_PRODUCER.pack(
        producer_id,
        state.epoch,
        state.last_sequence,
        last.last_offset if last else NO_OFFSET,
        last.last_offset - last.first_offset if last else 0,
        last.timestamp_ms if last else -1,
        state.coordinator_epoch,
        state.open_since,
    )


def _from_kafka_entry(entry: tuple[int, ...]) -> ProducerState:
    _, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, open_since = entry
    state = ProducerState(epoch, _recent(), timestamp_ms, Offset(open_since), coordinator_epoch)
    if offset >= 0:
        first_sequence = sequence - delta if sequence >= delta else sequence - delta + SEQUENCE_MAX + 1
        state.batches.append(RememberedBatch(first_sequence, sequence, offset - delta, offset, timestamp_ms))
    return state


def _restore_ended(data: bytes, position: int) -> tuple[list[Ended], int]:
    """Read the beginning of sparklog's own part: the ended transactions, and where the rest begins."""
    mark = data[position : position + len(SNAPSHOT_MARK)]
    position += len(SNAPSHOT_MARK)
    if mark == SNAPSHOT_MARK_WITHOUT_ENDED:
        return [], position
    if mark != SNAPSHOT_MARK or len(data) - position < SNAPSHOT_COUNT.size:
        raise CorruptSnapshot(f"producer snapshot has something unknown at {position}, after its producers")
    (count,) = SNAPSHOT_COUNT.unpack_from(data, position)
    position += SNAPSHOT_COUNT.size
    end = position + count * SNAPSHOT_ENDED.size
    if not count >= 0 or end > len(data):
        raise CorruptSnapshot(
            f"producer snapshot of {len(data)} bytes cannot hold {count} ended transactions"
        )
    ended = [Ended(*one) for one in SNAPSHOT_ENDED.iter_unpack(data[position:end])]
    for one in ended:
        if not 0 <= one.first_offset < one.marker_offset:
            raise CorruptSnapshot(f"producer snapshot has an ended transaction of no sense: {one}")
    return ended, end


def _restore_history(producers: dict[ProducerId, ProducerState], data: bytes, position: int) -> None:
    """Read the rest of sparklog's own part: all batches of each producer instead of the last one."""
    for producer_id, state in producers.items():
        try:
            state.last_seen_ms, count = SNAPSHOT_HISTORY.unpack_from(data, position)
            position += SNAPSHOT_HISTORY.size
            if not 0 <= count <= BATCHES_KEPT:
                raise CorruptSnapshot(f"producer {producer_id} has {count} batches in its snapshot")
            state.batches = _recent()
            for _ in range(count):
                batch = RememberedBatch(*SNAPSHOT_BATCH.unpack_from(data, position))
                if not 0 <= batch.last_offset - batch.first_offset <= OFFSET_DELTA_MAX:
                    raise CorruptSnapshot(f"producer {producer_id} has a batch of no sense: {batch}")
                state.batches.append(batch)
                position += SNAPSHOT_BATCH.size
        except struct.error:
            raise CorruptSnapshot(f"producer snapshot ends inside producer {producer_id}") from None
    if position != len(data):
        raise CorruptSnapshot(f"producer snapshot has {len(data) - position} bytes after its last producer")
