"""One Kafka client in a process of its own, which writes down what it sees.

    python client.py '{"role": "producer", "library": "confluent", "name": "producer-1/0", ...}'

SIGTERM ends it in good order: what is under way is waited for. SIGKILL is a crash: what was under way stays
without a completion, which is what a client that crashes knows of it.
"""

import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparklog.testing.histories import Writer

FLUSH_S = 40.0
DELIVERY_TIMEOUT_MS = 30_000
IDEMPOTENT_DELIVERY_TIMEOUT_MS = 300_000
"""librdkafka's default. One send that it gives up makes it take another producer epoch, and send again under
that what it does not know the fate of, in other partitions too: there its idempotence ends, whatever brokers
do.
"""
REQUEST_TIMEOUT_MS = 5_000
RETRY_MS = 50
PADDING_MAX = 600
ASK_TIMEOUT_MS = 5_000
KEYS = 40
"""Of each partition of a compacted topic."""
TOMBSTONES = 0.1
ID_HEADER = "id"
RE_READ_RECORDS = 200
TAIL_RECORDS = 500
REMEMBERED = 500
"""A tailing consumer that has read nothing of a partition yet begins so many records before its end."""


@dataclass
class Settings:
    """What the client is to do; the JSON of the command line."""

    role: str
    library: str
    name: str
    bootstrap: str
    topics: dict[str, int]
    folder: str
    seed: int
    acks: Any = "all"
    idempotent: bool = False
    in_flight_max: int = 5
    rate: float = 20.0
    compression: str = "none"
    compacted: list[str] = field(default_factory=list)
    is_stopping: bool = field(default=False, init=False)
    writer: Writer = field(init=False)

    def partitions(self) -> list[tuple[str, int]]:
        return [(topic, number) for topic, count in self.topics.items() for number in range(count)]


class Pace:
    """``rate`` turns a second; after a stall it does not hurry to catch up."""

    def __init__(self, rate: float) -> None:
        self._step = 1 / rate
        self._due = time.monotonic()

    def next_in_s(self) -> float:
        """Begin another turn; how long until it is due."""
        self._due = max(self._due + self._step, time.monotonic() - 1.0)
        return self.left_s()

    def left_s(self) -> float:
        return max(0.0, self._due - time.monotonic())


# ---------------------------------------------------------------------------------------------- producers


class Numbers:
    """The next number of this session's sends to each partition."""

    def __init__(self, session: str) -> None:
        self.session = session
        self._next: dict[tuple[str, int], int] = {}

    def take(self, topic: str, partition: int) -> tuple[int, str]:
        seq = self._next.get((topic, partition), 0)
        self._next[topic, partition] = seq + 1
        return seq, f"{topic}/{partition}/{self.session}/{seq}"


def produce_with_confluent(settings: Settings, writer: Writer) -> None:
    from confluent_kafka import KafkaError, KafkaException, Producer

    fatal: list[KafkaError] = []

    def on_error(error: KafkaError) -> None:
        if error.fatal():
            fatal.append(error)

    def new_producer() -> Producer:
        return Producer(
            {
                **_confluent(settings),
                "acks": settings.acks,
                "enable.idempotence": settings.idempotent,
                # Without idempotence, a second request under way could overtake one that is tried again.
                "max.in.flight.requests.per.connection": settings.in_flight_max if settings.idempotent else 1,
                "message.timeout.ms": _delivery_timeout_ms(settings),
                "request.timeout.ms": REQUEST_TIMEOUT_MS,
                "compression.type": settings.compression,
                "linger.ms": 5,
                # The process's log tells why it took another epoch.
                **({"debug": "eos", "log_level": 7} if settings.idempotent else {}),
                "error_cb": on_error,
            }
        )

    # With one request in flight, one record under way in each partition: a new leader has a connection of its
    # own, and the next record would go there while the last leader's answer is still awaited.
    is_alone = settings.idempotent and settings.in_flight_max == 1
    under_way: set[tuple[str, int]] = set()

    def done(op: int, place: tuple[str, int]) -> Any:
        def on_delivery(error: KafkaError | None, message: Any) -> None:
            under_way.discard(place)
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
        free = [place for place in partitions if place not in under_way]
        if not free:
            continue
        topic, partition = rng.choice(free)
        op, record = _begin_send(settings, writer, numbers, topic, partition, rng)
        if is_alone:
            under_way.add((topic, partition))
        try:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=partition,
                headers=record.headers,
                on_delivery=done(op, (topic, partition)),
            )
        except (KafkaException, BufferError) as error:  # refused before anything was sent
            under_way.discard((topic, partition))
            writer.failed(settings.name, op, error)
    producer.flush(FLUSH_S)


def produce_with_kafka_python(settings: Settings, writer: Writer) -> None:
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    def new_producer() -> KafkaProducer:
        return KafkaProducer(
            bootstrap_servers=settings.bootstrap.split(","),
            client_id=settings.name,
            acks=settings.acks,
            enable_idempotence=settings.idempotent,
            max_in_flight_requests_per_connection=settings.in_flight_max if settings.idempotent else 1,
            delivery_timeout_ms=_delivery_timeout_ms(settings),
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
        op, record = _begin_send(settings, writer, numbers, topic, partition, rng)
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


def _delivery_timeout_ms(settings: Settings) -> int:
    return IDEMPOTENT_DELIVERY_TIMEOUT_MS if settings.idempotent else DELIVERY_TIMEOUT_MS


@dataclass(frozen=True)
class Record:
    """What is sent. A tombstone has its name in a header."""

    value: bytes | None
    key: bytes
    headers: list[tuple[str, bytes]]


def _begin_send(
    settings: Settings, writer: Writer, numbers: Numbers, topic: str, partition: int, rng: random.Random
) -> tuple[int, Record]:
    seq, value = numbers.take(topic, partition)
    padding = bytes(rng.randrange(PADDING_MAX))
    key, is_tombstone = None, False
    record = Record(value.encode(), padding, [])
    if topic in settings.compacted:
        key, is_tombstone = f"key-{rng.randrange(KEYS)}", rng.random() < TOMBSTONES
        headers = [("padding", padding), *([(ID_HEADER, value.encode())] if is_tombstone else [])]
        record = Record(None if is_tombstone else value.encode(), key.encode(), headers)
    op = writer.send(
        settings.name,
        topic,
        partition,
        value,
        acks=settings.acks,
        session=numbers.session,
        seq=seq,
        idempotent=settings.idempotent,
        key=key,
        tombstone=is_tombstone,
    )
    return op, record


def value_of(value: bytes | None, headers: Iterable[tuple[str, bytes]] | None) -> str:
    """By which a history knows a record."""
    return (dict(headers or ())[ID_HEADER] if value is None else value).decode()


# ---------------------------------------------------------------------------------------------- consumers


def _confluent(settings: Settings) -> dict[str, Any]:
    return {
        "bootstrap.servers": settings.bootstrap,
        "client.id": settings.name,
        "log_level": 0,
        "error_cb": lambda error: None,
        "reconnect.backoff.ms": RETRY_MS,
        "reconnect.backoff.max.ms": 500,
        "retry.backoff.ms": RETRY_MS,
        "socket.timeout.ms": 2 * REQUEST_TIMEOUT_MS,
        "topic.metadata.refresh.interval.ms": 5_000,
    }


def _confluent_consumer(settings: Settings) -> Any:
    from confluent_kafka import Consumer

    return Consumer(
        {
            **_confluent(settings),
            "group.id": settings.name,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
        }
    )


Seen = tuple[int, str, int | None]
"""Offset, value, and in which leader epoch it was appended, where the library tells."""


def epochs_of(records: list[Seen]) -> list[tuple[int, int]]:
    """Where each leader epoch begins; nothing unless all are known."""
    found: list[tuple[int, int]] = []
    for offset, _, epoch in records:
        if epoch is None or epoch < 0:
            return []
        if not found or found[-1][1] != epoch:
            found.append((offset, epoch))
    return found


def seen_by_confluent(message: Any) -> Seen:
    return message.offset(), value_of(message.value(), message.headers()), message.leader_epoch()


def seen_by_kafka_python(record: Any) -> Seen:
    return record.offset, value_of(record.value, record.headers), record.leader_epoch


class Positions:
    """Where an assigned consumer stands in each partition; writes down what it is given."""

    def __init__(self, settings: Settings, writer: Writer) -> None:
        self._settings, self._writer = settings, writer
        self.at: dict[tuple[str, int], int] = {}

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.at[topic, partition] = offset
        self._writer.seek(self._settings.name, topic, partition, offset)

    def take(self, records: dict[tuple[str, int], list[Seen]]) -> None:
        for (topic, partition), some in records.items():
            self._writer.polled(
                self._settings.name,
                topic,
                partition,
                self.at[topic, partition],
                [(offset, value) for offset, value, _ in some],
                epochs=epochs_of(some),
            )
            self.at[topic, partition] = some[-1][0] + 1


def tail_with_confluent(settings: Settings, writer: Writer) -> None:
    """Reads everything as it comes, on from where an earlier life of this client stopped."""
    from confluent_kafka import TopicPartition

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


def where_earlier_lives_stopped(folder: Path, name: str) -> dict[tuple[str, int], int]:
    """The next offset of each partition, by the histories of ``consumer-1/0``, ``/1``, ... before this one.

    A killed life's last line may be cut off, or it has not come to write any.
    """
    client, _, life = name.rpartition("/")
    found: dict[tuple[str, int], int] = {}
    histories = [folder / f"{client}-{earlier}.jsonl" for earlier in range(int(life))]
    for history in histories:
        for line in history.read_text(encoding="utf-8").splitlines() if history.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry.get("type") != "ok":
                continue
            if entry["f"] == "seek":
                found[entry["topic"], entry["partition"]] = entry["offset"]
            elif entry["f"] == "poll" and entry["records"]:
                found[entry["topic"], entry["partition"]] = entry["records"][-1][0] + 1
    return found


def _goes_on(settings: Settings, consumer: Any, positions: Positions, key: tuple[str, int]) -> bool:
    """After an error: from the same place, or from the log's start if somebody deleted what was next."""
    from confluent_kafka import KafkaException, TopicPartition

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


def re_read_with_confluent(settings: Settings, writer: Writer) -> None:
    """Reads pieces from anywhere, again and again, and asks for the ends."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    consumer, positions = _confluent_consumer(settings), Positions(settings, writer)
    admin = AdminClient(_confluent(settings))
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
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

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
        writer.ended(settings.name, op, told.offset, leader_epoch=_known(told.leader_epoch))


def _known(leader_epoch: int | None) -> int | None:
    """Libraries have a -1 for what a broker does not tell."""
    return None if leader_epoch is None or leader_epoch < 0 else leader_epoch


def re_read_with_kafka_python(settings: Settings, writer: Writer) -> None:
    from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
    from kafka.admin import OffsetSpec
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        bootstrap_servers=settings.bootstrap.split(","),
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
        bootstrap_servers=settings.bootstrap.split(","),
        client_id=settings.name,
        request_timeout_ms=ASK_TIMEOUT_MS,
        reconnect_backoff_ms=RETRY_MS,
        reconnect_backoff_max_ms=500,
        retry_backoff_ms=RETRY_MS,
    )
    positions, rng, pace = Positions(settings, writer), random.Random(settings.seed), Pace(settings.rate)
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
            writer.ended(settings.name, op, told.offset, leader_epoch=_known(told.leader_epoch))
            if low < high:
                start = max(low, high - 20) if rng.random() < 0.5 else rng.randrange(low, high)
                consumer.seek(place, start)
                positions.seek(topic, partition, start)
                got = consumer.poll(timeout_ms=500, max_records=RE_READ_RECORDS).get(place, [])
                if got:
                    positions.take({(topic, partition): [seen_by_kafka_python(one) for one in got]})
        except KafkaError as error:
            writer.unknown(settings.name, op, repr(error), what="end")
    consumer.close()
    admin.close()


def _watermarks(settings: Settings, consumer: Any, topic: str, partition: int) -> tuple[int, int]:
    """The log's start and its visible end, once somebody tells them."""
    from confluent_kafka import KafkaException, TopicPartition

    writer = settings.writer
    while not settings.is_stopping:
        op = writer.end(settings.name, topic, partition)
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 5.0, cached=False)
        except KafkaException as error:
            writer.unknown(settings.name, op, error, what="end")
            time.sleep(0.2)
        else:
            writer.ended(settings.name, op, high)
            return low, high
    return 0, 0


ROLES = {
    ("producer", "confluent"): produce_with_confluent,
    ("producer", "kafka-python"): produce_with_kafka_python,
    ("tail", "confluent"): tail_with_confluent,
    ("reader", "confluent"): re_read_with_confluent,
    ("reader", "kafka-python"): re_read_with_kafka_python,
}


def main(text: str) -> int:
    settings = Settings(**json.loads(text))

    def stop(number: int, frame: object) -> None:
        settings.is_stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    path = Path(settings.folder) / f"{settings.name.replace('/', '-')}.jsonl"
    with Writer(path) as writer:
        settings.writer = writer
        ROLES[settings.role, settings.library](settings, writer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
