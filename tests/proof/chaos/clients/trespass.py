"""Clients at topics of others: trespassers, who are always denied, and a guest, whose rule comes and goes.

``try_by_librdkafka`` does what a library does without rights. ``try_by_requests`` goes past what libraries
refuse by themselves: Produce and Fetch of brokers drawn by chance, whatever these told of the topic.
"""

import random
import time
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from chaos.clients.client_parts import (
    FLUSH_S,
    PLAIN_IN_FLIGHT,
    REQUEST_TIMEOUT_MS,
    Numbers,
    Pace,
    Place,
    Settings,
    begin_send,
)
from chaos.clients.confluent_client import common_settings, seen_by_confluent
from histories import Writer
from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic

_NOT_APPENDED: Final = (
    ErrorCode.topic_authorization_failed,
    ErrorCode.not_leader_or_follower,
    ErrorCode.unknown_topic_or_partition,
)
_BY_NAME: Final = {0: 9, 1: 12}
"""The last versions of Produce and Fetch that name topics: who may not see one does not know its id."""
_FETCH_BYTES: Final = 65_536
_READ_S: Final = 0.3
_PAUSE_S: Final = 0.2
_BROKERS_AGE_MS: Final = 1_000
"""A broker may be elsewhere since, and requests that pass the client's own routes make it ask nobody."""


def try_by_librdkafka(settings: Settings, writer: Writer) -> None:
    """Writes and reads, with one record under way. A time-out says nothing of a refusal."""
    common = common_settings(settings)
    producer = Producer(
        {
            **common,
            "acks": settings.acks,
            "max.in.flight.requests.per.connection": PLAIN_IN_FLIGHT,
            "message.timeout.ms": REQUEST_TIMEOUT_MS,
        }
    )
    consumer = Consumer({**common, "group.id": settings.name, "enable.auto.commit": False})

    def done(op: int) -> Any:
        def on_delivery(error: KafkaError | None, message: Any) -> None:
            if error is None:
                writer.sent(settings.name, op, offset=message.offset())
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                writer.failed(settings.name, op, error)
            else:
                writer.unknown(settings.name, op, error)

        return on_delivery

    rng, pace, numbers = random.Random(settings.seed), Pace(settings.rate), Numbers(settings.name)
    while not settings.is_stopping:
        producer.poll(pace.next_in_s())
        topic, partition = rng.choice(settings.partitions())
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
        except KafkaException as error:  # it knows already that it may not
            writer.failed(settings.name, op, error)
        producer.flush(FLUSH_S)
        consumer.assign([TopicPartition(topic, partition, 0)])
        for message in consumer.consume(1, _READ_S):
            if message.error() is None:
                offset, value, _ = seen_by_confluent(message)
                writer.polled(settings.name, topic, partition, offset, [(offset, value)])
            else:
                writer.line(settings.name, "info", "poll", error=str(message.error())[:900])
    consumer.close()


def try_by_requests(settings: Settings, writer: Writer) -> None:
    """Writes, and reads if its role is to trespass: a guest may only write."""
    rng, pace, numbers = random.Random(settings.seed), Pace(settings.rate), Numbers(settings.name)
    with ClusterClient(
        settings.access.bootstrap,
        client_id=settings.name,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        retry_timeout_ms=2 * REQUEST_TIMEOUT_MS,
        connector=settings.access.connector(),
    ) as cluster:
        while not settings.is_stopping:
            time.sleep(pace.next_in_s())
            try:
                brokers = list(cluster.metadata([], max_age_ms=_BROKERS_AGE_MS).brokers.values())
            except SparklogError as error:
                writer.line(settings.name, "info", "poll", error=str(error)[:900])
                time.sleep(_PAUSE_S)
                continue
            broker = rng.choice(brokers)
            endpoint, place = Endpoint(broker.host, broker.port), rng.choice(settings.partitions())
            _write(settings, writer, cluster, endpoint, place, numbers, rng)
            if settings.role == "trespasser":
                _read(settings, writer, cluster, endpoint, place)


def _write(
    settings: Settings,
    writer: Writer,
    cluster: ClusterClient,
    endpoint: Endpoint,
    place: Place,
    numbers: Numbers,
    rng: random.Random,
) -> None:
    op, record = begin_send(settings, writer, numbers, *place, rng)
    row = Record(key=record.key, value=record.value, headers=tuple(record.headers))
    batch = build_records_batch([row], now_ms=time.time_ns() // 1_000_000)
    data = ProducePartition(index=place[1], records=batch)
    request = ProduceRequest(
        acks=-1 if settings.acks == "all" else settings.acks,
        timeout_ms=REQUEST_TIMEOUT_MS,
        topic_data=[ProduceTopic(name=place[0], partition_data=[data])],
    )
    try:
        answer = _ask(cluster, endpoint, request).responses[0].partition_responses[0]
    except (SparklogError, OSError) as error:
        writer.unknown(settings.name, op, repr(error))
        return
    if answer.error_code is ErrorCode.none:
        writer.sent(settings.name, op, offset=answer.base_offset)
    elif answer.error_code in _NOT_APPENDED:
        writer.failed(settings.name, op, answer.error_code.name)
    else:
        writer.unknown(settings.name, op, answer.error_code.name)


def _read(
    settings: Settings, writer: Writer, cluster: ClusterClient, endpoint: Endpoint, place: Place
) -> None:
    """Of a partition's begin; whatever comes is told, as something that nobody has sent."""
    wanted = FetchPartition(partition=place[1], fetch_offset=0, partition_max_bytes=_FETCH_BYTES)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=place[0], partitions=[wanted])])
    try:
        answer = _ask(cluster, endpoint, request).responses[0].partitions[0]
    except (SparklogError, OSError) as error:
        writer.line(settings.name, "info", "poll", error=repr(error)[:900])
        return
    if answer.records:
        said = f"records, answered with {answer.error_code.name}"
        writer.polled(settings.name, *place, 0, [(0, said)])
    else:
        writer.line(settings.name, "info", "poll", error=answer.error_code.name)


def _ask(cluster: ClusterClient, endpoint: Endpoint, request: Any) -> Any:
    deadline = cluster.deadline(REQUEST_TIMEOUT_MS)
    connection = cluster.borrow(endpoint, deadline)
    try:
        answer = connection.call(
            request, version=_BY_NAME[request.API_KEY], timeout_ms=max(1, deadline.remaining_ms)
        )
    except BaseException:
        cluster.discard(connection)
        raise
    cluster.give_back(endpoint, connection)
    return answer
