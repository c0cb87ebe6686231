"""A producer's requests to one leader: several in flight at once, answered in order.

Each leader has its own thread, so that a leader that is slow to take bytes delays no other. The thread
borrows a connection while it has batches to send, and discards it at the first error. All batches in flight
then return to the queues, and the router finds their leaders again.
"""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.client.calls.connections import BrokerConnection, PendingReply
from sparklog.client.cluster import ClusterClient
from sparklog.client.producing.produce_ledger import ProduceLedger
from sparklog.client.producing.produce_queue import QueuedBatch
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.records.payload_kinds import ALL_PAYLOADS
from sparklog.wire.messages.data.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)

REQUESTS_IN_FLIGHT_MAX: Final = 5
"""Enough to keep a leader busy while answers travel; a partition has at most as many batches in flight."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """The open transaction of which a producer's batches are: it has its producer id from elsewhere."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class ProduceTerms:
    """How batches are to be written: the acks asked for, and how long a leader may wait for them."""

    acks: int
    request_timeout_ms: int
    transaction: Transaction | None = None


@dataclass(slots=True)
class _OnItsWay:
    batches: list[QueuedBatch]
    reply: PendingReply


class LeaderSender:
    """Sends to one broker. ``start`` begins its thread; it ends when the ledger is closing."""

    def __init__(
        self, cluster: ClusterClient, ledger: ProduceLedger, broker_id: BrokerId, terms: ProduceTerms
    ) -> None:
        self.broker_id = broker_id
        self._cluster = cluster
        self._ledger = ledger
        self._terms = terms
        self._connection: BrokerConnection | None = None
        self._on_their_way: deque[_OnItsWay] = deque()
        self._thread = threading.Thread(target=self._run, name=f"sparklog-produce-{broker_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def close(self) -> None:
        """Wake the thread if it waits for a leader; from any thread, with the ledger closing."""
        connection = self._connection
        if connection is not None:
            connection.close()

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except Exception as error:  # noqa: BLE001 (flush raises it)
            self._ledger.crash(error)
        finally:
            self._hang_up()

    def _turn(self) -> bool:
        """Send what can be sent; if nothing can, or enough is on its way, take the oldest answer."""
        with self._ledger.changed:
            if self._ledger.is_closing:
                return False
            batches = [] if self._is_full else self._ledger.take_locked(self.broker_id)
            if not batches and not self._on_their_way:
                self._ledger.changed.wait()
                return True
        if batches:
            self._send(batches)
        else:
            self._take_answer()
        return True

    @property
    def _is_full(self) -> bool:
        return len(self._on_their_way) >= REQUESTS_IN_FLIGHT_MAX

    def _send(self, batches: list[QueuedBatch]) -> None:
        if self._connection is None and not self._dial():
            self._ledger.on_lost(batches, ErrorCode.leader_not_available)
            return
        assert self._connection is not None
        request = _produce_request(batches, self._terms)
        try:
            if self._terms.acks == 0:
                self._connection.send_one_way(request)
            else:
                self._on_their_way.append(_OnItsWay(batches, self._connection.send(request)))
                return
        except OSError:
            self._lose([batches])
            return
        except KafkaError as error:
            for batch in reversed(batches):
                self._ledger.on_answer(batch, error.code, -1, error.message)
            return
        for batch in batches:
            self._ledger.on_written(batch, -1)

    def _take_answer(self) -> None:
        oldest = self._on_their_way[0]
        try:
            response: ProduceResponse = oldest.reply.result(self._terms.request_timeout_ms)
        except OSError:
            self._lose()
            return
        self._on_their_way.popleft()
        answers = _answers(response)
        for batch in oldest.batches:
            answer = answers.get(batch.topic_partition)
            if answer is None:
                self._ledger.on_answer(batch, ErrorCode.unknown_server_error, -1, "the leader did not say")
            else:
                words = answer.error_message or ""
                self._ledger.on_answer(batch, answer.error_code, answer.base_offset, words)

    def _dial(self) -> bool:
        seen = self._cluster.latest_metadata  # looked up each time: a broker may restart at another address
        if self.broker_id not in seen.brokers:
            return False
        deadline = self._cluster.deadline(self._terms.request_timeout_ms)
        try:
            self._connection = self._cluster.borrow(seen.endpoint(self.broker_id), deadline)
        except OSError:
            return False
        return True

    def _lose(self, unsent: Sequence[list[QueuedBatch]] = ()) -> None:
        """Discard the connection: all batches in flight return to the queues."""
        lost = [*(way.batches for way in self._on_their_way), *unsent]
        self._on_their_way.clear()
        self._hang_up()
        self._ledger.on_lost([batch for batches in lost for batch in batches], ErrorCode.network_exception)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._cluster.discard(self._connection)
            self._connection = None


def _produce_request(batches: Sequence[QueuedBatch], terms: ProduceTerms) -> ProduceRequest:
    topics: dict[str, ProduceTopic] = {}
    for batch in batches:
        topic_partition = batch.topic_partition
        topic = topics.setdefault(topic_partition.topic, ProduceTopic(name=topic_partition.topic))
        topic.partition_data.append(
            ProducePartition(index=topic_partition.partition, records=memoryview(batch.data))
        )
    return ProduceRequest(
        transactional_id=None if terms.transaction is None else terms.transaction.transactional_id,
        acks=terms.acks,
        timeout_ms=terms.request_timeout_ms,
        topic_data=list(topics.values()),
        payload_kinds=ALL_PAYLOADS,
    )


def _answers(response: ProduceResponse) -> dict[TopicPartition, ProducePartitionResponse]:
    return {
        TopicPartition(topic.name, partition.index): partition
        for topic in response.responses
        for partition in topic.partition_responses
    }
