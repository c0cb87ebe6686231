"""Kafka's clients, of today and of 2014, and ours, read rows of a typed topic: an object of JSON each."""

import asyncio
import json

import pyarrow as pa
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, TopicPartition

from sparklog.cli.main import main
from sparklog.testing import InProcessCluster
from tests.clients.test_kcat import kcat
from tests.clients.test_old_formats import OLD, KafkaPython, Librdkafka
from tests.clients.typed_rows import ROWS, TIMES_MS, create_with_rows

pytestmark = pytest.mark.integration

TOPIC = "clients-typed"


@pytest.fixture(scope="module")
def servers(cluster: InProcessCluster) -> str:
    """Of a cluster with a typed topic of two rows: one of all values, one of nulls."""
    create_with_rows(cluster, TOPIC)
    servers: str = cluster.bootstrap_servers
    return servers


def test_kcat_prints_an_object_a_row(servers: str) -> None:
    read = kcat("-b", servers, "-C", "-t", TOPIC, "-o", "beginning", "-e", "-q", "-f", "%o %k %s\n")
    assert read.splitlines() == [f"{offset} {key.decode()} {value.decode()}" for offset, key, value in ROWS]


@pytest.mark.parametrize(
    "client", [Librdkafka(), KafkaPython((2, 6), [])], ids=["librdkafka", "kafka-python"]
)
def test_clients_of_today_get_offsets_keys_objects_and_times(servers: str, client: Librdkafka) -> None:
    assert client.rows(servers, TOPIC, 2) == ROWS
    assert client.rows(servers, TOPIC, 1, offset=1) == ROWS[1:]
    assert client.times(servers, TOPIC, 1) == TIMES_MS[:1]


@pytest.mark.parametrize("name", OLD)
def test_clients_of_formats_0_and_1_get_them_too(servers: str, name: str) -> None:
    assert OLD[name].rows(servers, TOPIC, 2) == ROWS


def test_aiokafka_gets_them(servers: str) -> None:
    async def read() -> list[tuple[int, bytes | None, bytes | None]]:
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([AioPartition(TOPIC, 0)])
            found = [await consumer.getone() for _ in range(2)]
        finally:
            await consumer.stop()
        return [(message.offset, message.key, message.value) for message in found]

    assert asyncio.run(read()) == ROWS


def test_ours_print_them(servers: str, cluster: InProcessCluster, capfd: pytest.CaptureFixture[str]) -> None:
    assert [record.value for record in cluster.consume(TOPIC)] == [value for *_, value in ROWS]
    options = ["--from-beginning", "--max-messages", "2", "--print-key"]
    assert main(["consume", "--topic", TOPIC, *options, "--bootstrap-server", servers]) == 0
    assert capfd.readouterr().out.splitlines() == [
        f"{key.decode()}\t{value.decode()}" for _, key, value in ROWS
    ]


def test_a_batch_is_read_in_parts_whatever_the_readers_limit(cluster: InProcessCluster) -> None:
    """20,000 rows of control characters are 0.6 MB in the log, and 3 MB as JSON."""
    cluster.create_topic("clients-typed-large", schema="id bigint, name string")
    table = pa.table({"id": pa.array(range(20_000)), "name": ["\x01" * 20] * 20_000})
    cluster.produce("clients-typed-large", table)
    for limit_bytes in (1_000, 100_000):
        count = 300 if limit_bytes == 1_000 else 20_000
        options = {"fetch.message.max.bytes": limit_bytes, "group.id": "unused"}
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, **options})
        consumer.assign([TopicPartition("clients-typed-large", 0, 0)])
        found = [json.loads(message.value())["id"] for message in consumer.consume(count, 60)]
        consumer.close()
        assert found == list(range(count))


def test_one_row_larger_than_the_readers_limit_comes_alone(cluster: InProcessCluster) -> None:
    cluster.create_topic("clients-typed-wide", schema="name string")
    cluster.produce("clients-typed-wide", pa.table({"name": ["\x01" * 150_000, "y"]}))
    for client in (Librdkafka(), KafkaPython((2, 6), []), OLD["kafka-python-0.10"]):
        rows = client.rows(cluster.bootstrap_servers, "clients-typed-wide", 2, limit_bytes=1_000)
        assert [len(json.loads(value)["name"]) for _, _, value in rows] == [150_000, 1]
