"""Read exactly the records of a range of offsets, or raise an error that says why not.

The reader copes with changes of leader, nearby replicas that lag or are unknown, lost connections, batches
that overlap the range, and offsets without a record (transaction markers, compaction). It reports records of
the range that were deleted (``OffsetOutOfRange``, with the offsets that are left), a topic that was deleted
and created again (``TopicRecreated``), and a range that does not become readable in time
(``RangeNotReadable``).

The next fetch is sent before the caller gets the records of the last fetch.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.calls.connections import BrokerConnection, PendingReply
from sparklog.client.calls.retry import Backoff, Deadline
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import OffsetOutOfRange, RangeNotReadable, TopicRecreated, unreadable
from sparklog.client.fetched import Fetched, FetchTerms, answers_of, fetch_request, fetched_of
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.offsets import log_ends
from sparklog.client.transactions.cut import PartitionCut
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition
from sparklog.records.payload_kinds import ALL_PAYLOADS, SUPPORTED_PAYLOADS
from sparklog.records.typed_decoding import TypedReading
from sparklog.wire.messages.data.fetch import FetchPartitionData

OnGap = Callable[[int, int], None]
"""Called with the first offset of a gap and the first offset after it: [first, next) has no records."""

FETCH_BYTES: Final = 8 * 1024 * 1024
MAX_WAIT_MS: Final = 500
AT_LEADER_MS: Final = 10_000
"""How long to read from the leader after a nearby replica could not serve the fetch."""


def read_range(
    cluster: ClusterClient,
    topic_partition: TopicPartition,
    start_offset: int,
    end_offset: int,
    *,
    max_bytes: int = FETCH_BYTES,
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    topic_id: uuid.UUID | None = None,
    cut: PartitionCut | None = None,
    on_gap: OnGap | None = None,
    timeout_ms: int = 120_000,
    typed: TypedReading | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of a partition with offsets in ``[start_offset, end_offset)``, in order, in ROW_SCHEMA, or
    those of a typed topic as ``typed.schema``.

    With a ``cut`` they are those that it shows, whatever the isolation level.

    ``topic_id`` is the topic that the offsets were chosen for, if that is known. ``timeout_ms`` bounds how
    long the reader waits without progress. Close the iterator if you leave it early.
    """
    reader = _RangeReader(
        cluster, topic_partition, start_offset, end_offset, max_bytes, isolation_level, topic_id, cut, typed
    )
    try:
        while reader.position < end_offset:
            fetched = reader.fetch(timeout_ms)
            if on_gap is not None:
                for first_missing, next_found in fetched.gaps(end_offset):
                    on_gap(first_missing, next_found)
            yield from fetched.rows(end_offset)
    finally:
        reader.close()


class _RangeReader:
    """One partition's fetches: at most one is in flight, on a connection of its own."""

    def __init__(
        self,
        cluster: ClusterClient,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int,
        max_bytes: int,
        isolation_level: IsolationLevel,
        topic_id: uuid.UUID | None,
        cut: PartitionCut | None,
        typed: TypedReading | None,
    ) -> None:
        self.position = start_offset
        self._cluster = cluster
        self._topic_partition = topic_partition
        self._end_offset = end_offset
        self._cut = cut
        self._typed = typed
        self._isolation_level = isolation_level if cut is None else IsolationLevel.READ_UNCOMMITTED
        self._terms = FetchTerms(
            MAX_WAIT_MS,
            max_bytes,
            max_bytes,
            self._isolation_level,
            with_aborted=cut is not None,
            payload_kinds=SUPPORTED_PAYLOADS if typed is None else ALL_PAYLOADS,
            columns=None if typed is None else typed.named_ids,
            condition=b"" if typed is None else typed.packed_condition,
        )
        self._rack_terms = replace(self._terms, rack_id=cluster.client_rack)
        self._closest: BrokerId | None = None
        self._at_leader_until: Deadline | None = None
        self._named_rack = False
        """Whether the last fetch asked for a replica in our rack."""
        self._topic_id = topic_id
        self._seen = cluster.latest_metadata
        self._leader: KnownLeader | None = None
        self._endpoint: Endpoint | None = None
        self._connection: BrokerConnection | None = None
        self._reply: PendingReply | None = None

    def fetch(self, timeout_ms: int) -> Fetched:
        """The next batches, if any are wanted of a stretch of the log; moves the position past them and sends
        the next fetch before it returns.
        """
        deadline = self._cluster.deadline(timeout_ms)
        backoff = self._cluster.backoff(deadline)
        while True:
            answer = self._answer(deadline, backoff)
            fetched = fetched_of(self._topic_partition, self.position, answer, self._cut, self._typed)
            if fetched.batches or fetched.next_offset > self.position:
                self.position = fetched.next_offset
                if self.position < self._end_offset:
                    self._ask_ahead()
                return fetched
            self._leave_closest()  # it lags, or no replica has more yet
            if deadline.is_over:
                raise self._not_readable(answer, deadline)

    def close(self) -> None:
        """Give the connection back."""
        self._part()

    def _part(self) -> None:
        """Give the connection back, unless a reply is outstanding."""
        if self._connection is not None and self._endpoint is not None and self._reply is None:
            self._cluster.give_back(self._endpoint, self._connection)
            self._connection = None
        self._hang_up()

    def _answer(self, deadline: Deadline, backoff: Backoff) -> FetchPartitionData:
        """An answer without an error; retries until the deadline."""
        while True:
            code = self._ensure_asked(deadline)
            if code is ErrorCode.none:
                answer = self._take_answer()
                code = answer.error_code
                if code is ErrorCode.none and self._is_redirection(answer):
                    self._go_to(BrokerId(answer.preferred_read_replica), deadline)
                    continue
                if code is ErrorCode.none and self._lags_cut(answer):
                    self._leave_closest()
                    continue
                if code is ErrorCode.none:
                    return self._with_aborted(answer)
            self._hang_up()
            if self._leave_closest():
                continue
            if code is ErrorCode.offset_out_of_range:
                start, end = log_ends(self._cluster, self._topic_partition, self._isolation_level)
                raise OffsetOutOfRange(self._topic_partition, self.position, start, end)
            if not code.retriable:
                raise unreadable(self._topic_partition, code, self._cluster.bootstrap_servers)
            obstacles = {self._topic_partition: code}
            backoff.pause(lambda: self._cluster.gave_up(obstacles, deadline))  # noqa: B023 (called at once)
            self._seen = self._cluster.refresh([self._topic_partition.topic], self._seen, deadline)

    def _lags_cut(self, answer: FetchPartitionData) -> bool:
        """Whether a nearby replica may not know yet which of the transactions below the cut were aborted."""
        is_near = self._cut is not None and self._closest is not None
        return is_near and self._cut is not None and answer.high_watermark < self._cut.high_watermark

    def _with_aborted(self, answer: FetchPartitionData) -> FetchPartitionData:
        if self._cut is not None and answer.records and answer.aborted_transactions is None:
            raise KafkaError(
                ErrorCode.unsupported_version,
                f"a broker with {self._topic_partition} does not say which transactions were aborted: its "
                "release is older than that of others; read again when all brokers have the same",
            )
        return answer

    def _is_redirection(self, answer: FetchPartitionData) -> bool:
        """Whether the leader names a replica near us (KIP-392).

        Only the answer to a fetch that named our rack counts, and only the leader's: each redirection is
        followed by one fetch from that replica or by ``AT_LEADER_MS`` at the leader, so none repeats at once.
        """
        asked_for_it = self._closest is None and self._named_rack
        return asked_for_it and answer.preferred_read_replica >= 0 and not answer.records

    def _go_to(self, closest: BrokerId, deadline: Deadline) -> None:
        """Fetch from ``closest`` next, or from the leader if newer metadata lacks that broker as well."""
        self._part()
        self._closest = closest
        if closest not in self._seen.brokers:
            self._seen = self._cluster.refresh([self._topic_partition.topic], self._seen, deadline)
        if closest not in self._seen.brokers:
            self._leave_closest()

    def _leave_closest(self) -> bool:
        """Fetch from the leader for ``AT_LEADER_MS``; False if the last fetch was from the leader already."""
        if self._closest is None:
            return False
        self._part()
        self._closest = None
        self._at_leader_until = self._cluster.deadline(AT_LEADER_MS)
        return True

    def _ensure_asked(self, deadline: Deadline) -> ErrorCode:
        if self._reply is not None:
            return ErrorCode.none
        if self._connection is None:
            code = self._dial(deadline)
            if code is not ErrorCode.none:
                return code
        return self._ask()

    def _dial(self, deadline: Deadline) -> ErrorCode:
        if self._topic_partition.topic not in self._seen.topics:
            self._cluster.topic(self._topic_partition.topic)
            self._seen = self._cluster.latest_metadata
        leader = self._seen.leader(self._topic_partition)
        if not isinstance(leader, KnownLeader):
            return leader
        self._check_identity(leader)
        self._leader = leader
        near_us = self._closest if self._closest in self._seen.brokers else None
        self._endpoint = self._seen.endpoint(leader.broker_id if near_us is None else near_us)
        try:
            self._connection = self._cluster.borrow(self._endpoint, deadline)
        except OSError:
            return ErrorCode.network_exception
        return ErrorCode.none

    def _ask(self) -> ErrorCode:
        assert self._connection is not None
        assert self._leader is not None
        stays = self._at_leader_until is not None and not self._at_leader_until.is_over
        self._named_rack = not stays
        terms = self._terms if stays else self._rack_terms
        request = fetch_request(
            {self._topic_partition: self._leader}, {self._topic_partition: self.position}, terms
        )
        try:
            self._reply = self._connection.send(request)
        except OSError:
            return ErrorCode.network_exception
        return ErrorCode.none

    def _ask_ahead(self) -> None:
        if self._ask() is not ErrorCode.none:
            self._hang_up()  # the next fetch begins with a new connection

    def _take_answer(self) -> FetchPartitionData:
        assert self._reply is not None
        assert self._leader is not None
        try:
            response = self._reply.result(MAX_WAIT_MS + self._cluster.request_timeout_ms)
        except OSError:
            return FetchPartitionData(
                partition_index=self._topic_partition.partition, error_code=ErrorCode.network_exception
            )
        self._reply = None
        return answers_of(response, {self._topic_partition: self._leader})[self._topic_partition]

    def _check_identity(self, leader: KnownLeader) -> None:
        if leader.topic_id == NO_TOPIC_ID:
            return
        if self._topic_id is not None and self._topic_id != leader.topic_id:
            raise TopicRecreated(self._topic_partition)
        self._topic_id = leader.topic_id

    def _not_readable(self, answer: FetchPartitionData, deadline: Deadline) -> RangeNotReadable:
        readable_to = answer.high_watermark
        if self._isolation_level is IsolationLevel.READ_COMMITTED and answer.last_stable_offset >= 0:
            readable_to = answer.last_stable_offset
        why = f"its leader has records up to, not including, {readable_to}"
        return RangeNotReadable(
            self._topic_partition, self.position, self._end_offset, deadline.timeout_ms, why
        )

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._cluster.discard(self._connection)
        self._connection = self._reply = None
