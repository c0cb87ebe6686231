"""What a leader appends: batches of clients and coordinators, and markers.

Markers of several transactions are appended together, in one write, because an atomic write has one for each
of its members in every partition. Each is judged alone: one that is refused keeps no other out.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.partition.append_results import (
    Appended,
    AppendResult,
    AwaitsReplicas,
    HeldUp,
    Refused,
    objected,
)
from sparklog.broker.partition.batches import Batches, stamp_all
from sparklog.broker.partition.log_guard import LogGuard
from sparklog.broker.partition.producer_gate import ProducerGate
from sparklog.broker.partition.topic_traffic import TopicCounts
from sparklog.core.producers.latest_connections import Late
from sparklog.core.producers.producer_state import Duplicate, ProducerBatch, RefusedSequence
from sparklog.core.producers.verification import VerificationGuard
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.replica import Replica
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.model.time import Clock
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import BatchHeader, parse_header
from sparklog.storage.log import Log
from sparklog.storage.segments.snapshots import producer_batch

AWAITS_HISTORY: Final = (
    "the leader's log is being compared with its history in the remote store, because an election may have "
    "lost records; `sparklog topics describe` says what that waits for"
)


NOTHING_APPENDED: Final = Appended(-1, -1, -1)


class Marker(NamedTuple):
    """A transaction marker, as it is appended in each partition of its transaction."""

    records: bytes
    header: BatchHeader
    batch: ProducerBatch

    @classmethod
    def build(cls, end: TransactionEnd, *, producer_id: int, producer_epoch: int, now_ms: int) -> Self:
        records = build_marker(end, producer_id=producer_id, producer_epoch=producer_epoch, now_ms=now_ms)
        header = parse_header(records)
        return cls(bytes(records), header, producer_batch(header, records))


class AppendedMarkers(NamedTuple):
    """What became of markers that were to be appended together."""

    together: AppendResult
    """The one result of all that were appended; an error holds for each."""
    objections: tuple[RefusedSequence | Late | None, ...] = ()
    """One per marker: why it was refused, or None if it was appended. Empty if the append failed before any
    was checked."""

    def each(self, together: AppendResult, count: int) -> list[AppendResult]:
        """The result of each of ``count`` markers, once ``together`` is decided."""
        results: list[AppendResult] = []
        offset = together.base_offset if isinstance(together, Appended) else -1
        for objection in self.objections or (None,) * count:
            if objection is not None:
                results.append(objected(objection))
            elif not isinstance(together, Appended):
                results.append(together)
            else:
                results.append(together._replace(base_offset=offset))
                offset += 1
        return results


class LeaderAppend:
    """One per replica, kept when its role changes. ``append`` has the rules."""

    def __init__(
        self,
        log: Log,
        replica: Replica,
        log_guard: LogGuard,
        gate: ProducerGate,
        clock: Clock,
        why_no_room: Callable[[int], str],
        counts: TopicCounts,
    ) -> None:
        self._log = log
        self._replica = replica
        self._log_guard = log_guard
        self._gate = gate
        self._clock = clock
        self._why_no_room = why_no_room
        self._counts = counts

    def append(self, request: AppendRequest, token: int) -> AppendResult:
        """Give the batches offsets and append them; with acks=all wait under ``token``.

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
        with self._log_guard.step:
            return self._append(request, token)

    def _append(self, request: AppendRequest, token: int) -> AppendResult:
        batches = request.batches
        leader = self._leader_in(request.leader_epoch)
        if isinstance(leader, Refused):
            if leader.error in (ErrorCode.not_leader_or_follower, ErrorCode.not_enough_replicas):
                self._gate.note_refused(batches)
            return leader
        objection = self._gate.check(
            request.records, batches, request.origin, leader, request.guard, request.connection
        )
        if isinstance(objection, Duplicate):
            return self._appended(
                leader, request.acks, token, objection.base_offset, objection.last_offset + 1,
                objection.timestamp_ms if batches[0][1].is_log_append_time else -1,
                outlasts=request.leader_epoch is None,
            )  # fmt: skip
        refusal = self._refusal(leader, request)
        if refusal is not None:
            if refusal.error is ErrorCode.not_enough_replicas:
                self._gate.note_refused(batches)
            return refusal
        if self._gate.must_wait(batches, after_refusal=request.after_refusal):
            return HeldUp()
        if objection is not None:
            return objected(objection)
        return self._append_new(leader, request, token, outlasts=request.leader_epoch is None)

    def append_markers(
        self, markers: Sequence[Marker], token: int, *, connection: int | None
    ) -> AppendedMarkers:
        """Append a coordinator's markers, of which no two are of one producer, in one write; wait under
        ``token`` until all replicas in sync have them.

        Each is judged as ``append`` would: one that is refused keeps no other out.
        """
        with self._log_guard.step:
            return self._append_markers(markers, token, connection)

    def begin_verification(
        self, records: bytearray | memoryview, batches: Batches
    ) -> VerificationGuard | None:
        """The guard under which to ask the coordinator of transactional ``batches``; None: do not ask."""
        with self._log_guard.step:
            leader = self._replica.leader
            if leader is None or self._log_guard.is_offline:
                return None
            return self._gate.begin_verification(records, batches, leader)

    def note_refused(self, batches: Batches) -> None:
        """``batches`` were refused before their append, and are expected again."""
        with self._log_guard.step:
            self._gate.note_refused(batches)

    def forget(self, token: int) -> None:
        """The wait under ``token`` has ended."""
        with self._log_guard.lock:
            if (leader := self._replica.leader) is not None:
                leader.produces.forget(token)

    def _append_markers(
        self, markers: Sequence[Marker], token: int, connection: int | None
    ) -> AppendedMarkers:
        leader = self._leader_in(None)
        if isinstance(leader, Refused):
            return AppendedMarkers(leader)
        objections = tuple([self._gate.check_marker(marker.batch, connection) for marker in markers])
        error = leader.refuse_append(ACKS_ALL)
        if error is not ErrorCode.none:
            return AppendedMarkers(Refused(error, leader.why_refused(error)))
        records, batches = bytearray(), list[tuple[int, BatchHeader]]()
        for marker, objection in zip(markers, objections, strict=True):
            if objection is None:
                batches.append((len(records), marker.header))
                records += marker.records
        if not batches:
            return AppendedMarkers(NOTHING_APPENDED, objections)
        return AppendedMarkers(
            self._append_new(leader, AppendRequest(records, batches, ACKS_ALL), token, outlasts=False),
            objections,
        )

    def _refusal(self, leader: Leader, request: AppendRequest) -> Refused | None:
        """Why nothing is appended now, whoever sent it; and no client's batch, if the disk has little room.

        NOT_ENOUGH_REPLICAS says of a batch that it is not in the log, and clients send it again until their
        own time-out. KAFKA_STORAGE_ERROR would leave it open (librdkafka takes such a batch for one that may
        be in the log, and changes its producer epoch when it gives up), and would let clients look for
        another leader.
        """
        error = leader.refuse_append(request.acks)
        if error is not ErrorCode.none:
            return Refused(error, leader.why_refused(error))
        is_clients = request.origin is AppendOrigin.CLIENT
        why = self._why_no_room(len(request.records)) if is_clients else ""
        return Refused(ErrorCode.not_enough_replicas, why) if why else None

    def _leader_in(self, leader_epoch: int | None) -> Leader | Refused:
        """The machine that may append, by the first four rules."""
        leader = self._replica.leader
        if self._log_guard.is_offline:
            return Refused(ErrorCode.kafka_storage_error)
        if leader is None or leader_epoch not in (None, leader.leader_epoch):
            return Refused(ErrorCode.not_leader_or_follower)
        if self._log.corruption is not None and self._log.corruption.ends_log:
            reason = f"the log of this only replica is damaged: {self._log.corruption.reason}"
            return Refused(ErrorCode.kafka_storage_error, reason)
        if leader.awaits_history:
            # Says that the batch is not in the log, and clients send it again until their own time-out.
            return Refused(ErrorCode.not_enough_replicas, AWAITS_HISTORY)
        return leader

    def _append_new(
        self, leader: Leader, request: AppendRequest, token: int, *, outlasts: bool
    ) -> AppendResult:
        batches = request.batches
        base_offset = self._replica.marks.log_end_offset
        stamped = stamp_all(request.records, batches, base_offset, leader.leader_epoch)
        if not self._log_guard.append(request.records, stamped):
            return Refused(ErrorCode.kafka_storage_error)
        self._gate.note_appended(batches, leader)
        self._log_guard.apply(leader.on_appended(self._clock.monotonic_ms()))
        last = batches[-1][1]
        append_time_ms = last.max_timestamp_ms if last.is_log_append_time else -1
        end_offset = self._replica.marks.log_end_offset
        self._counts.count_produced(len(request.records), end_offset - base_offset)
        return self._appended(
            leader, request.acks, token, base_offset, end_offset, append_time_ms, outlasts=outlasts
        )

    def _appended(
        self, leader: Leader, acks: int, token: int, base_offset: int, end_offset: int, append_time_ms: int,
        *, outlasts: bool,
    ) -> AppendResult:  # fmt: skip
        """The result for batches that the log has from ``base_offset`` up to ``end_offset`` (exclusive).

        ``outlasts``: a wait for the other replicas goes on in the next epoch in which this replica leads. A
        coordinator names its epoch, and does not live longer.
        """
        appended = Appended(base_offset, self._replica.marks.log_start_offset, end_offset, append_time_ms)
        if acks != ACKS_ALL:
            return appended
        self._log_guard.apply(leader.on_produce_waits(token, end_offset, outlasts=outlasts))
        return AwaitsReplicas(appended)
