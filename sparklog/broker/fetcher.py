"""Following: one fetcher per leader, which pulls for all partitions that follow that leader.

A fetcher's ``round`` asks the leader and hands each partition its part of the reply. It is a conversation: it
yields each question and is sent the response, or thrown the OSError, so that whoever drives it decides how to
wait. ``run_once`` waits at a peer, and ``fetcher_threads`` gives each fetcher a thread for that; a simulation
lets other things happen in between. Whether a reply still counts is for the partition to say: its epoch and
its end may have changed meanwhile.
"""

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from sparklog.broker.partition import Partition
from sparklog.broker.ports import Peers
from sparklog.core.replication.follower import FetchPosition
from sparklog.core.replication.leader import Diverging
from sparklog.model.cluster import Broker
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import CorruptBatch, ErrorCode, WireError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.model.ports import Guard
from sparklog.model.time import Clock, MonotonicMs
from sparklog.records.validate import check_replicated
from sparklog.wire.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from sparklog.wire.messages.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

logger = logging.getLogger(__name__)

BACKOFF_MIN_MS = 20
"""First pause after an error; doubles up to ``replica.fetch.backoff.ms``.

Short, because the usual error is a leader that was not told yet that it leads.
"""


@dataclass(slots=True)
class Followed:
    """One partition that this fetcher pulls for."""

    partition: Partition
    ready_at_ms: MonotonicMs = MonotonicMs(0)
    backoff_ms: int = BACKOFF_MIN_MS
    asks_offsets: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A request that a round makes of its leader."""

    broker: Broker
    message: FetchRequest | ListOffsetsRequest
    timeout_ms: int


Conversation = Generator[Question, Any, int]
"""A round: yields questions, is sent responses, returns the milliseconds to pause before the next round."""


class Fetcher:
    """Pulls from one leader for all partitions that follow it. One round at a time."""

    def __init__(
        self,
        *,
        broker_id: BrokerId,
        broker_epoch: Callable[[], BrokerEpoch],
        leader: BrokerId,
        find_broker: Callable[[BrokerId], Broker | None],
        peers: Peers,
        config: BrokerConfig,
        clock: Clock,
        guard: Guard,
    ) -> None:
        self.leader = leader
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._find_broker = find_broker
        self._peers = peers
        self._config = config
        self._clock = clock
        self._guard = guard
        self._followed: dict[TopicPartition, Followed] = {}
        self._unreachable_backoff_ms = BACKOFF_MIN_MS

    # From any thread

    def add(self, partition: Partition) -> None:
        with self._guard:
            self._followed[partition.topic_partition] = Followed(partition)

    def remove(self, partition: Partition) -> None:
        with self._guard:
            followed = self._followed.get(partition.topic_partition)
            if followed is not None and followed.partition is partition:
                del self._followed[partition.topic_partition]

    def ask_leader_offsets(self, partition: Partition) -> None:
        with self._guard:
            if (followed := self._followed.get(partition.topic_partition)) is not None:
                followed.asks_offsets = True

    def back_off(self, partition: Partition) -> None:
        now_ms = self._clock.monotonic_ms()
        with self._guard:
            if (followed := self._followed.get(partition.topic_partition)) is not None:
                followed.ready_at_ms = MonotonicMs(now_ms + followed.backoff_ms)
                longest_ms = self._config.get_int("replica.fetch.backoff.ms")
                followed.backoff_ms = min(2 * followed.backoff_ms, longest_ms)

    def is_idle(self) -> bool:
        with self._guard:
            return not self._followed

    # The round

    def run_once(self) -> int:
        """One round, waiting for the leader; returns how many milliseconds to pause before the next."""
        conversation = self.round()
        try:
            question = next(conversation)
            while True:
                try:
                    response = self._peers.call(
                        question.broker, question.message, timeout_ms=question.timeout_ms
                    )
                except (OSError, WireError) as error:
                    question = conversation.throw(error)
                else:
                    question = conversation.send(response)
        except StopIteration as end:
            return int(end.value)

    def round(self) -> Conversation:
        """Ask once and hand out the reply."""
        asked = self._positions()
        if not asked:
            return self._pause_ms()
        broker = self._find_broker(self.leader)
        if broker is None:
            return self._unreachable(asked, "its address is not known yet")
        try:
            yield from self._answer_offset_questions(broker, asked)
            if not asked:
                return 0
            response = yield Question(broker, self._request(asked), self._timeout_ms())
        except (OSError, WireError) as error:
            return self._unreachable(asked, str(error))
        self._unreachable_backoff_ms = BACKOFF_MIN_MS
        self._take(asked, response)
        return 0

    def _positions(self) -> dict[TopicPartition, tuple[Followed, FetchPosition]]:
        now_ms = self._clock.monotonic_ms()
        with self._guard:
            ready = [followed for followed in self._followed.values() if followed.ready_at_ms <= now_ms]
        positions: dict[TopicPartition, tuple[Followed, FetchPosition]] = {}
        for followed in ready:
            position = followed.partition.fetch_position()
            if position is not None:
                positions[followed.partition.topic_partition] = (followed, position)
        return positions

    def _request(self, asked: dict[TopicPartition, tuple[Followed, FetchPosition]]) -> FetchRequest:
        topics: dict[TopicId, FetchTopic] = {}
        bytes_max = self._config.get_int("replica.fetch.max.bytes")
        for topic_partition, (followed, position) in asked.items():
            topic_id = followed.partition.topic_id
            topic = topics.setdefault(topic_id, FetchTopic(topic=topic_partition.topic, topic_id=topic_id))
            topic.partitions.append(
                FetchPartition(
                    partition=topic_partition.partition,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.fetch_offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=followed.partition.log_start_offset,
                    partition_max_bytes=bytes_max,
                )
            )
        return FetchRequest(
            replica_id=self._broker_id,
            replica_epoch=self._broker_epoch(),
            max_wait_ms=self._config.get_int("replica.fetch.wait.max.ms"),
            min_bytes=self._config.get_int("replica.fetch.min.bytes"),
            max_bytes=self._config.get_int("replica.fetch.response.max.bytes"),
            topics=list(topics.values()),
        )

    def _take(
        self, asked: dict[TopicPartition, tuple[Followed, FetchPosition]], response: FetchResponse
    ) -> None:
        if response.error_code is not ErrorCode.none:
            for followed, position in asked.values():
                followed.partition.on_fetch_error(position.leader_epoch, response.error_code)
            return
        by_id = {(entry.partition.topic_id, tp.partition): (entry, at) for tp, (entry, at) in asked.items()}
        for topic in response.responses:
            for data in topic.partitions:
                known = by_id.get((topic.topic_id, data.partition_index))
                if known is not None:
                    self._take_carefully(known[0], known[1], data)

    def _take_carefully(self, followed: Followed, position: FetchPosition, data: FetchPartitionData) -> None:
        """One partition's trouble must not keep the others of this leader from being replicated."""
        try:
            self._take_partition(followed, position, data)
        except Exception:
            logger.exception("%s: its part of a fetch reply failed", followed.partition.topic_partition)
            self.back_off(followed.partition)

    def _take_partition(self, followed: Followed, position: FetchPosition, data: FetchPartitionData) -> None:
        partition = followed.partition
        if data.error_code is not ErrorCode.none:
            partition.on_fetch_error(position.leader_epoch, data.error_code)
            return
        followed.backoff_ms = BACKOFF_MIN_MS
        if data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
            diverging = Diverging(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            logger.info("%s: our log parts from the leader's, %s", partition.topic_partition, diverging)
            partition.on_diverging(position.leader_epoch, position.fetch_offset, diverging)
            return
        try:
            records = read_parts(data.records)
            batches = check_replicated(records) if records else []
        except CorruptBatch as error:
            logger.warning("%s: the leader sent a corrupt batch: %s", partition.topic_partition, error)
            partition.on_fetch_error(position.leader_epoch, ErrorCode.corrupt_message)
            return
        partition.append_as_follower(
            records,
            batches,
            leader_epoch=position.leader_epoch,
            fetch_offset=position.fetch_offset,
            leader_high_watermark=data.high_watermark,
            leader_log_start_offset=data.log_start_offset,
        )

    def _answer_offset_questions(
        self, broker: Broker, asked: dict[TopicPartition, tuple[Followed, FetchPosition]]
    ) -> Generator[Question, Any, None]:
        """For partitions whose fetch offset was out of range: where does the leader's log start and end?"""
        for topic_partition, (followed, position) in list(asked.items()):
            if not followed.asks_offsets:
                continue
            del asked[topic_partition]
            start = yield from self._leader_offset(broker, topic_partition, position, EARLIEST_TIMESTAMP)
            end = yield from self._leader_offset(broker, topic_partition, position, LATEST_TIMESTAMP)
            followed.asks_offsets = False
            if isinstance(start, ErrorCode) or isinstance(end, ErrorCode):
                error = start if isinstance(start, ErrorCode) else end
                assert isinstance(error, ErrorCode)
                followed.partition.on_fetch_error(position.leader_epoch, error)
            else:
                followed.partition.on_leader_offsets(position.leader_epoch, start, end)

    def _leader_offset(
        self, broker: Broker, topic_partition: TopicPartition, position: FetchPosition, timestamp: int
    ) -> Generator[Question, Any, int | ErrorCode]:
        question = ListOffsetsPartition(
            partition_index=topic_partition.partition,
            current_leader_epoch=position.leader_epoch,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            replica_id=self._broker_id,
            topics=[ListOffsetsTopic(name=topic_partition.topic, partitions=[question])],
        )
        response = yield Question(broker, request, self._timeout_ms())
        answer = response.topics[0].partitions[0]
        if answer.error_code is not ErrorCode.none:
            return ErrorCode(answer.error_code)
        return int(answer.offset)

    def _unreachable(self, asked: dict[TopicPartition, tuple[Followed, FetchPosition]], why: str) -> int:
        logger.info("leader %d cannot be fetched from for %d partitions: %s", self.leader, len(asked), why)
        pause_ms = self._unreachable_backoff_ms
        self._unreachable_backoff_ms = min(2 * pause_ms, self._config.get_int("replica.fetch.backoff.ms"))
        return pause_ms

    def _timeout_ms(self) -> int:
        wait_ms = self._config.get_int("replica.fetch.wait.max.ms")
        return wait_ms + self._config.get_int("replica.socket.timeout.ms")

    def _pause_ms(self) -> int:
        """Until the first partition that backs off is ready again."""
        now_ms = self._clock.monotonic_ms()
        with self._guard:
            pauses = [followed.ready_at_ms - now_ms for followed in self._followed.values()]
        waiting = [pause for pause in pauses if pause > 0]
        return min(waiting, default=self._config.get_int("replica.fetch.wait.max.ms"))
