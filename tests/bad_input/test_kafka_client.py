"""Kafka clients: what librdkafka's user is told, and what a broker answers to what no good client sends."""

import logging
import re
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from sparklog.client.changes import ClusterChanges
from sparklog.model.errors import ErrorCode
from sparklog.network.dialing.connection import Connection
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from sparklog.wire.codec import decode_response
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from sparklog.wire.versions import KNOWN_VERSIONS
from tests.waiting import until

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]
Logged = Callable[[str], str]

GOOD = build_records_batch([Record(value=b"x")], now_ms=1_000)
TRANSACTIONAL = build_records_batch(
    [Record(value=b"x")],
    now_ms=1_000,
    producer_id=9,
    producer_epoch=0,
    base_sequence=0,
    is_transactional=True,
)


@pytest.fixture(scope="module")
def admin(brokers: InProcessCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": brokers.bootstrap_servers})


def typed(columns: str, **more: str) -> NewTopic:
    """A topic with these columns."""
    return NewTopic("new", 1, 1, config={"sparklog.schema": columns, **more})


TOPICS = [
    ("an invalid topic name", NewTopic("my events", 1, 1), ""),
    (
        "a replication factor above the number of brokers",
        NewTopic("new", 1, 4),
        "a broker that is down does not count",
    ),
    ("a topic that there is already", NewTopic("t", 1, 1), ""),
    (
        "a name that differs from another topic's by . and _ only",
        NewTopic("a_b", 1, 1),
        "",
    ),
    (
        "a misspelt setting of a topic",
        NewTopic("new", 1, 1, config={"retenton.ms": "60000"}),
        "[the list](settings.md#of-a-topic)",
    ),
    (
        "a setting's value that cannot be",
        NewTopic("new", 1, 1, config={"min.insync.replicas": "0"}),
        "[what it may be](settings.md)",
    ),
    ("a type of Spark that a topic cannot have", typed("id bigint, s struct<a: variant>"), ""),
    ("columns whose names differ by case only", typed("id bigint, ID bigint"), ""),
    ("a column with a name that reads append", typed("_Offset bigint"), ""),
    ("no columns", typed(""), ""),
    ("too many columns", typed(", ".join(f"c{number} int" for number in range(1_001))), ""),
    ("a type of too many levels", typed(f"a {'array<' * 32}int{'>' * 32}"), ""),
    (
        "a key with more than one value",
        typed("a array<int>", **{"sparklog.key": "a"}),
        "or a column of its own",
    ),
    ("a time that is none", typed("a date", **{"sparklog.timestamp": "a"}), ""),
    ("compaction of a typed topic", typed("id bigint", **{"cleanup.policy": "compact"}), ""),
]


@pytest.mark.parametrize(("wrong", "topic", "do"), TOPICS, ids=[row[0] for row in TOPICS])
def test_a_topic_is_not_created(
    wrong: str,
    topic: NewTopic,
    do: str,
    admin: AdminClient,
    brokers: InProcessCluster,
    case: Case,
    refused: Refused,
) -> None:
    if topic.topic == "a_b" and "a.b" not in brokers.admin.list_topics():
        brokers.create_topic("a.b")
    case(wrong, "Kafka client", refused(lambda: admin.create_topics([topic])[topic.topic].result(20)), do)
    assert "new" not in brokers.admin.list_topics()


def test_a_topic_is_deleted_that_is_not_there(admin: AdminClient, case: Case, refused: Refused) -> None:
    case(
        "deletion of an unknown topic",
        "Kafka client",
        refused(lambda: admin.delete_topics(["evnts"])["evnts"].result(20)),
        "correct the name",
    )


def test_a_rule_is_added_where_there_are_none(admin: AdminClient, case: Case, refused: Refused) -> None:
    rule = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    case(
        "a rule of access (ACL)",
        "Kafka client",
        refused(lambda: admin.create_acls([rule])[rule].result(20)),
        "let only those reach the ports who may do everything",
    )


def produced(servers: str, value: bytes, **settings: Any) -> KafkaException:
    """What the delivery callback is told about one record for t-0."""
    told: list[Any] = []
    names = {name.replace("_", "."): setting for name, setting in settings.items()}
    producer = Producer({"bootstrap.servers": servers, **names})
    producer.produce("t", value, partition=0, on_delivery=lambda error, _: told.append(error))
    assert producer.flush(20) == 0
    return KafkaException(told[0])


def test_a_message_is_too_large(brokers: InProcessCluster, case: Case) -> None:
    case(
        "a message larger than `message.max.bytes`",
        "Kafka client",
        produced(brokers.bootstrap_servers, b"x" * 2_000_000, message_max_bytes=3_000_000),
        "raise the topic's `max.message.bytes`, or send less",
    )


@pytest.fixture
def consumed(brokers: InProcessCluster) -> Iterator[Callable[[str, int], KafkaException]]:
    """The error event of a consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers.bootstrap_servers,
            "group.id": "bad-input",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )

    def consume(topic: str, offset: int) -> KafkaException:
        consumer.assign([TopicPartition(topic, 0, offset)])
        message = consumer.poll(20)
        assert message is not None
        return KafkaException(message.error())

    yield consume
    consumer.close()


def test_a_client_is_told_of_an_unknown_topic(admin: AdminClient, case: Case) -> None:
    error = admin.list_topics("evnts", timeout=20).topics["evnts"].error
    case("an unknown topic", "Kafka client", KafkaException(error), "correct the name, or create the topic")


def test_a_consumer_is_told_of_an_offset_out_of_range(
    consumed: Callable[[str, int], KafkaException], brokers: InProcessCluster, case: Case
) -> None:
    case(
        "an offset out of range",
        "Kafka client",
        consumed("t", 99),
        "set `auto.offset.reset` to earliest or latest",
        {f"broker {brokers.wait_for_leader('t')}": "broker 1"},
    )


# What only a broken client, or none at all, sends


def answer(connection: Connection, records: bytes, *, version: int | None = None, **more: Any) -> Any:
    request = ProduceRequest(
        acks=more.pop("acks", -1),
        timeout_ms=500,
        topic_data=[
            ProduceTopic(
                name=more.pop("topic", "t"), partition_data=[ProducePartition(index=0, records=records)]
            )
        ],
        **more,
    )
    response = connection.call(request, version=version, timeout_ms=5_000)
    return response.responses[0].partition_responses[0]


def told(partition: Any) -> str:
    assert partition.base_offset == -1
    code = partition.error_code.name.upper()
    return f"{code}: {partition.error_message}" if partition.error_message else code


def old_message() -> bytes:
    """A message set of format v1, as clients before Kafka 0.11 send it."""
    body = struct.pack(">bbqii", 1, 0, 1_000, -1, 1) + b"x"
    return struct.pack(">qiI", 0, 4 + len(body), zlib.crc32(body)) + body


def damaged() -> bytes:
    return GOOD[:-1] + bytes([GOOD[-1] ^ 1])


PRODUCES = [
    (
        "a batch damaged on its way",
        damaged(),
        {},
        "nothing: clients send it again; if often, look at the producer's machine",
    ),
    ("a batch that is cut off", GOOD[:40], {}, "mend the client"),
    (
        "a batch of many bytes",
        build_records_batch([Record(value=bytes(2_000_000))], now_ms=1_000),
        {},
        "",
    ),
    (
        "messages of format 1 in a request of Kafka 0.11 or newer",
        old_message(),
        {},
        "only Produce 0 to 2 carries them",
    ),
    ("acks that there are not", GOOD, {"acks": 2}, ""),
    ("an unknown topic", GOOD, {"topic": "evnts"}, "correct the name, or create the topic"),
    (
        "a batch of a transaction without a `transactional.id`",
        TRANSACTIONAL,
        {},
        "",
    ),
]


@pytest.mark.parametrize(("wrong", "records", "more", "do"), PRODUCES, ids=[row[0] for row in PRODUCES])
def test_a_produce_request_is_refused(
    wrong: str, records: bytes, more: dict[str, Any], do: str, connection: Connection, case: Case
) -> None:
    case(wrong, "produce response", told(answer(connection, records, **more)), do)


def test_a_typed_topic_takes_no_records(brokers: InProcessCluster, case: Case) -> None:
    brokers.create_topic("typed", schema="id bigint")
    leader = brokers.brokers[brokers.wait_for_leader("typed")].node
    with Connection.open(leader.host, leader.port, client_id="bad-input", timeout_ms=5_000) as connection:

        def refused() -> Any:
            found = answer(connection, GOOD, topic="typed")
            is_told = found.error_code is not ErrorCode.unknown_topic_or_partition  # which is tried again
            return found if is_told else None

        case(
            "a record for a typed topic",
            "produce response",
            told(until(refused)),
            "write to an untyped topic",
        )


@pytest.mark.parametrize("version", range(3))
def test_a_damaged_message_of_an_old_producer_is_refused_so_that_it_tries_again(
    connection: Connection, version: int
) -> None:
    assert answer(connection, old_message(), version=version).error_code is ErrorCode.none
    flipped = old_message()[:-1] + b"y"
    assert answer(connection, flipped, version=version).error_code is ErrorCode.corrupt_message


def test_a_write_with_too_few_replicas_in_sync_is_refused(brokers: InProcessCluster, case: Case) -> None:
    brokers.create_topic("strict-too", configs={"min.insync.replicas": "3"})
    brokers.kill(3)
    leader = brokers.brokers[brokers.wait_for_leader("strict-too", other_than=3)].node
    with Connection.open(leader.host, leader.port, client_id="bad-input", timeout_ms=5_000) as connection:
        partition = answer(connection, GOOD, topic="strict-too")
        # The broker has not heard yet that it leads, or that broker 3 is out of the ISR.
        while partition.error_code in (
            ErrorCode.not_leader_or_follower,
            ErrorCode.not_enough_replicas_after_append,
        ):
            partition = answer(connection, GOOD, topic="strict-too")
    case(
        "fewer replicas in sync than `min.insync.replicas`",
        "produce response",
        told(partition),
        "clients try on meanwhile",
    )
    brokers.revive(3)
    brokers.wait_for_isr("strict-too", 3)
    brokers.wait_for_isr("kept", 3)


def test_a_disk_has_less_free_than_the_floor(
    brokers: InProcessCluster, connection: Connection, case: Case, logged: Logged
) -> None:
    leader = brokers.wait_for_leader("t")
    changes, floor = ClusterChanges(brokers.client), "log.dirs.free.min.bytes"
    changes.alter_broker_configs(leader, {floor: str(1 << 60)})
    try:
        while (partition := answer(connection, GOOD)).error_code is ErrorCode.none:
            pass  # the broker has not heard of the setting yet
        said, line = told(partition), logged("produces to its partitions are refused")
    finally:
        changes.alter_broker_configs(leader, {floor: None})
    while answer(connection, GOOD).error_code is not ErrorCode.none:
        pass
    wrong = "a disk with less free than `log.dirs.free.min.bytes`"
    do = "[make room](operating.md#a-disk-that-gets-full); clients try on"
    hide = {str(1 << 60): "1000000000", f"{brokers.root}/broker-{leader}/0": "/data"}
    for text, where in ((said, "produce response"), (line, "broker's log")):
        free_bytes = text.split(" has ")[1].split(" ")[0]
        case(wrong, where, text, do, {**hide, free_bytes: "987654321"})


def framed(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def header(api_key: int, version: int) -> bytes:
    return struct.pack(">hhih", api_key, version, 7, -1)


NO_REQUESTS = [
    ("HTTP on a broker's port", b"GET / HTTP/1.1\r\n\r\n", "1195725856 bytes", "use a Kafka client"),
    (
        "TLS on a broker's port",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "369295618 bytes",
        "`security.protocol=PLAINTEXT`",
    ),
    (
        "a frame larger than `socket.request.max.bytes`",
        struct.pack(">i", 2**31 - 1),
        "2147483647 bytes",
        "send less, or raise it; no memory was taken",
    ),
    ("a negative frame size", struct.pack(">i", -5), "-5 bytes", "mend the client"),
    ("an empty frame", framed(), "frame has 0", "mend the client"),
    ("garbage in a frame", framed(bytes(range(20))), "of 20", "mend the client"),
    (
        "a version that the broker does not have",
        framed(header(3, 99)),
        "version 99",
        "nothing: clients ask for versions first",
    ),
    (
        "a request that brokers do not serve: a change of features",
        framed(header(57, 0)),
        "API key 57",
        "nothing: clients ask for versions first",
    ),
]


@pytest.mark.parametrize(("wrong", "sent", "words", "do"), NO_REQUESTS, ids=[row[0] for row in NO_REQUESTS])
def test_what_is_no_request_ends_its_connection_and_no_other(
    wrong: str, sent: bytes, words: str, do: str, connection: Connection, case: Case, logged: Logged
) -> None:
    host, port = connection.peer.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as bad:
        bad.sendall(sent)
        assert bad.recv(1) == b""
        line = logged(words)
    number = line.split()[1]
    case(wrong, "broker's log", line, do, {f"connection {number} from": "connection 7 from"})
    assert answer(connection, GOOD).error_code is ErrorCode.none


def test_a_client_that_stops_in_the_middle_of_a_frame_is_closed_as_idle(
    case: Case, logged: Logged, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sparklog.network")
    with InProcessCluster(brokers=1, settings={"connections.max.idle.ms": "1000"}) as impatient:
        host, port = impatient.bootstrap_servers.split(":")
        stalled = [socket.create_connection((host, int(port)), timeout=20) for _ in range(20)]
        for number, client in enumerate(stalled):
            client.sendall((struct.pack(">i", 50_000_000) + bytes(1_000))[: 1 + number * 40])
        impatient.create_topic("meanwhile")
        impatient.produce("meanwhile", ["x"])
        for client in stalled:
            assert client.recv(1) == b""
            client.close()
        assert [record.value for record in impatient.consume("meanwhile")] == [b"x"]
    line = re.sub(r"\d+ ms", "600000 ms", logged("PLAINTEXT is closed: no traffic"))
    number = line.split()[1]
    case(
        "a client that stops in the middle of a frame",
        "broker's log",
        line,
        "nothing: it holds what it has sent, for `connections.max.idle.ms`",
        {f"connection {number} from": "connection 7 from"},
    )


def test_a_version_of_api_versions_that_nobody_has_is_answered_with_what_there_is(
    connection: Connection, case: Case
) -> None:
    host, port = connection.peer.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(framed(header(18, 99)))
        (size,) = struct.unpack(">i", client.recv(4))
        response = decode_response(ApiVersionsRequest.API_KEY, 0, memoryview(client.recv(size)))[1]
    assert response.error_code is ErrorCode.unsupported_version
    theirs = next(key for key in response.api_keys if key.api_key == ApiVersionsRequest.API_KEY)
    case(
        "a client newer than the broker",
        "ApiVersions response",
        f"{response.error_code.name.upper()}: {KNOWN_VERSIONS[18].name} {theirs.min_version} to "
        f"{theirs.max_version}, and so on for all APIs",
        "nothing: the client goes on with versions of both",
    )
