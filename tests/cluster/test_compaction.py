"""A compacted topic on three brokers: what Kafka's clients read of it while and after it is compacted."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from sparklog.broker.disks.log_cleaner import CleanerState
from sparklog.client.producer import BatchProducer
from sparklog.model.ids import TopicPartition as LogPartition
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import Compression, split
from sparklog.records.payload import payload_of
from sparklog.testing.cluster import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

KEYS = 40
ROUNDS = 60
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "4000",
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": "3600000",
}


@pytest.fixture(scope="module")
def compacting() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=3, settings={"log.cleaner.backoff.ms": "50"}) as cluster:
        yield cluster


def state(cluster: InProcessCluster, broker_id: int, topic: str) -> CleanerState | None:
    """None while the broker does not know its role."""
    found = [s for s in cluster.brokers[broker_id].body.cleaner.states() if s.topic_partition.topic == topic]
    return found[0] if found else None


def filled(cluster: InProcessCluster, topic: str, codec: str = "none") -> dict[bytes, bytes]:
    """Write each key many times, deleting one of them in the end; what a table of it must hold."""
    cluster.create_topic(topic, configs=CONFIGS)
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "enable.idempotence": True,
            "compression.type": codec,
            "batch.num.messages": 100,
            "linger.ms": 2,
        }
    )
    for nth in range(ROUNDS):
        for key in range(KEYS):
            producer.produce(topic, key=b"k%d" % key, value=b"%d-" % nth + b"v" * 60, headers=[("n", b"x")])
        if nth % 10 == 9:
            producer.flush(30)
    producer.produce(topic, key=b"k0", value=None)
    producer.produce(topic, key=b"end", value=b"of the log")
    producer.flush(30)
    table = {b"k%d" % key: b"%d-" % (ROUNDS - 1) + b"v" * 60 for key in range(1, KEYS)}
    return {**table, b"end": b"of the log"}


def wait_until_compacted(cluster: InProcessCluster, topic: str, *, once: bool = True) -> None:
    """Wait until no replica needs compaction any more, and each has been compacted at least ``once``."""

    def is_done(broker_id: int) -> bool:
        found = state(cluster, broker_id, topic)
        if found is None:
            return False
        return (found.last is not None or not once) and not found.is_due and not found.is_being_cleaned

    def told(broker_id: int) -> str:
        return f"broker {broker_id}: {state(cluster, broker_id, topic)}"

    for broker_id in cluster.brokers:
        until(partial(is_done, broker_id), partial(told, broker_id))


def read_all(cluster: InProcessCluster, topic: str, count_end: int) -> list[tuple[int, bytes, bytes | None]]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    rows: list[tuple[int, bytes, bytes | None]] = []
    deadline = time.monotonic() + 30
    while (not rows or rows[-1][0] < count_end - 1) and time.monotonic() < deadline:
        rows += [(m.offset(), m.key(), m.value()) for m in consumer.consume(500, 0.5) if m.error() is None]
    consumer.close()
    return rows


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_client_reads_the_last_value_of_each_key_at_its_old_offset(compacting, codec: str) -> None:
    topic = f"table-{codec}"
    table = filled(compacting, topic, codec)
    end = ROUNDS * KEYS + 2
    wait_until_compacted(compacting, topic)
    rows = read_all(compacting, topic, end)
    assert len(rows) < ROUNDS * KEYS / 2
    assert [offset for offset, _, _ in rows] == sorted({offset for offset, _, _ in rows})
    last = {key: value for _, key, value in rows}
    assert {key: value for key, value in last.items() if value is not None} == table
    assert (end - 1, b"end", b"of the log") in rows
    ours = compacting.consume(topic, at_least=len(rows))
    assert [(record.offset, record.key, record.value) for record in ours] == rows
    assert all(offset % KEYS == int(key[1:]) for offset, key, value in rows if offset < end - 2)


def test_another_client_reads_the_same_from_an_offset_that_is_gone(compacting) -> None:
    filled(compacting, "gone")
    wait_until_compacted(compacting, "gone")
    rows = read_all(compacting, "gone", ROUNDS * KEYS + 2)
    consumer = KafkaConsumer(
        bootstrap_servers=compacting.bootstrap_servers.split(","), consumer_timeout_ms=2_000
    )
    partition = KafkaPythonPartition("gone", 0)
    consumer.assign([partition])
    consumer.seek(partition, 1)
    read = [(message.offset, message.key, message.value) for message in consumer]
    consumer.close()
    assert read == [row for row in rows if row[0] >= 1]


def test_replicas_of_a_compacted_log_differ_in_bytes_only_and_followers_pass_gaps(
    compacting,
) -> None:
    table = filled(compacting, "replicas")
    wait_until_compacted(compacting, "replicas")
    victim = next(i for i in compacting.brokers if i != compacting.wait_for_leader("replicas"))
    compacting.kill(victim)
    directory = compacting.root / f"broker-{victim}" / "0" / "replicas-0"
    for file in directory.iterdir():
        file.unlink()
    directory.rmdir()
    compacting.revive(victim)
    compacting.wait_for_isr("replicas", 3)
    wait_until_compacted(compacting, "replicas", once=False)
    for broker_id in compacting.brokers:
        found = rows_on_disk(compacting.root / f"broker-{broker_id}" / "0" / "replicas-0")
        last = {key: value for _, key, value in found}
        assert {key: value for key, value in last.items() if value is not None} == table
    held = compacting.brokers[victim].body.replicas.partitions()
    (partition,) = [one for one in held if one.topic_partition.topic == "replicas"]
    assert partition.log_start_offset == 0
    compacting.kill(compacting.wait_for_leader("replicas"))
    compacting.wait_for_leader("replicas")
    rows = read_all(compacting, "replicas", ROUNDS * KEYS + 2)
    last = {key: value for _, key, value in rows}
    assert {key: value for key, value in last.items() if value is not None} == table
    for broker_id, broker in compacting.brokers.items():
        if broker.wait_stopped(0):
            compacting.revive(broker_id)
    compacting.wait_for_isr("replicas", 3)


def rows_on_disk(directory: Path) -> list[tuple[int, bytes, bytes | None]]:
    rows: list[tuple[int, bytes, bytes | None]] = []
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        for position, header in split(data):
            batch = data[position : position + header.size_bytes]
            columns = payload_of(header).to_columns(batch, header)
            names = ("offset", "key", "value")
            rows += zip(*(columns.column(name).to_pylist() for name in names), strict=True)
    return rows


def test_a_record_without_a_key_is_refused_with_its_index(compacting) -> None:
    compacting.create_topic("keyed", configs={"cleanup.policy": "compact"})
    errors = []
    producer = Producer({"bootstrap.servers": compacting.bootstrap_servers})
    producer.produce("keyed", value=b"no key", on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert errors[0].name() == "INVALID_RECORD"
    producer.produce("keyed", key=b"key", value=b"", on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert errors[1] is None


def test_arrow_batches_are_compacted_and_read_by_a_client_that_knows_no_arrow(compacting) -> None:
    compacting.create_topic("arrow", configs=CONFIGS)
    with BatchProducer(compacting.client) as producer:
        for nth in range(60):
            value = pa.array([b"%d-" % nth + b"v" * 80] * 20)
            rows = pa.record_batch({"key": [b"k%d" % key for key in range(20)], "value": value})
            batch = ArrowPayload().from_columns(rows, now_ms=nth, compression=Compression.LZ4)
            producer.send(LogPartition("arrow", 0), batch)
        end = pa.record_batch({"key": [b"k0", b"k1", b"end"], "value": [None, b"last", b"x"]})
        producer.send(LogPartition("arrow", 0), ArrowPayload().from_columns(end, now_ms=99))
    wait_until_compacted(compacting, "arrow")
    rows = read_all(compacting, "arrow", 60 * 20 + 3)
    assert len(rows) < 700
    last = {key: value for _, key, value in rows if value is not None or key == b"k0"}
    assert last == {
        b"k0": None,
        b"k1": b"last",
        **{b"k%d" % key: b"59-" + b"v" * 80 for key in range(2, 20)},
        b"end": b"x",
    }
