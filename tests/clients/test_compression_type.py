"""Topics with a ``compression.type``: what confluent-kafka writes in any codec, it reads back the same."""

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer
from confluent_kafka import TopicPartition as At

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import read_parts
from sparklog.network.dialing.connection import Connection
from sparklog.records.envelope import Compression, split
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic

pytestmark = pytest.mark.integration

TYPES = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
SENT = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT_MS = 20_000


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(brokers=2) as cluster:
        yield cluster


def produced(cluster, topic, codec, numbers):
    failed = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "compression.type": codec,
            "linger.ms": 50,
            "enable.idempotence": True,
        }
    )
    for n in numbers:
        producer.produce(
            topic,
            key=b"k%d" % n,
            value=None if n % 10 == 0 else b"v%d" % n * 20,
            headers=[("n", b"%d" % n), ("none", None)],
            timestamp=1_700_000_000_000 + n,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(30) == 0
    assert failed == []


def consumed(cluster, topic, count):
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    consumer.assign([At(topic, 0, 0)])
    messages = []
    while len(messages) < count:
        message = consumer.poll(30)
        assert message is not None, f"{len(messages)} of {count} records arrived"
        assert message.error() is None
        messages.append(message)
    consumer.close()
    return messages


def codecs_in_log(cluster, topic):
    """The codecs of the batches that the leader and the follower have."""
    found = []
    for server in cluster.brokers.values():
        log = server.body.replicas.find(TopicPartition(topic, 0), None).log
        data = read_parts(log.read(0, 10_000_000, log.log_end_offset, at_least_one_batch=True).parts)
        found.append({header.compression for _, header in split(data)})
    return found


@pytest.mark.parametrize("wanted", TYPES)
def test_records_of_every_codec_come_back_from_a_topic_with_another(cluster, wanted):
    topic = f"type-{wanted}"
    cluster.create_topic(topic, configs={"compression.type": wanted})
    cluster.wait_for_isr(topic, 2)
    for round_number, codec in enumerate(SENT):
        produced(cluster, topic, codec, range(round_number * 60, round_number * 60 + 60))
    messages = consumed(cluster, topic, 300)
    assert [message.offset() for message in messages] == list(range(300))
    for n, message in enumerate(messages):
        assert message.key() == b"k%d" % n
        assert message.value() == (None if n % 10 == 0 else b"v%d" % n * 20)
        assert message.headers() == [("n", b"%d" % n), ("none", None)]
        assert message.timestamp() == (TIMESTAMP_CREATE_TIME, 1_700_000_000_000 + n)
    in_log = Compression.NONE if wanted == "uncompressed" else Compression[wanted.upper()]
    assert codecs_in_log(cluster, topic) == [{in_log}, {in_log}]


def test_a_recompressed_batch_has_log_append_time_where_the_topic_wants_it(cluster):
    configs = {
        "compression.type": "gzip",
        "compression.gzip.level": "9",
        "message.timestamp.type": "LogAppendTime",
    }
    cluster.create_topic("type-append-time", configs=configs)
    produced(cluster, "type-append-time", "lz4", range(40))
    for n, message in enumerate(consumed(cluster, "type-append-time", 40)):
        kind, time_ms = message.timestamp()
        assert (message.key(), kind) == (b"k%d" % n, TIMESTAMP_LOG_APPEND_TIME)
        assert time_ms > 1_750_000_000_000


def ask(cluster, request, version):
    host, _, port = cluster.bootstrap_servers.split(",")[0].rpartition(":")
    with Connection.open(host, int(port), client_id="test", timeout_ms=TIMEOUT_MS) as connection:
        return connection.call(request, version=version, timeout_ms=TIMEOUT_MS)


def produce_of(topic, batch):
    data = ProducePartition(index=0, records=batch)
    return ProduceRequest(acks=-1, topic_data=[ProduceTopic(name=topic, partition_data=[data])])


def test_a_repeated_batch_is_recognised_though_its_codec_was_changed():
    records = [Record(value=b"x" * 500) for _ in range(10)]
    batch = build_records_batch(
        records, now_ms=1, compression=Compression.GZIP, producer_id=900, producer_epoch=0, base_sequence=0
    )
    with InProcessCluster(brokers=1) as cluster:
        cluster.create_topic("t", configs={"compression.type": "zstd"})
        cluster.wait_for_isr("t", 1)
        answers = [
            ask(cluster, produce_of("t", batch), 9).responses[0].partition_responses[0] for _ in range(2)
        ]
        assert [(answer.error_code, answer.base_offset) for answer in answers] == [(ErrorCode.none, 0)] * 2
        assert codecs_in_log(cluster, "t") == [{Compression.ZSTD}]
        assert len(cluster.consume("t", at_least=10)) == 10
        too_old = ask(cluster, fetch_of("t"), 9).responses[0].partitions[0]
        assert too_old.error_code is ErrorCode.unsupported_compression_type
        assert ask(cluster, fetch_of("t"), 10).responses[0].partitions[0].error_code is ErrorCode.none
        in_zstd = build_records_batch(records, now_ms=1, compression=Compression.ZSTD)
        refused = ask(cluster, produce_of("t", in_zstd), 6).responses[0].partition_responses[0]
        assert refused.error_code is ErrorCode.unsupported_compression_type


def fetch_of(topic):
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=[partition])])
