"""Kafka's clients log in as at Kafka: by PLAIN and SCRAM, in the clear and over TLS, and anew in time."""

import asyncio
import shutil
import ssl
import subprocess

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer

from sparklog.client.security.user_admin import UserAdmin
from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog.testing import InProcessCluster
from tests.certificates import Authority
from tests.closed_files import write_closed
from tests.waiting import until

pytestmark = pytest.mark.integration

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
USER, PASSWORD = "Alice", "wonder,land=ä"
PATIENCE_S = 30


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, authority):
    """Brokers are in the clear among themselves; clients log in at two listeners, one of them over TLS."""
    secrets = tmp_path_factory.mktemp("secrets") / "users.properties"
    write_closed(secrets, f"alice={PASSWORD}\n")
    users = f'{PLAIN_MODULE} required user_{USER}="${{file:{secrets}:alice}}";'
    settings = {
        "listeners": "PLAINTEXT://:0,CLEAR://:0,TLS://:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLEAR:SASL_PLAINTEXT,TLS:SASL_SSL",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.plain.without.tls": "true",
        "listener.name.clear.plain.sasl.jaas.config": users,
        "listener.name.tls.plain.sasl.jaas.config": users,
        "connection.failed.authentication.delay.ms": "10",
        "connections.max.reauth.ms": "2000",
        **authority.settings(authority.issue("broker")),
    }
    with InProcessCluster(tmp_path_factory.mktemp("logins"), brokers=1, settings=settings) as running:
        for mechanism in MECHANISMS[1:]:
            UserAdmin(running.client).set_password(USER, mechanism, PASSWORD, 4_096)
        running.create_topic("logged-in")
        yield running


def server(cluster, listener="CLEAR"):
    return cluster.brokers[1].addresses[listener]


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    return request.param


@pytest.fixture(params=["CLEAR", "TLS"])
def listener(request):
    return request.param


def of_confluent(cluster, mechanism, listener="CLEAR", password=PASSWORD, **more):
    return {
        "bootstrap.servers": server(cluster, listener),
        "security.protocol": "SASL_SSL" if listener == "TLS" else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
        **more,
    }


def test_confluent_kafka_writes_and_reads(cluster, authority, mechanism, listener):
    tls = {"ssl.ca.location": str(authority.file)} if listener == "TLS" else {}
    common = of_confluent(cluster, mechanism, listener, **tls)
    failed = []
    producer = Producer(common)
    producer.produce("logged-in", b"by confluent", on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert failed == [None]
    consumer = Consumer({**common, "group.id": f"{mechanism}-{listener}", "auto.offset.reset": "earliest"})
    consumer.subscribe(["logged-in"])
    message = consumer.poll(PATIENCE_S)
    assert (message.error(), message.topic()) == (None, "logged-in")
    consumer.close()


def test_confluent_kafka_is_told_of_a_wrong_password(cluster, mechanism):
    errors = []
    client = AdminClient(
        of_confluent(cluster, mechanism, password="wrong", error_cb=lambda error: errors.append(error))
    )
    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)
    client.poll(1)
    assert KafkaError._AUTHENTICATION in {error.code() for error in errors}


def test_confluent_kafka_manages_users(cluster):
    client = AdminClient({"bootstrap.servers": server(cluster, "PLAINTEXT")})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 5_000)
    upsertion = UserScramCredentialUpsertion("bob", info, b"secret of bob")
    client.alter_user_scram_credentials([upsertion])["bob"].result(PATIENCE_S)
    described = client.describe_user_scram_credentials(["bob"])["bob"].result(PATIENCE_S)
    assert [(one.mechanism, one.iterations) for one in described.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_256, 5_000)
    ]
    as_bob = {"sasl.username": "bob", "sasl.password": "secret of bob"}
    logged_in = AdminClient({**of_confluent(cluster, "SCRAM-SHA-256"), **as_bob})
    until(lambda: "logged-in" in logged_in.list_topics(timeout=PATIENCE_S).topics)
    deletion = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
    client.alter_user_scram_credentials([deletion])["bob"].result(PATIENCE_S)
    with pytest.raises(KafkaException, match=r"does not exist: bob"):
        client.describe_user_scram_credentials(["bob"])["bob"].result(PATIENCE_S)


def test_confluent_kafka_logs_in_anew_before_its_session_ends(cluster, mechanism):
    """librdkafka does at nine tenths of a session: its connection stays, and no request fails."""
    errors = []
    common = of_confluent(cluster, mechanism, error_cb=lambda error: errors.append(error))
    producer, reports = Producer(common), []
    sent = 0
    while len(reports) < 30:
        producer.produce("logged-in", b"again", on_delivery=lambda error, _: reports.append(error))
        sent += 1
        producer.flush(PATIENCE_S)
        producer.poll(0.1)
    assert (set(reports), errors) == ({None}, [])


def of_python(cluster, mechanism, listener="CLEAR", password=PASSWORD):
    return {
        "bootstrap_servers": server(cluster, listener),
        "security_protocol": "SASL_SSL" if listener == "TLS" else "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
    }


def test_kafka_python_writes_and_reads(cluster, authority, mechanism, listener):
    tls = {"ssl_cafile": str(authority.file)} if listener == "TLS" else {}
    common = of_python(cluster, mechanism, listener) | tls
    producer = KafkaProducer(**common)
    producer.send("logged-in", b"by kafka-python").get(PATIENCE_S)
    producer.close()
    consumer = KafkaConsumer("logged-in", auto_offset_reset="earliest", **common)
    assert next(iter(consumer)).topic == "logged-in"
    consumer.close()


def test_aiokafka_writes_and_reads(cluster, authority, mechanism, listener):
    context = ssl.create_default_context(cafile=str(authority.file)) if listener == "TLS" else None
    common = of_python(cluster, mechanism, listener) | {"ssl_context": context}

    async def write_and_read():
        async with AIOKafkaProducer(**common) as producer:
            await producer.send_and_wait("logged-in", b"by aiokafka")
        async with AIOKafkaConsumer("logged-in", auto_offset_reset="earliest", **common) as consumer:
            return await asyncio.wait_for(consumer.getone(), PATIENCE_S)

    assert asyncio.run(write_and_read()).topic == "logged-in"


def test_aiokafka_is_told_of_a_wrong_password(cluster, mechanism):
    async def connect():
        producer = AIOKafkaProducer(**of_python(cluster, mechanism, password="wrong"))
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(AioKafkaError):
        asyncio.run(connect())


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_lists_topics(cluster, mechanism):
    options = of_confluent(cluster, mechanism)
    words = [word for name, value in options.items() for word in ("-X", f"{name}={value}")]
    ran = subprocess.run(
        ["kcat", "-L", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert 'topic "logged-in"' in ran.stdout
