"""librdkafka as a client, by confluent-kafka."""

import logging
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from chaos.clients.client_parts import (
    ASK_TIMEOUT_MS,
    FLUSH_S,
    IN_FLIGHT_MAX,
    PLAIN_IN_FLIGHT,
    RE_READ_RECORDS,
    REMEMBERED,
    REQUEST_TIMEOUT_MS,
    RETRY_MS,
    SOCKET_TIMEOUT_MS,
    TAIL_RECORDS,
    Numbers,
    Pace,
    Positions,
    Seen,
    Settings,
    begin_send,
    delivery_timeout_ms,
    known_epoch,
    value_of,
    where_earlier_lives_stopped,
)
from histories import Writer

NOTICE = 5
IDEMPOTENT_LOG = {"debug": "eos", "log_level": 7}
"""The process's log tells why the producer took another epoch."""
TIMED_OUT = re.compile(r"Timed out ProduceRequest in flight \(after (\d+)ms")


def produce(settings: Settings, writer: Writer) -> None:
    fatal: list[KafkaError] = []

    def on_error(error: KafkaError) -> None:
        if error.fatal():
            fatal.append(error)

    def on_time_out(waited_ms: int) -> None:
        writer.timed_out(settings.name, numbers.session, waited_ms)

    def new_producer() -> Producer:
        return Producer(
            {
                **common_settings(settings),
                "acks": settings.acks,
                "enable.idempotence": settings.idempotent,
                "max.in.flight.requests.per.connection": IN_FLIGHT_MAX
                if settings.idempotent
                else PLAIN_IN_FLIGHT,
                "message.timeout.ms": delivery_timeout_ms(settings),
                "request.timeout.ms": REQUEST_TIMEOUT_MS,
                "compression.type": settings.compression,
                "linger.ms": 5,
                **(IDEMPOTENT_LOG if settings.idempotent else log_of_time_outs(on_time_out)),
                "error_cb": on_error,
            }
        )

    def done(op: int) -> Any:
        def on_delivery(error: KafkaError | None, message: Any) -> None:
            if error is None:
                writer.sent(settings.name, op, offset=message.offset() if settings.acks != 0 else None)
            else:
                writer.unknown(settings.name, op, error)

        return on_delivery

    rng, partitions, pace = random.Random(settings.seed), settings.partitions(), Pace(settings.rate)
    generation = 0
    producer, numbers = new_producer(), Numbers(f"{settings.name}#{generation}")
    while not settings.is_stopping:
        producer.poll(pace.next_in_s())
        while (left_s := pace.left_s()) > 0:  # a poll returns when it has told something
            producer.poll(left_s)
        if fatal:
            # The identity is spent: what it still holds is given up, and another begins.
            producer.purge()
            producer.flush(FLUSH_S)
            fatal.clear()
            generation += 1
            producer, numbers = new_producer(), Numbers(f"{settings.name}#{generation}")
        topic, partition = rng.choice(partitions)
        op, record = begin_send(settings, writer, numbers, topic, partition, rng)
        try:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=partition,
                headers=record.headers,
                on_delivery=done(op),
            )
        except (KafkaException, BufferError) as error:  # refused before anything was sent
            writer.failed(settings.name, op, error)
    producer.flush(FLUSH_S)


class TimeOuts(logging.Handler):
    """Calls ``note`` for each produce that had no answer in time, with how long it waited in milliseconds.
    librdkafka sends it again, and tells that in its log alone.
    """

    def __init__(self, note: Callable[[int], None]) -> None:
        super().__init__()
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        found = TIMED_OUT.search(record.getMessage())
        if found is not None:
            self._note(int(found[1]))


def log_of_time_outs(note: Callable[[int], None]) -> dict[str, Any]:
    """Settings of a producer; its polls call ``note``."""
    logger = logging.Logger("librdkafka")
    logger.addHandler(TimeOuts(note))
    return {"logger": logger, "log_level": NOTICE}


def ends_the_client(error: Any) -> bool:
    """Whether librdkafka does nothing more after this; what a consumer polls then has no flag."""
    return bool(error.fatal()) or error.code() == KafkaError._FATAL


def common_settings(settings: Settings) -> dict[str, Any]:
    """Of every client, whatever it does."""
    return {
        **settings.access.confluent(),
        "client.id": settings.name,
        "log_level": 0,
        "error_cb": lambda error: None,
        "reconnect.backoff.ms": RETRY_MS,
        "reconnect.backoff.max.ms": 500,
        "retry.backoff.ms": RETRY_MS,
        "socket.timeout.ms": SOCKET_TIMEOUT_MS,
        "topic.metadata.refresh.interval.ms": 5_000,
    }


def _confluent_consumer(settings: Settings) -> Any:

    return Consumer(
        {
            **common_settings(settings),
            "group.id": settings.name,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": f"read_{settings.isolation or 'committed'}",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
        }
    )


def seen_by_confluent(message: Any) -> Seen:
    return message.offset(), value_of(message.value(), message.headers()), message.leader_epoch()


def tail(settings: Settings, writer: Writer) -> None:
    """Reads everything as it comes, on from where an earlier life of this client stopped."""

    consumer, positions = _confluent_consumer(settings), Positions(settings, writer)
    known = where_earlier_lives_stopped(Path(settings.folder), settings.name)
    for topic, partition in settings.partitions():
        begin = known.get((topic, partition))
        if begin is None:
            low, high = _watermarks(settings, consumer, topic, partition)
            begin = max(low, high - REMEMBERED)
        positions.seek(topic, partition, begin)
    consumer.assign([TopicPartition(*key, offset) for key, offset in positions.at.items()])
    stopped: set[tuple[str, int]] = set()
    while not settings.is_stopping:
        got: dict[tuple[str, int], list[Seen]] = {}
        for message in consumer.consume(TAIL_RECORDS, 0.3):
            key = message.topic(), message.partition()
            if message.error() is None:
                got.setdefault(key, []).append(seen_by_confluent(message))
            elif key in positions.at:
                writer.line(settings.name, "info", "poll", error=str(message.error())[:900])
                stopped.add(key)
        positions.take(got)
        if stopped:
            time.sleep(0.5)
            stopped = {key for key in stopped if not _goes_on(settings, consumer, positions, key)}
    consumer.close()


def _goes_on(settings: Settings, consumer: Any, positions: Positions, key: tuple[str, int]) -> bool:
    """After an error: from the same place, or from the log's start if somebody deleted what was next."""

    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(*key), 5.0, cached=False)
        begin = max(low, positions.at[key])
        consumer.seek(TopicPartition(*key, begin))
    except KafkaException as error:  # nobody leads it, or librdkafka is at it
        settings.writer.line(settings.name, "info", "poll", error=str(error)[:900])
        return False
    if begin > positions.at[key]:
        positions.seek(*key, begin)
    return True


def re_read(settings: Settings, writer: Writer) -> None:
    """Reads pieces from anywhere, again and again, and asks for the ends."""

    consumer, positions = _confluent_consumer(settings), Positions(settings, writer)
    admin = AdminClient(common_settings(settings))
    rng, pace = random.Random(settings.seed), Pace(settings.rate)
    while not settings.is_stopping:
        time.sleep(pace.next_in_s())
        topic, partition = rng.choice(settings.partitions())
        _ask_confluent_for_the_end(settings, writer, admin, topic, partition)
        low, high = _watermarks(settings, consumer, topic, partition)
        if low == high:
            continue
        start = max(low, high - 20) if rng.random() < 0.5 else rng.randrange(low, high)
        positions.seek(topic, partition, start)
        consumer.assign([TopicPartition(topic, partition, start)])
        got = [message for message in consumer.consume(RE_READ_RECORDS, 0.5) if message.error() is None]
        if got:
            positions.take({(topic, partition): [seen_by_confluent(one) for one in got]})
    consumer.close()


def _ask_confluent_for_the_end(
    settings: Settings, writer: Writer, admin: Any, topic: str, partition: int
) -> None:
    """As the leader tells it, and of which epoch that leader is: a consumer is not told the epoch."""

    op = writer.end(settings.name, topic, partition)
    place = TopicPartition(topic, partition)
    try:
        asked = admin.list_offsets({place: OffsetSpec.latest()}, request_timeout=ASK_TIMEOUT_MS / 1_000)
        told = asked[place].result()
    except KafkaException as error:
        writer.unknown(settings.name, op, error, what="end")
        return
    if told.offset < 0:  # librdkafka was not answered, and has no error for it
        writer.unknown(settings.name, op, f"offset {told.offset}", what="end")
    else:
        writer.ended(settings.name, op, told.offset, leader_epoch=known_epoch(told.leader_epoch))


def _watermarks(settings: Settings, consumer: Any, topic: str, partition: int) -> tuple[int, int]:
    """The log's start and its visible end, once somebody tells them. A history has ends of one isolation."""

    writer, is_told = settings.writer, settings.isolation != "uncommitted"
    while not settings.is_stopping:
        op = writer.end(settings.name, topic, partition) if is_told else 0
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 5.0, cached=False)
        except KafkaException as error:
            if is_told:
                writer.unknown(settings.name, op, error, what="end")
            time.sleep(0.2)
        else:
            if is_told:
                writer.ended(settings.name, op, high)
            return low, high
    return 0, 0
