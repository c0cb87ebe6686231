"""A consumer of given partitions; the caller chooses the first offsets and saves positions.

The partitions may change between two polls (``assign``, ``unassign``), as those of a group's member do.

One fetch per leader is always in flight; ``poll`` takes the first answer. The consumer looks for leaders that
changed or vanished until a partition has been without an answer for ``timeout_ms``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.calls.connections import BrokerConnection, PendingReply
from sparklog.client.calls.retry import BACKOFF_MAX_MS, BACKOFF_MS, Deadline
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable, OffsetOutOfRange, unreadable
from sparklog.client.fetched import FetchTerms, answers_of, fetch_request, fetched_of
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.offsets import log_ends
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.wire.messages.data.fetch import FetchPartitionData

OnOutOfRange = Callable[[OffsetOutOfRange], int]
"""Chooses the next position after OffsetOutOfRange; may raise that error."""

MAX_WAIT_MS: Final = 500
REFRESH_TIMEOUT_MS: Final = 5_000
LISTEN_MS: Final = 20
"""How long to listen to one leader before looking whether another has answered."""


def _raise(error: OffsetOutOfRange) -> int:
    raise error


@dataclass(slots=True)
class _Fetch:
    """A fetch on its way to one leader, on a connection of its own."""

    endpoint: Endpoint
    connection: BrokerConnection
    leaders: Mapping[TopicPartition, KnownLeader]
    positions: Mapping[TopicPartition, int]
    """The offsets that it asks for; an answer is dropped if the partition's position is another by then."""
    reply: PendingReply
    answer_due: Deadline


class Consumer:
    """Reads ``positions``: the next offset of each partition. For one thread; ``close`` it in the end."""

    def __init__(
        self,
        cluster: ClusterClient,
        positions: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        max_bytes: int = 8 * 1024 * 1024,
        timeout_ms: int = 120_000,
        on_out_of_range: OnOutOfRange = _raise,
    ) -> None:
        self.positions = dict(positions)
        self._cluster = cluster
        self._isolation_level = isolation_level
        self._terms = FetchTerms(MAX_WAIT_MS, max_bytes, max_bytes, isolation_level)
        self._timeout_ms = timeout_ms
        self._on_out_of_range = on_out_of_range
        self._fetches: dict[BrokerId, _Fetch] = {}
        self._seen = cluster.latest_metadata
        self._obstacles: dict[TopicPartition, ErrorCode] = {}
        self._pause_ms = BACKOFF_MS
        self._look_again: Deadline | None = None  # when to ask for metadata because of the obstacles
        self._give_up: dict[
            TopicPartition, Deadline
        ] = {}  # for each partition that has not answered well since

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def poll(self, timeout_ms: int) -> list[tuple[TopicPartition, pa.RecordBatch]]:
        """Rows in ROW_SCHEMA, as soon as there are any; an empty list after ``timeout_ms`` without rows.

        Positions move past the returned rows. Raises KafkaError when a partition cannot be read any more.
        """
        deadline = self._cluster.deadline(timeout_ms)
        while True:
            self._find_leaders()
            self._send_fetches()
            rows: list[tuple[TopicPartition, pa.RecordBatch]] = []
            for broker_id in list(self._fetches):
                listen_ms = min(LISTEN_MS, deadline.remaining_ms) if not rows else 0
                rows.extend(self._take_answer(broker_id, listen_ms))
            if rows or deadline.is_over:
                return rows
            if not self._fetches:
                self._cluster.wait(min(BACKOFF_MS, deadline.remaining_ms))

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions too, or go on elsewhere in those that are read already."""
        self.positions.update(positions)
        self._seen = self._cluster.latest_metadata  # the choice of the positions needed these topics' leaders

    def unassign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions no more; answers that are under way are dropped."""
        for topic_partition in topic_partitions:
            self.positions.pop(topic_partition, None)
            self._obstacles.pop(topic_partition, None)
            self._give_up.pop(topic_partition, None)

    def close(self) -> None:
        """End the fetches in flight."""
        for fetch in self._fetches.values():
            self._cluster.discard(fetch.connection)
        self._fetches.clear()

    def _note(self, topic_partition: TopicPartition, code: ErrorCode) -> None:
        """Record that a partition cannot be read now; its time-out runs until it answers again."""
        self._obstacles[topic_partition] = code
        self._give_up.setdefault(topic_partition, self._cluster.deadline(self._timeout_ms))

    def _note_lost(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self._note(topic_partition, ErrorCode.network_exception)

    def _find_leaders(self) -> None:
        """After an obstacle and a pause, request the leaders again."""
        if not self._obstacles:
            return
        if self._look_again is None:
            self._look_again = self._cluster.deadline(self._pause_ms)
            self._pause_ms = min(self._pause_ms * 2, BACKOFF_MAX_MS)
        if not self._look_again.is_over:
            return
        hopeless = {
            topic_partition: code
            for topic_partition, code in self._obstacles.items()
            if self._give_up[topic_partition].is_over
        }
        if hopeless:
            raise self._cluster.gave_up(hopeless, self._give_up[next(iter(hopeless))])
        topics = list(dict.fromkeys(topic_partition.topic for topic_partition in self._obstacles))
        self._look_again = None
        try:
            self._seen = self._cluster.refresh(topics, self._seen, self._cluster.deadline(REFRESH_TIMEOUT_MS))
        except ClusterUnavailable:
            return  # the obstacles stay, until their time is up
        self._obstacles.clear()

    def _send_fetches(self) -> None:
        """To every leader that has no fetch, one for all its partitions."""
        busy = {
            topic_partition for fetch in self._fetches.values() for topic_partition in fetch.leaders
        } | self._obstacles.keys()
        groups: dict[BrokerId, dict[TopicPartition, KnownLeader]] = {}
        for topic_partition in self.positions.keys() - busy:
            leader = self._seen.leader(topic_partition)
            if isinstance(leader, KnownLeader):
                groups.setdefault(leader.broker_id, {})[topic_partition] = leader
            else:
                self._note(topic_partition, leader)
        for broker_id, leaders in groups.items():
            if broker_id not in self._fetches:
                self._send_fetch(broker_id, leaders)

    def _send_fetch(self, broker_id: BrokerId, leaders: Mapping[TopicPartition, KnownLeader]) -> None:
        endpoint = self._seen.endpoint(broker_id)
        request = fetch_request(leaders, self.positions, self._terms)
        connection: BrokerConnection | None = None
        try:
            connection = self._cluster.borrow(endpoint, self._cluster.deadline(self._timeout_ms))
            reply = connection.send(request)
        except OSError:
            if connection is not None:
                self._cluster.discard(connection)
            self._note_lost(leaders)
            return
        due = self._cluster.deadline(MAX_WAIT_MS + self._cluster.request_timeout_ms)
        asked = {topic_partition: self.positions[topic_partition] for topic_partition in leaders}
        self._fetches[broker_id] = _Fetch(endpoint, connection, leaders, asked, reply, due)

    def _take_answer(
        self, broker_id: BrokerId, listen_ms: int
    ) -> list[tuple[TopicPartition, pa.RecordBatch]]:
        fetch = self._fetches[broker_id]
        try:
            response = fetch.reply.result(listen_ms)
        except OSError as error:
            if isinstance(error, TimeoutError) and not fetch.answer_due.is_over:
                return []  # still on its way
            self._cluster.discard(fetch.connection)
            del self._fetches[broker_id]
            self._note_lost(fetch.leaders.keys() & self.positions.keys())
            return []
        del self._fetches[broker_id]
        self._cluster.give_back(fetch.endpoint, fetch.connection)
        rows: list[tuple[TopicPartition, pa.RecordBatch]] = []
        for topic_partition, answer in answers_of(response, fetch.leaders).items():
            if self.positions.get(topic_partition) == fetch.positions[topic_partition]:
                rows.extend((topic_partition, batch) for batch in self._rows(topic_partition, answer))
        return rows

    def _rows(self, topic_partition: TopicPartition, answer: FetchPartitionData) -> list[pa.RecordBatch]:
        code = answer.error_code
        if code is ErrorCode.offset_out_of_range:
            start, end = log_ends(self._cluster, topic_partition, self._isolation_level)
            self.positions[topic_partition] = self._on_out_of_range(
                OffsetOutOfRange(topic_partition, self.positions[topic_partition], start, end)
            )
            return []
        if code is not ErrorCode.none:
            if not code.retriable:
                raise unreadable(topic_partition, code, self._cluster.bootstrap_servers)
            self._note(topic_partition, code)
            return []
        self._give_up.pop(topic_partition, None)
        if not self._give_up:
            self._pause_ms = BACKOFF_MS
        fetched = fetched_of(topic_partition, self.positions[topic_partition], answer)
        rows = list(fetched.rows())
        self.positions[topic_partition] = fetched.next_offset
        return rows
