"""Members of groups by kafka-python and aiokafka, alike to a test: each polls in a thread of its own.

Only that thread may use the consumer, so ``commit`` and ``committed`` reach it through a queue.
"""

import asyncio
import threading
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

import kafka
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from tests.clients.group_members import Leaving

POLL_MS = 50
CALL_S = 30.0
WITHOUT_ASSIGNMENT_S = 1.0
SETTINGS = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 200,  # a heartbeat tells of a rebalance, by default after three seconds
    "retry_backoff_ms": 50,
}


class PythonMember(Leaving):
    """A consumer that subscribes to a topic, or is assigned its partition 0 as an outsider of the group.

    A failure of its thread is raised by ``leave``.
    """

    def __init__(self, cluster: Any, group: str, topic: str, outsider: bool = False) -> None:
        self.values: Counter[bytes] = Counter()
        self._owned: set[tuple[str, int]] = set()
        self._settings = {**SETTINGS, "bootstrap_servers": cluster.bootstrap_servers.split(",")}
        self._settings["group_id"] = group
        self._topic, self._outsider = topic, outsider
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"member of {group}")
        self._thread.start()

    @property
    def owned(self) -> set[tuple[str, int]]:
        """Topic and partition of each partition that it has now."""
        return self._owned

    def leave(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def commit(self, topic: str, partition: int, offset: int, note: str = "") -> None:
        """Raises what the client raises."""
        self._ask(lambda: self._commit(topic, partition, offset, note))

    def committed(self, topic: str, partition: int) -> int | None:
        found: int | None = self._ask(lambda: self._committed(topic, partition))
        return found

    def _ask(self, call: Callable[[], Any]) -> Any:
        answer: Future[Any] = Future()
        self._calls.put((call, answer))
        return answer.result(CALL_S)

    def _run(self) -> None:
        try:
            self._begin()
            try:
                while not self._stop.is_set():
                    self._answer_calls()
                    self.values.update(self._poll())
                    self._owned = self._assignment()
            finally:
                self._end()
        except BaseException as failure:  # noqa: BLE001 - leave() raises it
            self._failure = failure

    def _answer_calls(self) -> None:
        while True:
            try:
                call, answer = self._calls.get_nowait()
            except Empty:
                return
            try:
                answer.set_result(call())
            except Exception as error:  # noqa: BLE001 - it is the answer
                answer.set_exception(error)

    @abstractmethod
    def _begin(self) -> None:
        """Make the consumer, and subscribe or assign."""

    @abstractmethod
    def _poll(self) -> list[bytes]:
        """Values that arrived within ``POLL_MS``."""

    @abstractmethod
    def _assignment(self) -> set[tuple[str, int]]:
        """What ``owned`` is to be."""

    @abstractmethod
    def _commit(self, topic: str, partition: int, offset: int, note: str) -> None:
        """As ``commit``, in the thread."""

    @abstractmethod
    def _committed(self, topic: str, partition: int) -> int | None:
        """As ``committed``, in the thread."""

    @abstractmethod
    def _end(self) -> None:
        """Close the consumer, which leaves the group."""


class KafkaPythonMember(PythonMember):
    """Release 3.0 loses an assignment that comes between two polls. Then it joins again."""

    def _begin(self) -> None:
        self._consumer = kafka.KafkaConsumer(**self._settings)
        if self._outsider:
            self._consumer.assign([kafka.TopicPartition(self._topic, 0)])
        else:
            self._subscribe()

    def _subscribe(self) -> None:
        self._consumer.subscribe([self._topic])
        self._patient_until = time.monotonic() + WITHOUT_ASSIGNMENT_S

    def _poll(self) -> list[bytes]:
        polled = self._consumer.poll(timeout_ms=POLL_MS)
        if self._consumer.assignment():
            self._patient_until = time.monotonic() + WITHOUT_ASSIGNMENT_S
        elif time.monotonic() > self._patient_until:
            self._consumer.unsubscribe()
            self._subscribe()
        return [record.value for records in polled.values() for record in records]

    def _assignment(self) -> set[tuple[str, int]]:
        return {(one.topic, one.partition) for one in self._consumer.assignment()}

    def _commit(self, topic: str, partition: int, offset: int, note: str) -> None:
        wanted = kafka.structs.OffsetAndMetadata(offset, note, -1)
        self._consumer.commit({kafka.TopicPartition(topic, partition): wanted})

    def _committed(self, topic: str, partition: int) -> int | None:
        found: int | None = self._consumer.committed(kafka.TopicPartition(topic, partition))
        return found

    def _end(self) -> None:
        self._consumer.close()


class AiokafkaMember(PythonMember):
    """Its event loop runs in the member's thread, as long as the member polls."""

    def _begin(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        self._consumer = AIOKafkaConsumer(
            **self._settings,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        if self._outsider:
            self._consumer.assign([TopicPartition(self._topic, 0)])
        else:
            self._consumer.subscribe([self._topic])
        await self._consumer.start()

    def _poll(self) -> list[bytes]:
        polled = self._loop.run_until_complete(self._consumer.getmany(timeout_ms=POLL_MS))
        return [record.value for records in polled.values() for record in records]

    def _assignment(self) -> set[tuple[str, int]]:
        return {(one.topic, one.partition) for one in self._consumer.assignment()}

    def _commit(self, topic: str, partition: int, offset: int, note: str) -> None:
        wanted = {TopicPartition(topic, partition): OffsetAndMetadata(offset, note)}
        self._loop.run_until_complete(self._consumer.commit(wanted))

    def _committed(self, topic: str, partition: int) -> int | None:
        found: int | None = self._loop.run_until_complete(
            self._consumer.committed(TopicPartition(topic, partition))
        )
        return found

    def _end(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()
