"""kafka-python as a client."""

import contextlib
import random
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaConnectionError, KafkaError, NodeNotReadyError

from chaos.clients.client_parts import (
    ASK_TIMEOUT_MS,
    FLUSH_S,
    IN_FLIGHT_MAX,
    PLAIN_IN_FLIGHT,
    RE_READ_RECORDS,
    REQUEST_TIMEOUT_MS,
    RETRY_MS,
    Numbers,
    Pace,
    Positions,
    Seen,
    Settings,
    begin_send,
    delivery_timeout_ms,
    known_epoch,
    value_of,
)
from histories import Writer

ADMIN_METADATA_MS = 2_000
"""At which age kafka-python's administrator asks for the brokers again; errors do not make it ask.

Where one broker alone was back when it asked, it knows no other until then, which is five minutes by default.
"""

NOBODY_S = 30.0
"""A reader that reaches nobody for so long ends, and is replaced.

kafka-python asks the brokers that it knows, and never again those that it was given to begin with. If it
heard last of the one that was back first after all had lost their sessions, and that one comes back at
another address, it is lost.
"""


class Reach:
    """Whether there is anybody whom a reader can still ask."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        """When it last reached a broker, whatever the answer."""

    def note(self, error: KafkaError | None) -> None:
        if not isinstance(error, (KafkaConnectionError, NodeNotReadyError)):
            self._at = time.monotonic()
        elif time.monotonic() - self._at > NOBODY_S:
            raise SystemExit(f"it has reached no broker for {NOBODY_S:g} s, and knows no other: {error!r}")


def produce(settings: Settings, writer: Writer) -> None:
    def new_producer() -> KafkaProducer:
        return KafkaProducer(
            **settings.access.kafka_python(),
            client_id=settings.name,
            acks=settings.acks,
            enable_idempotence=settings.idempotent,
            max_in_flight_requests_per_connection=IN_FLIGHT_MAX if settings.idempotent else PLAIN_IN_FLIGHT,
            delivery_timeout_ms=delivery_timeout_ms(settings),
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            retry_backoff_ms=RETRY_MS,
            reconnect_backoff_ms=RETRY_MS,
            reconnect_backoff_max_ms=500,
            max_block_ms=5_000,
            linger_ms=5,
        )

    spent: set[str] = set()

    def refused(op: int, session: str) -> Callable[[Exception], None]:
        def on_error(error: Exception) -> None:
            writer.unknown(settings.name, op, repr(error))
            # An idempotent producer takes some of these for the end (CORRUPT_MESSAGE, after a bit flipped on
            # its way) and answers every later send with the same error.
            if settings.idempotent and not (isinstance(error, KafkaError) and error.retriable):
                spent.add(session)

        return on_error

    rng, partitions, pace = random.Random(settings.seed), settings.partitions(), Pace(settings.rate)
    generation = 0
    producer, numbers = new_producer(), Numbers(f"{settings.name}#{generation}")
    while not settings.is_stopping:
        time.sleep(pace.next_in_s())
        if numbers.session in spent:
            producer.close(timeout=FLUSH_S)
            generation += 1
            producer, numbers = new_producer(), Numbers(f"{settings.name}#{generation}")
        topic, partition = rng.choice(partitions)
        op, record = begin_send(settings, writer, numbers, topic, partition, rng)
        try:
            future = producer.send(
                topic, record.value, record.key, headers=record.headers, partition=partition
            )
        except KafkaError as error:  # no metadata, or no room: it was not taken
            writer.failed(settings.name, op, repr(error))
            continue
        future.add_callback(lambda sent, op=op: writer.sent(settings.name, op, offset=sent.offset))
        future.add_errback(refused(op, numbers.session))
    producer.flush(FLUSH_S)
    producer.close(timeout=5)


def seen_by_kafka_python(record: Any) -> Seen:
    return record.offset, value_of(record.value, record.headers), record.leader_epoch


def re_read(settings: Settings, writer: Writer) -> None:
    consumer = KafkaConsumer(
        **settings.access.kafka_python(),
        client_id=settings.name,
        auto_offset_reset="none",
        enable_auto_commit=False,
        check_crcs=True,
        fetch_max_wait_ms=100,
        request_timeout_ms=REQUEST_TIMEOUT_MS * 2,
        reconnect_backoff_ms=RETRY_MS,
        reconnect_backoff_max_ms=500,
        retry_backoff_ms=RETRY_MS,
    )
    admin = KafkaAdminClient(
        **settings.access.kafka_python(),
        client_id=settings.name,
        request_timeout_ms=ASK_TIMEOUT_MS,
        reconnect_backoff_ms=RETRY_MS,
        reconnect_backoff_max_ms=500,
        retry_backoff_ms=RETRY_MS,
        metadata_max_age_ms=ADMIN_METADATA_MS,
    )
    positions, rng, pace = Positions(settings, writer), random.Random(settings.seed), Pace(settings.rate)
    reach = Reach()
    with contextlib.closing(consumer), contextlib.closing(admin):
        while not settings.is_stopping:
            time.sleep(pace.next_in_s())
            topic, partition = rng.choice(settings.partitions())
            place = TopicPartition(topic, partition)
            op = writer.end(settings.name, topic, partition)
            try:
                consumer.assign([place])
                low = consumer.beginning_offsets([place])[place]
                op = writer.end(settings.name, topic, partition)
                high = consumer.end_offsets([place])[place]
                writer.ended(settings.name, op, high)
                op = writer.end(settings.name, topic, partition)
                told = admin.list_partition_offsets({place: OffsetSpec.LATEST})[place]
                writer.ended(settings.name, op, told.offset, leader_epoch=known_epoch(told.leader_epoch))
                if low < high:
                    start = max(low, high - 20) if rng.random() < 0.5 else rng.randrange(low, high)
                    consumer.seek(place, start)
                    positions.seek(topic, partition, start)
                    got = consumer.poll(timeout_ms=500, max_records=RE_READ_RECORDS).get(place, [])
                    if got:
                        positions.take({(topic, partition): [seen_by_kafka_python(one) for one in got]})
                reach.note(None)
            except KafkaError as error:
                writer.unknown(settings.name, op, repr(error), what="end")
                reach.note(error)
