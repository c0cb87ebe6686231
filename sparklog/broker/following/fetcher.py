"""Following: one fetcher per leader, which pulls for all partitions that follow that leader.

A fetcher's ``round`` asks the leader and hands each partition its part of the reply. It is a part of a loop
(``model.loops``; ``fetchers`` has the loop), so that threads wait for the leader, and a simulation lets other
things happen in between. The partition decides whether a reply still counts: its epoch and its end may have
changed meanwhile.
"""

import logging
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, Final

from sparklog.broker.following.followed import BACKOFF_MIN_MS, Followed, FollowedPartitions, Wanted
from sparklog.broker.following.session_with_leader import Key, SessionWithLeader
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.partition.partition import Partition
from sparklog.broker.throttles import ReplicationThrottle
from sparklog.core.producers.producer_state import CorruptSnapshot, taken_over
from sparklog.core.replication.epoch_history import EarlierHistory, EpochHistory
from sparklog.core.replication.follower import FetchPosition
from sparklog.core.replication.leader import Diverging
from sparklog.core.replication.session_slots import LeanPosition
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import CorruptBatch, ErrorCode, KafkaError, WireError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.loops import CallBroker
from sparklog.model.parts import read_parts
from sparklog.model.ports import Guard
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock
from sparklog.records.validate import check_replicated
from sparklog.wire.messages.data.fetch import (
    NO_SESSION,
    OPENING_EPOCH,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest, LeanFetchResponse, unpacked_answers
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

logger: Final = logging.getLogger(__name__)

SESSION_ERRORS: Final = (
    ErrorCode.fetch_session_id_not_found,
    ErrorCode.invalid_fetch_session_epoch,
    ErrorCode.fetch_session_topic_id_error,
)
"""Errors of the session only; the next round opens another."""


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
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._find_node = find_node
        self._lane = lane
        self._config = config
        self._clock = clock
        self._followed = FollowedPartitions(guard, throttle)
        self._session = SessionWithLeader()
        self._unreachable_backoff_ms = BACKOFF_MIN_MS

    # From any thread

    def add(self, partition: Partition) -> None:
        self._followed.add(partition)

    def remove(self, partition: Partition) -> None:
        self._followed.remove(partition)

    def ask_leader_offsets(self, partition: Partition) -> None:
        self._followed.ask_leader_offsets(partition)

    def back_off(self, partition: Partition) -> None:
        longest_ms = self._config.get_int("replica.fetch.backoff.ms")
        self._followed.back_off(partition, self._clock.monotonic_ms(), longest_ms)

    # The round

    def round(self) -> Conversation:
        """Ask once and hand out the reply."""
        self._look()
        followed = self._followed
        if not (followed.wanted or followed.asking):
            longest_ms = self._config.get_int("replica.fetch.wait.max.ms")
            return followed.pause_ms(self._clock.monotonic_ms(), longest_ms)
        node = self._find_node(self.leader)
        if node is None:
            return self._unreachable("its address is not known yet")
        try:
            for asking in followed.asking:
                yield from self._answer_offset_questions(node, *asking)
            if not followed.wanted:
                return 0
            take = yield from self._fetch(node)
        except OSError as error:
            self._doubts.on_connection_error(self.leader, node.epoch, error)
            return self._unreachable(str(error))
        except WireError as error:
            return self._unreachable(str(error))
        self._doubts.on_answer(self.leader)
        self._unreachable_backoff_ms = BACKOFF_MIN_MS
        take()
        return 0

    def _fetch(self, node: Node) -> Generator[CallBroker, Any, Callable[[], None]]:
        """Ask in the lean form where that is enough, otherwise by Fetch; returns what hands out the reply."""
        changed = list(self._followed.take_changes())
        positions = self._session.lean_positions(self._followed.wanted, changed)
        if positions is not None:
            try:
                lean = yield CallBroker(node, self._lean_request(positions), self._timeout_ms(), self._lane)
            except KafkaError as error:
                if error.code is not ErrorCode.unsupported_version:
                    raise
                self._session.on_lean_refused()
            else:
                return partial(self._take_lean, lean)
        response = yield CallBroker(node, self._request(changed), self._timeout_ms(), self._lane)
        return partial(self._take, response)

    def _look(self) -> None:
        self._followed.look(self._clock.monotonic_ms(), self._config.get_int("replica.fetch.max.bytes"))

    def _lean_request(self, positions: list[LeanPosition]) -> LeanFetchRequest:
        request = LeanFetchRequest(
            session_id=NO_SESSION,
            session_epoch=OPENING_EPOCH,
            broker_epoch=self._broker_epoch(),
            max_wait_ms=self._config.get_int("replica.fetch.wait.max.ms"),
            min_bytes=self._config.get_int("replica.fetch.min.bytes"),
            max_bytes=self._config.get_int("replica.fetch.response.max.bytes"),
        )
        self._session.put_into_lean(request, positions)
        return request

    def _request(self, changed: Iterable[Key]) -> FetchRequest:
        request = FetchRequest(
            replica_id=self._broker_id,
            replica_epoch=self._broker_epoch(),
            max_wait_ms=self._config.get_int("replica.fetch.wait.max.ms"),
            min_bytes=self._config.get_int("replica.fetch.min.bytes"),
            max_bytes=self._config.get_int("replica.fetch.response.max.bytes"),
        )
        self._session.put_into(request, self._followed.wanted, changed)
        return request

    def _take(self, response: FetchResponse) -> None:
        self._session.on_response(response)
        if not self._is_answered(response.error_code):
            return
        wanted = self._followed.wanted
        named: set[Followed] = set()
        for topic in response.responses:
            for data in topic.partitions:
                known = wanted.get((topic.topic_id, data.partition_index))
                if known is None or known.followed in named:
                    continue
                named.add(known.followed)
                if not self._take_carefully(known, data):
                    # The leader thinks that we know now what it said.
                    self._session.begin_again()
        self._followed.forgive(named)

    def _take_lean(self, response: LeanFetchResponse) -> None:
        self._session.on_lean_response(response)
        if response.asks_by_fetch or not self._is_answered(response.error_code):
            return
        records = memoryview(read_parts(response.records))
        try:
            answers = unpacked_answers(response.answers, len(records))
        except WireError as error:
            logger.warning("leader %d sent a fetch reply that is no use: %s", self.leader, error)
            self._session.begin_again()
            return
        named: set[Followed] = set()
        start = 0
        for slot, error_code, high_watermark, log_start_offset, size_bytes in answers:
            batches, start = records[start : start + size_bytes], start + size_bytes
            key = self._session.key_of(slot)
            known = None if key is None else self._followed.wanted.get(key)
            if known is None or known.followed in named:
                self._session.begin_again()  # the leader means something else by its slots
                continue
            named.add(known.followed)
            data = FetchPartitionData(
                partition_index=known.question.partition,
                error_code=error_code,
                high_watermark=high_watermark,
                log_start_offset=log_start_offset,
                records=(batches,) if size_bytes else (),
            )
            if not self._take_carefully(known, data):
                self._session.begin_again()
        self._followed.forgive(named)

    def _is_answered(self, error: ErrorCode) -> bool:
        """False after an error of the session, or of the whole fetch, which counts for all partitions."""
        if error in SESSION_ERRORS:
            logger.info("leader %d: %s; asking for everything again", self.leader, error.name)
        elif error is not ErrorCode.none:
            for followed, position, _ in self._followed.wanted.values():
                followed.partition.follower_append.on_fetch_error(position.leader_epoch, error)
        return error is ErrorCode.none

    def _take_carefully(self, known: Wanted, data: FetchPartitionData) -> bool:
        """One partition's trouble must not keep the others of this leader from being replicated."""
        try:
            return self._take_partition(known.followed, known.position, data)
        except Exception:
            logger.exception("%s: its part of a fetch reply failed", known.followed.partition.topic_partition)
            self.back_off(known.followed.partition)
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
        self._followed.note_lag(followed, data.high_watermark, len(records))
        return taken

    def _answer_offset_questions(
        self, node: Node, followed: Followed, position: FetchPosition
    ) -> Generator[CallBroker, Any, None]:
        """For a partition whose fetch offset was out of range, or that must not fetch before it knows: where
        does the leader's log start, on its disk, and end?
        """
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

    def _unreachable(self, why: str) -> int:
        count = len(self._followed.wanted) + len(self._followed.asking)
        logger.info("leader %d cannot be fetched from for %d partitions: %s", self.leader, count, why)
        pause_ms = self._unreachable_backoff_ms
        self._unreachable_backoff_ms = min(2 * pause_ms, self._config.get_int("replica.fetch.backoff.ms"))
        return pause_ms

    def _timeout_ms(self) -> int:
        wait_ms = self._config.get_int("replica.fetch.wait.max.ms")
        return wait_ms + self._config.get_int("replica.socket.timeout.ms")


def _history_before(start: ListOffsetsPartitionResponse) -> EarlierHistory | None:
    """What the remote store has before the leader's local start; ValueError if its epochs do not grow."""
    if not 0 <= start.log_start_offset < start.offset:
        return None
    epochs = EpochHistory.of(zip(start.epochs[::2], start.epochs[1::2], strict=True))
    return EarlierHistory(start.log_start_offset, epochs.before(start.offset))
