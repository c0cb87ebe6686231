"""Every library of the run's clients reaches an open and a secured cluster by one value."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from chaos.access import PLAIN, Access
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import SecurityRefused
from sparklog.testing import InProcessCluster

PATIENCE_S = 30
OPEN = Access("127.0.0.1:1,127.0.0.1:2")


def test_clients_of_an_open_cluster_are_given_its_addresses_and_no_more():
    assert OPEN.confluent() == {"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2"}
    assert OPEN.kafka_python() == OPEN.aiokafka() == {"bootstrap_servers": ["127.0.0.1:1", "127.0.0.1:2"]}
    assert OPEN.spark() == {"kafka.bootstrap.servers": "127.0.0.1:1,127.0.0.1:2"}
    assert OPEN.properties() == {}


def test_a_password_is_not_shown():
    assert "wonderland" not in repr(Access("127.0.0.1:1", "ca.pem", "alice", "wonderland"))


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(brokers=1, secure=True) as running:
        running.create_topic("red", partitions=1)
        running.as_user("alice")
        running.allow("alice", "write", topic="red")
        yield running


@pytest.fixture(scope="module")
def access(cluster):
    properties = cluster.as_user("alice").properties
    password = properties["sasl.jaas.config"].split('"')[-2]
    authority = properties["ssl.truststore.location"]
    return Access(cluster.bootstrap_servers, authority, "alice", password)


@pytest.mark.integration
def test_spark_and_commands_have_the_properties_of_a_user(cluster, access):
    assert access.properties() == cluster.as_user("alice").properties
    assert access.spark() == cluster.as_user("alice").options


@pytest.mark.integration
def test_librdkafka_writes_as_its_user(access):
    producer, errors = Producer(access.confluent()), []
    producer.produce("red", b"one", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None]


@pytest.mark.integration
def test_kafka_python_writes_as_its_user(access):
    producer = KafkaProducer(**access.kafka_python())
    assert producer.send("red", b"two").get(PATIENCE_S).topic == "red"
    producer.close()


@pytest.mark.integration
def test_aiokafka_writes_as_its_user(access):
    async def write():
        async with AIOKafkaProducer(**access.aiokafka()) as producer:
            return await producer.send_and_wait("red", b"three")

    assert asyncio.run(write()).topic == "red"


@pytest.mark.integration
def test_sparklogs_client_is_let_in_by_its_password_alone(access):
    with ClusterClient(access.bootstrap, connector=access.connector()) as client:
        assert client.topic("red").error_code == 0
    wrong = Access(access.bootstrap, access.authority, "alice", "guessed", PLAIN)
    with (
        ClusterClient(wrong.bootstrap, connector=wrong.connector()) as client,
        pytest.raises(SecurityRefused),
    ):
        client.topic("red")
