"""Following: one fetcher per leader, which pulls for all partitions that follow that leader.

A fetcher's ``round`` asks the leader and hands each partition its part of the reply. It is a part of a loop
(``model.loops``; ``fetchers`` has the loop), so that threads wait for the leader, and a simulation lets other
things happen in between. The partition decides whether a reply still counts: its epoch and its end may have
changed meanwhile.
"""

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from sparklog.broker.following.session_with_leader import SessionWithLeader
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.partition.partition import Partition
from sparklog.broker.throttles import ReplicationThrottle
from sparklog.core.producers.producer_state import CorruptSnapshot, taken_over
from sparklog.core.replication.epoch_history import EarlierHistory, EpochHistory
from sparklog.core.replication.follower import FetchPosition
from sparklog.core.replication.leader import Diverging
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import CorruptBatch, ErrorCode, WireError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.loops import CallBroker
from sparklog.model.parts import read_parts
from sparklog.model.ports import Guard
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock, MonotonicMs
from sparklog.records.validate import check_replicated
from sparklog.wire.messages.data.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

logger: Final = logging.getLogger(__name__)

BACKOFF_MIN_MS = 20
"""First pause after an error; doubles up to ``replica.fetch.backoff.ms``.

Short, because usually the leader has not received its LeaderAndIsr yet.
"""

SESSION_ERRORS: Final = (
    ErrorCode.fetch_session_id_not_found,
    ErrorCode.invalid_fetch_session_epoch,
    ErrorCode.fetch_session_topic_id_error,
)
"""Errors of the session only; the next round opens another."""


@dataclass(slots=True)
class Followed:
    """One partition that this fetcher pulls for."""

    partition: Partition
    ready_at_ms: MonotonicMs = MonotonicMs(0)
    backoff_ms: int = BACKOFF_MIN_MS
    asks_offsets: bool = False
    lags: bool = False
    """Whether the leader had committed more, when it last said so, than we had then: we are not in sync."""
    asked: FetchPartition | None = None
    """What was asked for it last; the same object as long as that has not changed."""
    _position: FetchPosition | None = None
    _seen_steps: int = -1
    _asked_at: FetchPosition | None = None

    def position(self) -> FetchPosition | None:
        """Where to fetch; None if this replica does not. The same object while the partition has had no step,
        so that a round looks at idle partitions only briefly.
        """
        steps = self.partition.log_guard.steps
        if steps != self._seen_steps:
            self._position = self.partition.follower_append.fetch_position()
            self._seen_steps = steps  # of before: a step since then is seen in the next round
        return self._position

    def ask(self, position: FetchPosition, bytes_max: int) -> FetchPartition:
        """What to ask the leader for it now."""
        partition, asked = self.partition, self.asked
        if asked is not None and position is self._asked_at and asked.partition_max_bytes == bytes_max:
            return asked
        self._asked_at = position
        if (
            asked is not None
            and asked.fetch_offset == position.fetch_offset
            and asked.current_leader_epoch == position.leader_epoch
            and asked.last_fetched_epoch == position.last_fetched_epoch
            and asked.log_start_offset == partition.log_start_offset
            and asked.partition_max_bytes == bytes_max
        ):
            return asked
        self.asked = asked = FetchPartition(
            partition=partition.topic_partition.partition,
            current_leader_epoch=position.leader_epoch,
            fetch_offset=position.fetch_offset,
            last_fetched_epoch=position.last_fetched_epoch,
            log_start_offset=partition.log_start_offset,
            partition_max_bytes=bytes_max,
        )
        return asked


Asked = dict[tuple[TopicId, int], tuple[Followed, FetchPosition]]
"""By topic id and number."""

Conversation = Generator[CallBroker, Any, int]
"""A round, as a part of a loop: returns the milliseconds to pause before the next round."""


class Fetcher:
    """Pulls from one leader for all partitions that follow it. One round at a time."""

    def __init__(
        self,
        *,
        broker_id: BrokerId,
        broker_epoch: Callable[[], BrokerEpoch],
        leader: BrokerId,
        find_node: Callable[[BrokerId], Node | None],
        config: BrokerConfig,
        clock: Clock,
        guard: Guard,
        doubts: DoubtedLeaders,
        throttle: ReplicationThrottle | None = None,
        lane: int = 0,
    ) -> None:
        """``lane``: which connection to the leader is this fetcher's."""
        self.leader = leader
        self._doubts = doubts
        self._throttle = throttle
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._find_node = find_node
        self._lane = lane
        self._config = config
        self._clock = clock
        self._guard = guard
        self._followed: dict[TopicPartition, Followed] = {}
        self._session = SessionWithLeader()
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

    # The round

    def round(self) -> Conversation:
        """Ask once and hand out the reply."""
        asked = self._positions()
        if not asked:
            return self._pause_ms()
        node = self._find_node(self.leader)
        if node is None:
            return self._unreachable(asked, "its address is not known yet")
        try:
            yield from self._answer_offset_questions(node, asked)
            if not asked:
                return 0
            response = yield CallBroker(node, self._request(asked), self._timeout_ms(), self._lane)
        except OSError as error:
            self._doubts.on_connection_error(self.leader, node.epoch, error)
            return self._unreachable(asked, str(error))
        except WireError as error:
            return self._unreachable(asked, str(error))
        self._doubts.on_answer(self.leader)
        self._unreachable_backoff_ms = BACKOFF_MIN_MS
        self._take(asked, response)
        return 0

    def _positions(self) -> Asked:
        now_ms = self._clock.monotonic_ms()
        with self._guard:
            ready = [followed for followed in self._followed.values() if followed.ready_at_ms <= now_ms]
        positions: Asked = {}
        for followed in ready:
            if followed.lags and self._is_held_back(followed):
                continue
            position = followed.position()
            if position is not None:
                partition = followed.partition
                positions[partition.topic_id, partition.topic_partition.partition] = (followed, position)
        return positions

    def _is_held_back(self, followed: Followed) -> bool:
        return self._throttle is not None and self._throttle.holds_back(followed.partition.topic_partition)

    def _request(self, asked: Asked) -> FetchRequest:
        bytes_max = self._config.get_int("replica.fetch.max.bytes")
        wanted: dict[tuple[TopicId, int], FetchPartition] = {}
        names: dict[TopicId, str] = {}
        for key, (followed, position) in asked.items():
            names[key[0]] = followed.partition.topic_partition.topic
            wanted[key] = followed.ask(position, bytes_max)
        request = FetchRequest(
            replica_id=self._broker_id,
            replica_epoch=self._broker_epoch(),
            max_wait_ms=self._config.get_int("replica.fetch.wait.max.ms"),
            min_bytes=self._config.get_int("replica.fetch.min.bytes"),
            max_bytes=self._config.get_int("replica.fetch.response.max.bytes"),
        )
        self._session.put_into(request, wanted, names)
        return request

    def _take(self, asked: Asked, response: FetchResponse) -> None:
        self._session.on_response(response)
        if response.error_code in SESSION_ERRORS:
            logger.info("leader %d: %s; asking for everything again", self.leader, response.error_code.name)
            return
        if response.error_code is not ErrorCode.none:
            for followed, position in asked.values():
                followed.partition.follower_append.on_fetch_error(position.leader_epoch, response.error_code)
            return
        silent = dict(asked)
        for topic in response.responses:
            for data in topic.partitions:
                known = silent.pop((topic.topic_id, data.partition_index), None)
                if known is not None and not self._take_carefully(known[0], known[1], data):
                    # The leader thinks that we know now what it said.
                    self._session.begin_again()
        for followed, _ in silent.values():
            followed.backoff_ms = BACKOFF_MIN_MS

    def _take_carefully(self, followed: Followed, position: FetchPosition, data: FetchPartitionData) -> bool:
        """One partition's trouble must not keep the others of this leader from being replicated."""
        try:
            return self._take_partition(followed, position, data)
        except Exception:
            logger.exception("%s: its part of a fetch reply failed", followed.partition.topic_partition)
            self.back_off(followed.partition)
            return False

    def _take_partition(self, followed: Followed, position: FetchPosition, data: FetchPartitionData) -> bool:
        """Whether what the leader said is what we now know."""
        partition = followed.partition
        if data.error_code is not ErrorCode.none:
            partition.follower_append.on_fetch_error(position.leader_epoch, data.error_code)
            return True
        followed.backoff_ms = BACKOFF_MIN_MS
        if data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
            diverging = Diverging(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            logger.info("%s: our log parts from the leader's, %s", partition.topic_partition, diverging)
            partition.follower_append.on_diverging(
                position.leader_epoch, position.fetch_offset, diverging, data.log_start_offset
            )
            return True
        try:
            records = read_parts(data.records)
            batches = check_replicated(records) if records else []
        except CorruptBatch as error:
            logger.warning("%s: the leader sent a corrupt batch: %s", partition.topic_partition, error)
            partition.follower_append.on_fetch_error(position.leader_epoch, ErrorCode.corrupt_message)
            return False
        taken = partition.follower_append.append(
            records,
            batches,
            leader_epoch=position.leader_epoch,
            fetch_offset=position.fetch_offset,
            leader_high_watermark=data.high_watermark,
            leader_log_start_offset=data.log_start_offset,
        )
        self._note_lag(followed, data.high_watermark, len(records))
        return taken

    def _note_lag(self, followed: Followed, leader_high_watermark: int, size_bytes: int) -> None:
        """Whether we are in sync now; what came while we were not counts against the throttle."""
        partition, lagged = followed.partition, followed.lags
        followed.lags = leader_high_watermark > partition.log_end_offset
        throttle = self._throttle
        if throttle is not None and (lagged or followed.lags) and throttle.names(partition.topic_partition):
            throttle.spend(size_bytes)

    def _answer_offset_questions(self, node: Node, asked: Asked) -> Generator[CallBroker, Any, None]:
        """For partitions whose fetch offset was out of range, or that must not fetch before they know: where
        does the leader's log start, on its disk, and end?
        """
        for key, (followed, position) in list(asked.items()):
            if not (followed.asks_offsets or position.asks_first):
                continue
            del asked[key]
            topic_partition = followed.partition.topic_partition
            start = yield from self._leader_offset(node, topic_partition, position, EARLIEST_LOCAL_TIMESTAMP)
            end = yield from self._leader_offset(node, topic_partition, position, LATEST_TIMESTAMP)
            followed.asks_offsets = False
            try:
                error = ErrorCode(start.error_code or end.error_code)
                producers, history = taken_over(start.producers), _history_before(start)
            except (CorruptSnapshot, ValueError) as damage:
                logger.warning("%s: the leader sent a damaged beginning: %s", topic_partition, damage)
                error, producers, history = ErrorCode.corrupt_message, None, None
            if error is not ErrorCode.none:
                followed.partition.follower_append.on_fetch_error(position.leader_epoch, error)
            else:
                followed.partition.follower_append.on_leader_offsets(
                    position.leader_epoch, start.offset, end.offset, producers, history
                )

    def _leader_offset(
        self, node: Node, topic_partition: TopicPartition, position: FetchPosition, timestamp: int
    ) -> Generator[CallBroker, Any, ListOffsetsPartitionResponse]:
        question = ListOffsetsPartition(
            partition_index=topic_partition.partition,
            current_leader_epoch=position.leader_epoch,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            replica_id=self._broker_id,
            topics=[ListOffsetsTopic(name=topic_partition.topic, partitions=[question])],
        )
        response = yield CallBroker(node, request, self._timeout_ms(), self._lane)
        answer: ListOffsetsPartitionResponse = response.topics[0].partitions[0]
        return answer

    def _unreachable(self, asked: Asked, why: str) -> int:
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


def _history_before(start: ListOffsetsPartitionResponse) -> EarlierHistory | None:
    """What the remote store has before the leader's local start; ValueError if its epochs do not grow."""
    if not 0 <= start.log_start_offset < start.offset:
        return None
    epochs = EpochHistory.of(zip(start.epochs[::2], start.epochs[1::2], strict=True))
    return EarlierHistory(start.log_start_offset, epochs.before(start.offset))
