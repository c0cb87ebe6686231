"""A consumer that shares the partitions of its topics with the other members of its group.

``poll`` does everything on the caller's thread but heartbeats: it takes changes of partitions, finds the
first offsets, commits, and returns rows. Positions are committed at the beginning of a poll, every
``auto_commit_interval_ms``, because all rows of earlier polls count as processed then. They are committed
before partitions are given up, too, and in ``close``.

    with GroupConsumer(cluster, MemberSettings(group_id="g", topics=frozenset({"t"}))) as consumer:
        for topic_partition, rows in consumer.poll(1_000):
            ...
"""

import logging
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import count
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.consumer import Consumer
from sparklog.client.coordinator import Coordinator
from sparklog.client.errors import ClusterUnavailable, OffsetOutOfRange
from sparklog.client.group.committed_offsets import commit_offsets, fetch_committed
from sparklog.client.group.handover import Assigned, Handover, Lost, Revoked
from sparklog.client.group.loop_calls import LoopCalls
from sparklog.client.group.membership import Membership, leave_request
from sparklog.client.group.settings import MemberSettings
from sparklog.client.isolation import IsolationLevel
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.network.loop_threads import LoopThreads

logger: Final = logging.getLogger(__name__)

POLL_SLICE_MS: Final = 100
"""How long one wait for records may delay the change of partitions."""

COMMIT_TIMEOUT_MS: Final = 10_000
"""How long a commit may hold up the application while the coordinator moves."""
LEAVE_TIMEOUT_MS: Final = 5_000


class OffsetReset(Enum):
    """Where a partition begins without a committed offset that can be read (``auto.offset.reset``)."""

    EARLIEST = "earliest"
    LATEST = "latest"


OnAssignment = Callable[[frozenset[TopicPartition]], None]
"""Called after every rebalance that changed something, with all partitions that the member has now."""


class GroupConsumer:
    """One member. For one thread; ``close`` commits, and leaves the group."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: MemberSettings,
        *,
        offset_reset: OffsetReset = OffsetReset.LATEST,
        auto_commit_interval_ms: int = 5_000,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
        on_assignment: OnAssignment = lambda _: None,
        on_out_of_range: Callable[[OffsetOutOfRange], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._offset_reset = offset_reset
        self._auto_commit_interval_ms = auto_commit_interval_ms
        self._isolation_level = isolation_level
        self._on_assignment = on_assignment
        self._on_out_of_range = on_out_of_range
        self._coordinator = Coordinator(cluster, settings.group_id)
        self._handover = Handover(cluster.clock)
        self._consumer = Consumer(
            cluster, {}, isolation_level=isolation_level, on_out_of_range=self._begin_anew
        )
        self._announced: frozenset[TopicPartition] | None = None  # what ``on_assignment`` was called with
        self._committed: dict[TopicPartition, int] = {}
        self._next_commit = cluster.deadline(auto_commit_interval_ms)
        self._calls = LoopCalls(cluster)
        self._loops = LoopThreads(self._calls)
        membership = Membership(settings, self._handover, _brokers_in_turn(cluster))
        self._loops.start(f"member-of-{settings.group_id}", membership.life)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(commit=error is None)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this member has now."""
        return frozenset(self._consumer.positions)

    @property
    def is_member(self) -> bool:
        """Whether the group has this member in its current generation, as far as is known."""
        return self._handover.identity.generation >= 0

    @property
    def obstacle(self) -> str:
        """Why the member is not in its group yet; empty if nothing is known to be wrong."""
        return self._handover.obstacle

    def poll(self, timeout_ms: int) -> list[tuple[TopicPartition, pa.RecordBatch]]:
        """Rows in ROW_SCHEMA, as soon as there are any; an empty list after ``timeout_ms`` without rows.

        Raises KafkaError when the group refuses this member, or when a partition cannot be read any more.
        """
        deadline = self._cluster.deadline(timeout_ms)
        while True:
            self._handover.note_poll()
            self._take_changes()
            if self._next_commit.is_over:
                self._commit_or_log()
            slice_ms = min(POLL_SLICE_MS, deadline.remaining_ms)
            rows = self._consumer.poll(slice_ms)
            if rows or deadline.is_over:
                return rows

    def seek(self, topic_partition: TopicPartition, offset: int) -> None:
        """Go on at this offset of a partition that the member has, and commit it as the position."""
        if topic_partition in self._consumer.positions:
            self._consumer.assign({topic_partition: offset})

    def commit(self) -> None:
        """Commit the positions that moved.

        KafkaError if the group has gone on without this member, or if the coordinator is not ready until the
        deadline; a later poll brings the new assignment.
        """
        self._next_commit = self._cluster.deadline(self._auto_commit_interval_ms)
        identity = self._handover.identity
        moved = {
            topic_partition: position
            for topic_partition, position in self._consumer.positions.items()
            if position != self._committed.get(topic_partition)
        }
        if not moved or identity.generation < 0:
            return
        refused = commit_offsets(
            self._coordinator,
            moved,
            identity,
            group_instance_id=self._settings.group_instance_id,
            timeout_ms=COMMIT_TIMEOUT_MS,
        )
        self._committed.update({one: position for one, position in moved.items() if one not in refused})
        if refused:
            topic_partition, code = next(iter(refused.items()))
            raise KafkaError(code, f"the position of {topic_partition} in group {self._coordinator.key!r}")

    def close(self, *, commit: bool = True) -> None:
        """Commit the positions, end the heartbeats and leave the group.

        A static member stays in the group until its session is over. Errors are logged, because the
        coordinator removes a silent member itself. ``commit=False`` after a failure: records that were
        returned but not processed are then read again.
        """
        if self._handover.is_closing:
            return
        self._handover.close()
        if commit and not self._cluster.is_closed:
            self._commit_or_log()
        self._calls.close()
        self._loops.close()
        self._consumer.close()
        member_id = self._handover.identity.member_id
        if not member_id or self._settings.group_instance_id is not None or self._cluster.is_closed:
            return
        try:
            self._coordinator.call(
                leave_request(self._settings, member_id, "the consumer was closed"),
                lambda answer: answer.error_code,
                timeout_ms=LEAVE_TIMEOUT_MS,
            )
        except (OSError, SparklogError) as error:
            logger.warning(
                "group %s does not know that its member leaves: %s", self._settings.group_id, error
            )

    def _commit_or_log(self) -> None:
        """Commit where no caller waits for the result: the next commit repeats what this one missed."""
        try:
            self.commit()
        except KafkaError as error:
            is_rebalance = error.code in (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation)
            logger.log(logging.INFO if is_rebalance else logging.WARNING, "not committed: %s", error)
        except ClusterUnavailable as error:
            logger.warning("not committed: %s", error)

    # Changes of partitions.

    def _take_changes(self) -> None:
        while (change := self._handover.next_change()) is not None:
            match change:
                case Assigned(partitions):
                    self._consumer.assign(self._first_offsets(partitions))
                case Revoked(partitions):
                    self._commit_or_log()
                    self._drop(partitions)
                case Lost(partitions):
                    self._drop(partitions)
            self._handover.take()
            # A revocation is the first half of a rebalance: the caller hears of it with the assignment.
            if not isinstance(change, Revoked) and self.assignment != self._announced:
                self._announced = self.assignment
                self._on_assignment(self._announced)

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        self._consumer.unassign(partitions)
        for topic_partition in partitions:
            self._committed.pop(topic_partition, None)

    def _first_offsets(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """The committed offsets; where there is none, the reset's."""
        if not partitions:
            return {}
        committed = fetch_committed(
            self._coordinator,
            partitions,
            require_stable=self._isolation_level is IsolationLevel.READ_COMMITTED,
        )
        positions = {topic_partition: found.offset for topic_partition, found in committed.items()}
        self._committed.update(positions)
        return positions | self._reset(partitions - positions.keys())

    def _reset(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        if self._offset_reset is OffsetReset.EARLIEST:
            return offsets.earliest(self._cluster, partitions)
        return offsets.latest(self._cluster, partitions, self._isolation_level)

    def _begin_anew(self, gone: OffsetOutOfRange) -> int:
        """The position is not in the log: begin where the reset says."""
        self._on_out_of_range(gone)
        return self._reset([gone.topic_partition])[gone.topic_partition]


def _brokers_in_turn(cluster: ClusterClient) -> Callable[[], Node]:
    """Names a broker at each call: the known ones in turn, those of ``bootstrap.servers`` while none is."""
    turns = count()

    def any_broker() -> Node:
        endpoints = cluster.endpoints()
        endpoint = endpoints[next(turns) % len(endpoints)]
        return Node(BrokerId(-1), endpoint.host, endpoint.port)

    return any_broker
