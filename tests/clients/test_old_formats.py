"""Clients as of Kafka 0.9 and 0.10, which speak message formats 0 and 1, beside clients of today."""

import pyarrow as pa
import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition

from sparklog.model.errors import ErrorCode
from sparklog.network.dialing.connection import Connection
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS
from sparklog.wire.messages.data.fetch import FetchPartition, FetchPartitionData, FetchRequest, FetchTopic
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from tests.clients.test_settings_of_running_brokers import alter_all_brokers
from tests.waiting import until

pytestmark = pytest.mark.integration

OLD_FETCH_VERSIONS = range(4)
CODECS = ["none", "gzip", "snappy", "lz4"]
TIME_MS = 1_600_000_000_000
ROWS = [(b"k%d" % n if n % 3 else None, b"v%d" % n * 20 if n % 3 == 0 or n % 7 else None) for n in range(50)]


def numbered(rows, first: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(first + n, key, value) for n, (key, value) in enumerate(rows)]


class Librdkafka:
    """Of today, or one that asks no broker for its versions and takes it for ``release``."""

    codecs = CODECS

    def __init__(self, release: str | None = None) -> None:
        self.has_times = release is None
        self._options = (
            {} if release is None else {"api.version.request": False, "broker.version.fallback": release}
        )

    def write(self, servers: str, topic: str, rows=ROWS, codec="none", headers=None) -> list[int]:
        """Offsets of the rows, in order. They are in one request, so that they are compressed together."""
        offsets: list[int] = []
        failures = []

        def on_delivery(error, message):
            (failures if error else offsets).append(error or message.offset())

        more = {"headers": headers} if headers else {}
        producer = Producer(
            {"bootstrap.servers": servers, "linger.ms": 200, "compression.codec": codec, **self._options}
        )
        for n, (key, value) in enumerate(rows):
            time_ms = TIME_MS + n
            producer.produce(topic, value, key, 0, timestamp=time_ms, on_delivery=on_delivery, **more)
        assert producer.flush(60) == 0
        assert not failures
        return offsets

    def read(self, servers: str, topic: str, count: int, offset: int = 0, limit_bytes: int = 1 << 20):
        options = {"max.partition.fetch.bytes": limit_bytes, **self._options}
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused", **options})
        try:
            consumer.assign([TopicPartition(topic, 0, offset)])
            messages = []
            while len(messages) < count:
                message = consumer.poll(30)
                assert message is not None, f"{len(messages)} of {count} messages came"
                assert message.error() is None, message.error()
                messages.append(message)
        finally:
            consumer.close()
        return messages

    def rows(self, *asked, **limits):
        return [(message.offset(), message.key(), message.value()) for message in self.read(*asked, **limits)]

    def times(self, *asked):
        return [message.timestamp()[1] for message in self.read(*asked)]


class KafkaPython:
    def __init__(self, release: tuple[int, ...], codecs: list[str]) -> None:
        self.codecs = codecs
        self.has_times = release >= (0, 10)
        self._options = {"api_version": release}

    def write(self, servers: str, topic: str, rows=ROWS, codec="none") -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=servers.split(","),
            linger_ms=200,
            compression_type=None if codec == "none" else codec,
            **self._options,
        )
        sent = [
            producer.send(topic, key=key, value=value, partition=0, timestamp_ms=TIME_MS + n)
            for n, (key, value) in enumerate(rows)
        ]
        producer.flush(30)
        offsets = [future.get(10).offset for future in sent]
        producer.close()
        return offsets

    def read(self, servers: str, topic: str, count: int, offset: int = 0, limit_bytes: int = 1 << 20):
        consumer = KafkaConsumer(
            bootstrap_servers=servers.split(","),
            consumer_timeout_ms=30_000,
            max_partition_fetch_bytes=limit_bytes,
            **self._options,
        )
        partition = PythonPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        found = [next(consumer) for _ in range(count)]
        consumer.close()
        return found

    def rows(self, *asked, **limits):
        return [(message.offset, message.key, message.value) for message in self.read(*asked, **limits)]

    def times(self, *asked):
        return [message.timestamp for message in self.read(*asked)]


TODAY = Librdkafka()
OLD = {
    "librdkafka-0.8.2": Librdkafka("0.8.2"),
    "librdkafka-0.9": Librdkafka("0.9.0.1"),
    "kafka-python-0.9": KafkaPython((0, 9), ["none", "gzip"]),
    "kafka-python-0.10": KafkaPython((0, 10, 0), ["none", "gzip", "lz4"]),
}
"""librdkafka as of 0.10 asks for versions, and then speaks format 2."""

OLD_AND_CODECS = [(name, codec) for name, client in OLD.items() for codec in client.codecs]


@pytest.mark.parametrize(("name", "codec"), OLD_AND_CODECS)
def test_what_an_old_client_writes_is_read_by_it_and_by_clients_of_today(cluster, name, codec) -> None:
    topic, old, servers = f"{name}-{codec}", OLD[name], cluster.bootstrap_servers
    cluster.create_topic(topic)
    assert old.write(servers, topic, codec=codec) == list(range(50))
    assert old.rows(servers, topic, 50) == numbered(ROWS)
    assert TODAY.rows(servers, topic, 50) == numbered(ROWS)
    times = [TIME_MS + n if old.has_times else -1 for n in range(50)]
    assert TODAY.times(servers, topic, 50) == times


@pytest.mark.parametrize(("name", "codec"), OLD_AND_CODECS)
def test_what_clients_of_today_write_reaches_an_old_reader_without_headers(cluster, name, codec) -> None:
    topic, old, servers = f"to-{name}-{codec}", OLD[name], cluster.bootstrap_servers
    cluster.create_topic(topic)
    TODAY.write(servers, topic, codec=codec, headers={"trace": b"1"})
    assert old.rows(servers, topic, 50) == numbered(ROWS)
    assert old.rows(servers, topic, 13, 37) == numbered(ROWS)[37:]  # which begins within a batch
    if old.has_times:
        assert old.times(servers, topic, 50) == [TIME_MS + n for n in range(50)]


@pytest.mark.parametrize("name", OLD)
def test_an_old_reader_whose_limit_is_below_a_message_gets_everything(cluster, name) -> None:
    topic = f"small-limit-of-{name}"
    cluster.create_topic(topic)
    rows = [(b"%d" % n, b"x" * (100 if n % 10 else 5_000)) for n in range(100)]
    TODAY.write(cluster.bootstrap_servers, topic, rows)
    assert OLD[name].rows(cluster.bootstrap_servers, topic, 100, limit_bytes=1_000) == numbered(rows)


@pytest.mark.parametrize("name", OLD)
def test_an_old_reader_gets_arrow_batches_too(cluster, name) -> None:
    topic = f"arrow-to-{name}"
    cluster.create_topic(topic)
    leader = cluster.brokers[cluster.wait_for_leader(topic)].node
    table = pa.table({"key": pa.array([b"k", None]), "value": pa.array([b"v", b"w"])})
    batch = ArrowPayload().from_columns(table, now_ms=TIME_MS)
    data = [ProduceTopic(name=topic, partition_data=[ProducePartition(index=0, records=batch)])]
    request = ProduceRequest(acks=-1, topic_data=data, payload_kinds=list(SUPPORTED_PAYLOADS))
    with Connection.open(leader.host, leader.port, client_id="arrow", timeout_ms=5_000) as connection:
        answer = connection.call(request, timeout_ms=10_000).responses[0].partition_responses[0]
    assert answer.error_code is ErrorCode.none
    assert OLD[name].rows(cluster.bootstrap_servers, topic, 2) == [(0, b"k", b"v"), (1, None, b"w")]


@pytest.mark.parametrize("name", ["librdkafka-0.9", "kafka-python-0.10"])
def test_what_old_clients_write_has_the_leaders_time_where_the_topic_wants_it(cluster, name) -> None:
    topic, old, servers = f"leaders-time-of-{name}", OLD[name], cluster.bootstrap_servers
    cluster.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    old.write(servers, topic, codec="gzip")
    (time,) = {message.timestamp() for message in TODAY.read(servers, topic, 50)}
    assert time[0] == TIMESTAMP_LOG_APPEND_TIME
    assert time[1] > TIME_MS + 1_000
    if old.has_times:
        assert {(message.timestamp_type, message.timestamp) for message in old.read(servers, topic, 50)} == {
            (1, time[1])
        }


def fetch(cluster, topic: str, offset: int, version: int) -> FetchPartitionData:
    leader = cluster.brokers[cluster.wait_for_leader(topic)].node
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic=topic, partitions=[partition])])
    with Connection.open(leader.host, leader.port, client_id="old", timeout_ms=5_000) as connection:
        response = connection.call(request, version=version, timeout_ms=10_000)
    return response.responses[0].partitions[0]


def test_an_old_reader_of_zstd_gets_what_lies_in_front_and_then_an_error(cluster) -> None:
    cluster.create_topic("zstd-batch")
    servers = cluster.bootstrap_servers
    TODAY.write(servers, "zstd-batch")
    TODAY.write(servers, "zstd-batch", codec="zstd")
    assert OLD["librdkafka-0.9"].rows(servers, "zstd-batch", 50) == numbered(ROWS)
    for version in OLD_FETCH_VERSIONS:
        answer = fetch(cluster, "zstd-batch", 50, version)
        assert answer.error_code is ErrorCode.unsupported_compression_type
        assert not answer.records


def test_an_old_reader_is_refused_where_the_topic_wants_no_conversion(cluster) -> None:
    cluster.create_topic("unconverted", configs={"message.downconversion.enable": "false"})
    servers = cluster.bootstrap_servers
    assert OLD["librdkafka-0.9"].write(servers, "unconverted") == list(range(len(ROWS)))
    for version in OLD_FETCH_VERSIONS:
        answer = fetch(cluster, "unconverted", 0, version)
        assert answer.error_code is ErrorCode.unsupported_version
        assert not answer.records
    assert fetch(cluster, "unconverted", 0, OLD_FETCH_VERSIONS.stop).error_code is ErrorCode.none
    assert TODAY.rows(servers, "unconverted", len(ROWS)) == numbered(ROWS)


def test_conversion_may_be_switched_off_and_on_while_brokers_run(cluster) -> None:
    cluster.create_topic("converted")
    TODAY.write(cluster.bootstrap_servers, "converted")
    for value, error in (("false", ErrorCode.unsupported_version), ("true", ErrorCode.none)):
        alter_all_brokers(cluster, log_message_downconversion_enable=value)
        until(lambda error=error: fetch(cluster, "converted", 0, 0).error_code is error, f"{error}")
