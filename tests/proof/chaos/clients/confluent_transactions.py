"""librdkafka's transactions: producers that commit, abort or stay away, and pipelines from topic to topic."""

import faulthandler
import random
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from chaos.clients.client_parts import Pace, Place, Settings, value_of
from chaos.clients.confluent_client import common_settings, ends_the_client
from chaos.clients.member_parts import HEARTBEAT_MS, POLL_INTERVAL_MS, SESSION_MS
from chaos.clients.transaction_parts import (
    ASK_S,
    COMMITS,
    HELD,
    HOLD_S,
    INSIST_S,
    PIPELINE,
    RECORDS_MAX,
    TIMEOUT_MS,
    Identity,
)
from histories import Writer

BATCH = 40
HANG_S = 10.0
PIPELINE_ABORTS = 0.1


class Transactions:
    """A transactional producer; an error that ends it ends its process, and another life takes its place."""

    def __init__(self, settings: Settings, writer: Writer) -> None:
        self.identity = Identity(settings, writer)
        self._settings, self._writer = settings, writer
        self.producer = Producer(
            {
                **common_settings(settings),
                "transactional.id": self.identity.transactional_id,
                "transaction.timeout.ms": TIMEOUT_MS,
                "linger.ms": 5,
                "debug": "eos,protocol",  # the process's log tells what it waits for
                "log_level": 7,
            }
        )
        op = self.identity.init()
        error = self._insist(lambda: self.producer.init_transactions(ASK_S))
        self.identity.done(op, "init", error)
        if error is not None:
            raise SystemExit(f"{settings.name} does not get its transactional id: {error}")

    def begin(self) -> None:
        self.identity.begin()
        self.producer.begin_transaction()

    def send(self, topic: str, partition: int, rng: random.Random, source: str | None = None) -> None:
        op, record = self.identity.begin_send(topic, partition, rng, source)

        def on_delivery(error: KafkaError | None, message: Any) -> None:
            if error is None:
                self._writer.sent(self.identity.name, op, offset=message.offset())
            else:
                self._writer.unknown(self.identity.name, op, error)

        try:
            self.producer.produce(
                topic, record.value, record.key, partition=partition, on_delivery=on_delivery
            )
        except (KafkaException, BufferError) as error:  # refused before anything was sent
            self._writer.failed(self.identity.name, op, error)

    def add_offsets(self, offsets: list[TopicPartition], group: Any) -> bool:
        """Whether the transaction has these offsets of the group.

        librdkafka waits for ever for the coordinator that it remembers, if that broker has left the cluster
        meanwhile. The watchdog then ends the process, and its log tells where it was.
        """
        faulthandler.dump_traceback_later(INSIST_S + HANG_S, exit=True)
        error = self._insist(lambda: self.producer.send_offsets_to_transaction(offsets, group, ASK_S))
        faulthandler.cancel_dump_traceback_later()
        if error is not None:
            self.identity.trouble(error)
        return error is None

    def end(self, *, commit: bool) -> bool:
        """Whether it is committed. A commit that has to be an abort becomes one."""
        if not commit:
            self.producer.flush(ASK_S)  # what is only queued would be dropped, and has no answer
        op = self.identity.finish(commit=commit)
        how = self.producer.commit_transaction if commit else self.producer.abort_transaction
        error = self._insist(lambda: how(ASK_S))
        self.identity.done(op, "finish", error)
        if error is None:
            return commit
        if commit and error.txn_requires_abort():
            return self.end(commit=False)
        raise SystemExit(f"{self.identity.name} cannot end {self.identity.transaction}: {error}")

    def _insist(self, ask: Callable[[], None]) -> KafkaError | None:
        """Until it is answered for good; the error, if there is one."""
        deadline = time.monotonic() + INSIST_S
        while True:
            try:
                ask()
            except KafkaException as failed:
                error: KafkaError = failed.args[0]
                if error.fatal() or not error.retriable() or time.monotonic() > deadline:
                    return error
            else:
                return None


def produce(settings: Settings, writer: Writer) -> None:
    """Transactions of a few records each, until told to stop."""
    rng, partitions, pace = random.Random(settings.seed), settings.partitions(), Pace(settings.rate)
    ours = Transactions(settings, writer)
    while not settings.is_stopping:
        ours.begin()
        for _ in range(rng.randint(1, RECORDS_MAX)):
            ours.producer.poll(pace.next_in_s())
            while (left_s := pace.left_s()) > 0:
                ours.producer.poll(left_s)
            ours.send(*rng.choice(partitions), rng)
        if rng.random() < HELD:
            _hold(settings, ours.producer)
        ours.end(commit=rng.random() < COMMITS)


def _hold(settings: Settings, producer: Any) -> None:
    until = time.monotonic() + HOLD_S
    while not settings.is_stopping and time.monotonic() < until:
        producer.poll(0.2)


def run_pipeline(settings: Settings, writer: Writer) -> None:
    """Copy each record of the first topic into the second, in transactions with the offsets of the first."""
    rng = random.Random(settings.seed)
    (source, _), (target, partitions) = settings.topics.items()
    ours = Transactions(settings, writer)
    consumer = Consumer(
        {
            **common_settings(settings),
            "group.id": PIPELINE,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": POLL_INTERVAL_MS,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.subscribe([source])
    while not settings.is_stopping:
        batch = _good(ours, consumer.consume(BATCH, 0.3))
        if not batch:
            continue
        begins: dict[Place, int] = {}
        ends: dict[Place, int] = {}
        ours.begin()
        for message in batch:
            place = message.topic(), message.partition()
            begins.setdefault(place, message.offset())
            ends[place] = message.offset() + 1
            value = value_of(message.value(), message.headers())
            ours.send(target, rng.randrange(partitions), rng, value)
        offsets = [TopicPartition(*place, offset) for place, offset in ends.items()]
        has_offsets = ours.add_offsets(offsets, consumer.consumer_group_metadata())
        if not ours.end(commit=has_offsets and rng.random() >= PIPELINE_ABORTS):
            _rewind(ours, consumer, begins)
    consumer.close()


def _good(ours: Transactions, messages: list[Any]) -> list[Any]:
    for message in messages:
        if (error := message.error()) is not None:
            ours.identity.trouble(error)
            if ends_the_client(error):
                raise SystemExit(f"{ours.identity.name} can read no more: {error}")
    return [message for message in messages if message.error() is None]


def _rewind(ours: Transactions, consumer: Any, begins: dict[Place, int]) -> None:
    """To where an aborted transaction began; a partition that was taken away is read on by its new owner."""
    for place, offset in begins.items():
        try:
            consumer.seek(TopicPartition(*place, offset))
        except KafkaException as error:
            ours.identity.trouble(error)
