"""kafka-python, a client that shares no code with librdkafka, against three brokers."""

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

pytestmark = pytest.mark.integration


def test_it_produces_and_consumes_with_idempotence(cluster) -> None:
    cluster.create_topic("kafka-python", partitions=2)
    servers = cluster.bootstrap_servers.split(",")
    producer = KafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True)
    futures = [
        producer.send("kafka-python", key=b"k%d" % n, value=b"v%d" % n, headers=[("h", b"x")])
        for n in range(200)
    ]
    producer.flush(30)
    assert all(future.get(10).offset >= 0 for future in futures)
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=servers, consumer_timeout_ms=3_000, auto_offset_reset="earliest"
    )
    partitions = [TopicPartition("kafka-python", index) for index in (0, 1)]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    read = {(message.key, message.value) for message in consumer}
    assert read == {(b"k%d" % n, b"v%d" % n) for n in range(200)}
    assert sum(consumer.end_offsets(partitions).values()) == 200
    consumer.close()


@pytest.mark.scenario(
    "S20", "Clients as old as 0.11 work with this broker, and newer ones learn what it serves (KIP-35)."
)
@pytest.mark.parametrize("release", [(0, 11), (1, 0), (2, 3), (2, 6)])
def test_it_produces_and_consumes_with_the_requests_of_older_releases(cluster, release) -> None:
    """0.11 is the first whose batches are those of today."""
    topic = f"kafka-python-as-{release[0]}-{release[1]}"
    cluster.create_topic(topic)
    options = {"bootstrap_servers": cluster.bootstrap_servers.split(","), "api_version": release}
    producer = KafkaProducer(acks="all", **options)
    futures = [producer.send(topic, b"%d" % number) for number in range(20)]
    producer.flush(30)
    assert [future.get(10).offset for future in futures] == list(range(20))
    producer.close()
    consumer = KafkaConsumer(consumer_timeout_ms=30_000, **options)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    assert [next(consumer).value for _ in range(20)] == [b"%d" % number for number in range(20)]
    consumer.close()


def test_it_creates_lists_and_deletes_topics(cluster) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    admin.create_topics([NewTopic("kafka-python-admin", 1, 3)])
    assert "kafka-python-admin" in admin.list_topics()
    admin.delete_topics(["kafka-python-admin"])
    admin.close()
