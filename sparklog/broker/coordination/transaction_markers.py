"""Writes the markers of decided transactions: one in each partition, however often it takes.

    SendMarkers --> leader of each partition --> one WriteTxnMarkers a broker, with all that is due there
                         ^                                     |
                         +--- refused, or not answered --------+-- written --> last one: MarkersWritten

A marker is sent again until its partition has it, to the leader at that time. A partition that is gone needs
none: its topic was deleted, or made again under its name, which the topic's id shows. An end is given up when
its coordinator resigns; the next coordinator begins it anew.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparklog.broker.coordination.broker_batches import BrokerBatches, BrokerCalls
from sparklog.broker.coordination.shard_host import ShardHost
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.ports import Ports
from sparklog.core.transaction_coordinator.messages import SendMarkers
from sparklog.core.transaction_coordinator.requests import MarkersWritten
from sparklog.core.transaction_coordinator.responses import Answer
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from sparklog.model.time import MonotonicMs
from sparklog.model.write_ids import is_of_a_write
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

logger: Final = logging.getLogger(__name__)

RETRY_MS: Final = 50
"""Pause before a marker that was refused is sent again, and before a leader is looked for again."""

GONE_AFTER_MS: Final = 2_000
"""A topic that metadata lack for so long is gone. After an election they may lack a new one for a moment."""

WRITTEN: Final = frozenset({ErrorCode.none, ErrorCode.invalid_producer_epoch})
"""A partition that knows a newer epoch of the producer has ended the transaction."""


@dataclass(slots=True, eq=False)
class _End:
    """One transaction that is being ended. ``missing``: partitions without their marker, and their topics."""

    host: ShardHost
    message: SendMarkers
    missing: dict[TopicPartition, TopicId]
    not_found_since: dict[TopicPartition, MonotonicMs] = field(default_factory=dict)
    is_over: bool = False

    @property
    def has_ended(self) -> bool:
        return self.is_over or self.host.is_over


class _Marker(NamedTuple):
    end: _End
    topic_partition: TopicPartition


class TransactionMarkers:
    """The markers that the coordinators of one broker have to write; a ``shard_host.Listener``."""

    def __init__(self, metadata: MetadataCache, ports: Ports, calls: BrokerCalls) -> None:
        self._metadata = metadata
        self._ports = ports
        self._guard = ports.new_guard()
        """Protects ``missing`` of every end, and ``_ends``."""
        self._ends: set[_End] = set()
        """Those that are under way."""
        self._batches: BrokerBatches[_Marker] = BrokerBatches(
            "transaction-markers",
            calls,
            new_guard=ports.new_guard,
            request_of=_request,
            deliver=self._deliver,
        )

    def send(self, host: ShardHost, message: SendMarkers) -> None:
        """Write the markers of an end that the coordinator of ``host`` has decided; for any thread."""
        missing = {one: topic.topic_id for topic in message.topics for one in topic.topic_partitions}
        end = _End(host, message, missing)
        with self._guard:
            self._ends.add(end)
        if missing:
            self._send(end, tuple(missing))
        else:
            self._complete(end)

    def missing(self, app: str) -> set[TopicPartition]:
        """The partitions without a marker that an atomic write of ``app`` needs there; for any thread."""
        with self._guard:
            return {
                topic_partition
                for end in self._ends
                if end.message.transactional_id == app and is_of_a_write(end.message.producer_id)
                for topic_partition in end.missing
                if not end.has_ended
            }

    def _forget(self, end: _End) -> None:
        with self._guard:
            self._ends.discard(end)

    def _send(self, end: _End, topic_partitions: Iterable[TopicPartition]) -> None:
        """Pass each marker on to the leader of its partition."""
        if end.has_ended:
            self._forget(end)
            return
        gone, leaderless = [], []
        for topic_partition in topic_partitions:
            leader = self._leader_of(end, topic_partition)
            if leader is None:
                gone.append(topic_partition)
            elif leader < 0:
                leaderless.append(topic_partition)
            else:
                self._batches.put(leader, _Marker(end, topic_partition))
        if gone:
            self._written(end, gone)
        if leaderless:
            self._send_later(end, leaderless)

    def _leader_of(self, end: _End, topic_partition: TopicPartition) -> BrokerId | None:
        """The leader, -1 if there is none at the moment, or None if the partition is gone."""
        topic = self._metadata.topic(topic_partition.topic)
        asked_id = end.missing.get(topic_partition, NO_TOPIC_ID)
        if topic is not None and NO_TOPIC_ID not in (asked_id, topic.id) and asked_id != topic.id:
            return None
        state = None if topic is None else topic.partitions.get(topic_partition.partition)
        if state is not None:
            end.not_found_since.pop(topic_partition, None)
            return state.leader
        now_ms = self._ports.clock.monotonic_ms()
        since_ms = end.not_found_since.setdefault(topic_partition, now_ms)
        return None if self._metadata.is_received and now_ms - since_ms >= GONE_AFTER_MS else BrokerId(-1)

    def _send_later(self, end: _End, topic_partitions: list[TopicPartition]) -> None:
        def again() -> None:
            self._send(end, topic_partitions)

        self._ports.timer.after(RETRY_MS, lambda: self._ports.executor.submit(again))

    def _deliver(self, markers: list[_Marker], response: WriteTxnMarkersResponse | None) -> None:
        errors = {} if response is None else _errors(response)
        written: dict[_End, list[TopicPartition]] = {}
        again: dict[_End, list[TopicPartition]] = {}
        for end, topic_partition in markers:
            error = errors.get((end.message.producer_id, topic_partition), ErrorCode.network_exception)
            if error in WRITTEN:
                written.setdefault(end, []).append(topic_partition)
            elif error is ErrorCode.transaction_coordinator_fenced:
                logger.info(
                    "%s: %s knows a newer coordinator, which ends the transaction of %r",
                    end.host.topic_partition,
                    topic_partition,
                    end.message.transactional_id,
                )
                end.is_over = True
                self._forget(end)
            else:
                again.setdefault(end, []).append(topic_partition)
        for end, topic_partitions in written.items():
            self._written(end, topic_partitions)
        for end, topic_partitions in again.items():
            self._send_later(end, topic_partitions)

    def _written(self, end: _End, topic_partitions: list[TopicPartition]) -> None:
        with self._guard:
            known = len(end.missing)
            for topic_partition in topic_partitions:
                end.missing.pop(topic_partition, None)
            is_last = known > 0 and not end.missing
        if is_last:
            self._complete(end)

    def _complete(self, end: _End) -> None:
        """Tell the coordinator; again, while its own log does not take the Complete record."""
        self._forget(end)
        message = end.message

        def answered(answer: Answer) -> None:
            if answer.error not in (ErrorCode.none, ErrorCode.not_coordinator):
                self._ports.timer.after(
                    RETRY_MS, lambda: self._ports.executor.submit(lambda: self._complete(end))
                )

        if not end.has_ended:
            end.host.submit(
                MarkersWritten(
                    message.transactional_id, message.producer_id, message.producer_epoch, message.is_commit
                ),
                answered,
            )


def _request(markers: list[_Marker]) -> WriteTxnMarkersRequest:
    ends: dict[_End, dict[str, WritableTxnMarkerTopic]] = {}
    for end, (name, number) in markers:
        topics = ends.setdefault(end, {})
        topics.setdefault(name, WritableTxnMarkerTopic(name=name)).partition_indexes.append(number)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=end.message.producer_id,
                producer_epoch=end.message.producer_epoch,
                transaction_result=end.message.is_commit,
                topics=list(topics.values()),
                coordinator_epoch=end.host.leader_epoch,
            )
            for end, topics in ends.items()
        ]
    )


def _errors(response: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], ErrorCode]:
    return {
        (marker.producer_id, TopicPartition(topic.name, partition.partition_index)): partition.error_code
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
