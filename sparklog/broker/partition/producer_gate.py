"""Which batches of idempotent producers a leader may append now; called within the partition's steps.

The rules are ``ProducerStates`` (sequences, epochs, open transactions) and ``RefusedBatches``: a batch whose
predecessor was refused waits for that to be sent again.
"""

from typing import Final

from sparklog.broker.partition.batches import Batches
from sparklog.core.producers.latest_connections import LATE, Late, LatestConnections
from sparklog.core.producers.producer_state import NO_SEQUENCE, Duplicate, ProducerBatch, RefusedSequence
from sparklog.core.producers.refused_batches import RefusedBatches
from sparklog.core.producers.verification import VerificationGuard
from sparklog.core.replication.leader import Leader
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import ProducerId
from sparklog.model.time import Clock, MonotonicMs
from sparklog.records.envelope import BatchHeader
from sparklog.storage.disk import Buffer
from sparklog.storage.log import Log
from sparklog.storage.segments.snapshots import producer_batch

NOT_VERIFIED: Final = (
    "the producer's coordinator has not confirmed that this partition is part of an ongoing transaction: add "
    "the partition to the transaction first, or send the batch again if its transaction has not ended"
)


BEGINNING_LOST: Final = (
    "an election may have lost the beginning of this transaction: abort it, and send it again in a new one"
)


class ProducerGate:
    """One per replica, kept when its role changes."""

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._refused = RefusedBatches()
        self._connections = LatestConnections()

    def check(
        self,
        records: Buffer,
        batches: Batches,
        origin: AppendOrigin,
        leader: Leader,
        guard: VerificationGuard | None,
        connection: int | None,
    ) -> Duplicate | RefusedSequence | Late | None:
        """What speaks against an append of ``batches`` of ``records``: the log's producer states; or, of a
        client's batch that begins a transaction, that its ``guard`` is missing or void; or, of a batch or a
        marker of a transaction, that it came late over ``connection``. None: nothing does.
        """
        is_late = self._is_late(records, batches, connection)
        objection = self._check_states(records, batches, origin)
        if is_late and not isinstance(objection, Duplicate):
            return LATE
        if objection is not None or origin is not AppendOrigin.CLIENT:
            return objection
        if leader.may_lack_records and self._misses_a_beginning(batches):
            return RefusedSequence(ErrorCode.out_of_order_sequence_number, BEGINNING_LOST)
        unverified = self._unverified(batches)
        if unverified is None or (guard is not None and leader.verifications.holds(guard, *unverified)):
            return None
        return RefusedSequence(ErrorCode.invalid_txn_state, NOT_VERIFIED)

    def _misses_a_beginning(self, batches: Batches) -> bool:
        """Whether a batch goes on with a transaction of which this log has nothing: an election may have lost
        its beginning, and the rest would be committed without it. (Of other batches an unknown producer may
        begin at any sequence, because logs forget producers.)
        """
        return any(
            header.is_transactional
            and not header.is_control
            and self._log.producers.lacks_what_is_before(producer_batch(header))
            for _, header in batches
        )

    def _check_states(
        self, records: Buffer, batches: Batches, origin: AppendOrigin
    ) -> Duplicate | RefusedSequence | None:
        for position, header in batches:
            if not header.has_producer:
                continue
            batch = memoryview(records)[position : position + header.size_bytes]
            verdict = self._log.producers.check(producer_batch(header, batch), origin)
            if isinstance(verdict, Duplicate | RefusedSequence):
                return verdict
        return None

    def check_marker(self, marker: ProducerBatch, connection: int | None) -> RefusedSequence | Late | None:
        """As ``check``, of a coordinator's marker, which is never taken for one that the log has."""
        verdict = self._log.producers.check(marker, AppendOrigin.COORDINATOR)
        if self._is_batch_late(marker, connection):
            return LATE
        return verdict if isinstance(verdict, RefusedSequence) else None

    def _is_late(self, records: Buffer, batches: Batches, connection: int | None) -> bool:
        """Whether one was sent again since, over a newer connection, and may be of an ended transaction."""
        late = False
        for position, header in batches:
            if header.is_transactional:
                batch = memoryview(records)[position : position + header.size_bytes]
                late |= self._is_batch_late(producer_batch(header, batch), connection)
        return late

    def _is_batch_late(self, batch: ProducerBatch, connection: int | None) -> bool:
        """Markers of one coordinator epoch are of one broker."""
        sender = (batch.producer_id, None if batch.end is None else batch.end.coordinator_epoch)
        return self._connections.is_late(sender, batch.producer_epoch, connection)

    def begin_verification(
        self, records: Buffer, batches: Batches, leader: Leader
    ) -> VerificationGuard | None:
        """The guard of an attempt that begins now; None if the batches need none, or will be refused."""
        unverified = self._unverified(batches)
        if unverified is None or self._check_states(records, batches, AppendOrigin.CLIENT) is not None:
            return None
        return leader.verifications.begin(*unverified, self._clock.monotonic_ms())

    def _unverified(self, batches: Batches) -> tuple[ProducerId, int] | None:
        """Producer id and epoch of the first batch that would begin a transaction; None without one."""
        for _, header in batches:
            if header.is_transactional and self._log.producers.awaits_verification(producer_batch(header)):
                return ProducerId(header.producer_id), header.producer_epoch
        return None

    def note_refused(self, batches: Batches) -> None:
        """These were refused for now, and their producer is expected to send them again."""
        for _, header in batches[:1]:
            if _is_numbered(header):
                self._refused.note(producer_batch(header), self._clock.monotonic_ms())

    def must_wait(self, batches: Batches, *, after_refusal: bool) -> bool:
        """Whether an earlier batch of their producer was refused a moment ago, and has not been repeated.

        ``after_refusal``: a batch of an unknown producer was refused on the same connection.
        """
        for _, header in batches[:1] if after_refusal or self._refused.batches else ():
            batch = producer_batch(header)
            if not _is_numbered(header) or not self._log.producers.lacks_what_is_before(batch):
                return False
            if self._refused.is_before(batch, self._clock.monotonic_ms()):
                return True
            if after_refusal:
                self.note_refused(batches)
                return True
        return False

    def note_appended(self, batches: Batches, leader: Leader) -> None:
        """Their producers wait for nothing any more, and a marker, or a first batch, makes guards void."""
        for _, header in batches if self._refused.batches or leader.verifications else ():
            self._refused.forget(header.producer_id)
            if header.is_transactional:
                leader.verifications.end(ProducerId(header.producer_id))

    def forget_what_is_old(self, now_ms: MonotonicMs) -> None:
        self._refused.forget_what_is_old(now_ms)


def _is_numbered(header: BatchHeader) -> bool:
    """Whether sequence numbers count. Some clients that are not idempotent number their batches as well."""
    return header.has_producer and header.base_sequence != NO_SEQUENCE
