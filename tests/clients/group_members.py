"""Members of groups, each with a thread that polls, as an application would."""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from confluent_kafka import Consumer, KafkaError

from tests.waiting import until

POLL_S = 0.05


class Owner(Protocol):
    """A member of whichever client."""

    @property
    def owned(self) -> set[tuple[str, int]]:
        """Topic and partition of each partition that it has now."""


class Leaving(ABC):
    """A context manager that leaves its group at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    @abstractmethod
    def leave(self) -> None:
        """End the member's thread, and tell the coordinator."""


class Member(Leaving):
    """A librdkafka consumer that subscribes, and keeps what happens to it.

    Its own thread alone may use the consumer: a second thread that calls it waits without letting others run.
    """

    def __init__(self, cluster: Any, group: str, topics: list[str], **settings: Any) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 200,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 2,
                **settings,
            }
        )
        self.values: Counter[bytes] = Counter()
        self.rebalances = 0
        self.fatal: KafkaError | None = None
        self._owned: set[tuple[str, int]] = set()
        self._stop = threading.Event()
        self.consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke)
        self._thread = threading.Thread(target=self._poll, name=f"member of {group}")
        self._thread.start()

    @property
    def owned(self) -> set[tuple[str, int]]:
        """Topic and partition of each partition that it has now."""
        return set(self._owned)

    def leave(self) -> None:
        self.cease()
        self.consumer.close()

    def cease(self) -> None:
        """Poll no more."""
        self._stop.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._stop.is_set():
            message = self.consumer.poll(POLL_S)
            if message is None:
                continue
            if message.error() is None:
                self.values[message.value()] += 1
            elif message.error().code() == KafkaError._FATAL:
                self.fatal = message.error()
                return

    def _on_assign(self, consumer: Consumer, partitions: list[Any]) -> None:
        self.rebalances += 1
        self._owned |= {(one.topic, one.partition) for one in partitions}

    def _on_revoke(self, consumer: Consumer, partitions: list[Any]) -> None:
        self._owned -= {(one.topic, one.partition) for one in partitions}


def all_of(topic: str, partitions: int) -> set[tuple[str, int]]:
    return {(topic, number) for number in range(partitions)}


def until_shared(members: Sequence[Owner], partitions: set[tuple[str, int]]) -> None:
    """Wait until each partition has exactly one owner, and each member has at least one."""

    def is_shared() -> bool:
        owned = [member.owned for member in members]
        return all(owned) and sorted(one for part in owned for one in part) == sorted(partitions)

    until(is_shared, lambda: f"{partitions} shared: {[member.owned for member in members]}")
