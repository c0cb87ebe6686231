"""The clients: plain producers that note what they saw, and those that commit without pause."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from histories.model import FinalRead, Send

FLUSH_S: Final = 60.0
COMMIT_S: Final = 0.02
PAUSE_S: Final = 0.01
"""Between two records of a producer for each partition."""

REFRESH_MS: Final = 500
"""How often a producer asks for metadata: then it knows soon which brokers are listed."""


def common(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "error_cb": lambda _error: None,
        "topic.metadata.refresh.interval.ms": REFRESH_MS,
        "reconnect.backoff.max.ms": 500,
    }


class PlainProducer:
    """librdkafka without idempotence, with one request in flight."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, name: str, acks: int) -> None:
        self.sends: list[Send] = []
        self._topic, self._partitions, self._name, self._acks = topic, partitions, name, acks
        self._producer = Producer(
            {
                **common(bootstrap),
                "acks": acks,
                "enable.idempotence": False,
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": 5,
            }
        )

    def run(self, stop: threading.Event) -> None:
        for number in itertools.count():
            if stop.is_set():
                break
            for partition in range(self._partitions):
                self._send(partition, number)
            self._producer.poll(PAUSE_S)
        self._producer.flush(FLUSH_S)

    def _send(self, partition: int, number: int) -> None:
        send = Send(
            self._name,
            self._topic,
            partition,
            f"{self._topic}/{partition}/{self._name}/{number}",
            self._acks,
            f"{self._name}/{partition}",
            number,
            is_idempotent=False,
            invoked_ns=time.monotonic_ns(),
            in_flight=1,
        )
        self.sends.append(send)

        def done(error: Any, message: Any) -> None:
            send.done_ns = time.monotonic_ns()
            if error is None:
                send.outcome, send.offset = "ok", message.offset()
            else:
                send.error = str(error)

        self._producer.produce(self._topic, send.value.encode(), partition=partition, on_delivery=done)

    @property
    def longest_gap_s(self) -> float:
        """Between two acknowledgements for one partition."""
        gaps = [0.0]
        for partition in range(self._partitions):
            times = sorted(one.done_ns for one in self.sends if one.partition == partition and one.is_ok)
            gaps += [(after - before) / 1e9 for before, after in itertools.pairwise(times)]
        return max(gaps)


class Committer:
    """Calls ``commit`` again and again; ``times`` has when it succeeded."""

    def __init__(self, commit: Callable[[], None]) -> None:
        self._commit = commit
        self.times: list[float] = []

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._commit()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                continue
            self.times.append(time.monotonic())
            time.sleep(COMMIT_S)

    def longest_gap_s(self, since: float, until: float) -> float:
        times = [since, *(one for one in self.times if since < one < until), until]
        return max(after - before for before, after in itertools.pairwise(times))


@contextmanager
def transactional(bootstrap: str, topic: str, name: str) -> Iterator[Committer]:
    """Transactions of one record."""
    producer = Producer({**common(bootstrap), "transactional.id": name, "linger.ms": 0})
    _patiently(lambda: producer.init_transactions(FLUSH_S))

    def commit() -> None:
        producer.begin_transaction()
        producer.produce(topic, b"x", partition=0)
        _patiently(lambda: producer.commit_transaction(FLUSH_S))

    yield Committer(commit)


@contextmanager
def group(bootstrap: str, topic: str, name: str) -> Iterator[Committer]:
    """Commits of one member, which has the topic's partition 0 without asking the group."""
    consumer = Consumer({**common(bootstrap), "group.id": name, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    offsets = itertools.count(1)
    with ExitStack() as undo:
        undo.callback(consumer.close)

        def commit() -> None:
            place = TopicPartition(topic, 0, next(offsets))
            _patiently(lambda: consumer.commit(offsets=[place], asynchronous=False))

        yield Committer(commit)


def _patiently(step: Callable[[], Any]) -> None:
    deadline = time.monotonic() + FLUSH_S
    while True:
        try:
            step()
        except KafkaException as error:
            if time.monotonic() > deadline or not (
                error.args[0].retriable() or error.args[0].name() in RETRIED
            ):
                raise
            time.sleep(COMMIT_S)
        else:
            return


RETRIED: Final = (
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "_WAIT_COORD",
    "_TRANSPORT",
    "_TIMED_OUT",
    "REQUEST_TIMED_OUT",
)
"""What a consumer's commit is told while its coordinator changes."""


def read_all(bootstrap: str, topic: str, partitions: int) -> list[FinalRead]:
    """Everything, as it is at the end."""
    consumer = Consumer(
        {**common(bootstrap), "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    finals = []
    try:
        for partition in range(partitions):
            records: list[tuple[int, str]] = []
            consumer.assign([TopicPartition(topic, partition, 0)])
            while (message := consumer.poll(FLUSH_S)) is not None and message.error() is None:
                records.append((message.offset(), message.value().decode()))
            end = records[-1][0] + 1 if records else 0
            finals.append(FinalRead(topic, partition, 0, end, records, time.monotonic_ns()))
    finally:
        consumer.close()
    return finals
