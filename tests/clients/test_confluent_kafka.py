"""confluent-kafka (librdkafka) against three brokers."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

pytestmark = pytest.mark.integration


def produced(cluster, topic: str, count: int, **settings) -> list[tuple[int, int]]:
    """Produce ``count`` records; (partition, offset) of each in the order of delivery."""
    placed, errors = [], []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **settings})

    def on_delivery(error, message) -> None:
        if error is not None:
            errors.append(error)
        else:
            placed.append((message.partition(), message.offset()))

    for number in range(count):
        producer.produce(
            topic, key=b"k%d" % number, value=b"v%d" % number, headers=[("n", b"%d" % number), ("n", None)],
            on_delivery=on_delivery,
        )  # fmt: skip
    producer.flush(30)
    assert errors == []
    return placed


def consumed(cluster, topic: str, partitions: int, count: int) -> list:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    messages, deadline = [], time.monotonic() + 30
    while len(messages) < count and time.monotonic() < deadline:
        messages += [message for message in consumer.consume(500, 1.0) if message.error() is None]
    consumer.close()
    return messages


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_come_back_with_key_value_headers_and_time(cluster, acks) -> None:
    topic = f"confluent-{acks}"
    cluster.create_topic(topic, partitions=2)
    before_ms = int(time.time() * 1_000) - 1
    produced(cluster, topic, 300, acks=acks)
    messages = consumed(cluster, topic, 2, 300)
    assert {(m.key(), m.value()) for m in messages} == {(b"k%d" % n, b"v%d" % n) for n in range(300)}
    for message in messages:
        assert message.headers() == [("n", message.key()[1:]), ("n", None)]
        assert before_ms <= message.timestamp()[1] <= time.time() * 1_000


def test_an_idempotent_producer_gets_an_id_and_gapless_offsets(cluster) -> None:
    cluster.create_topic("confluent-idempotent", partitions=2)
    settings = {"enable.idempotence": True, "linger.ms": 1, "batch.num.messages": 10}
    placed = produced(cluster, "confluent-idempotent", 1_000, **settings)
    for partition in (0, 1):
        offsets = [offset for where, offset in placed if where == partition]
        assert offsets == list(range(len(offsets)))


def test_topics_are_created_described_and_deleted_through_any_broker(cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    new = NewTopic("confluent-admin", 2, 3, config={"segment.bytes": "1048576"})
    admin.create_topics([new])["confluent-admin"].result(30)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "confluent-admin")
    described = admin.describe_configs([resource])[resource].result(30)
    assert described["segment.bytes"].value == "1048576"
    assert len(admin.list_topics(timeout=30).topics["confluent-admin"].partitions) == 2
    admin.delete_topics(["confluent-admin"])["confluent-admin"].result(30)
    deadline = time.monotonic() + 30
    while "confluent-admin" in admin.list_topics(timeout=30).topics:
        assert time.monotonic() < deadline


def test_a_topic_with_too_many_replicas_is_refused_with_a_reason(cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    future = admin.create_topics([NewTopic("confluent-wide", 1, 9)])["confluent-wide"]
    with pytest.raises(Exception, match="9") as caught:
        future.result(30)
    assert caught.value.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR


def test_an_open_cluster_says_that_it_has_neither_rules_nor_passwords(cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    any_rule = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert admin.describe_acls(any_rule).result(30) == []  # librdkafka passes the error over
    with pytest.raises(Exception, match="no authorizer") as caught:
        admin.delete_acls([any_rule])[any_rule].result(30)
    assert caught.value.args[0].code() == KafkaError.SECURITY_DISABLED
    assert admin.describe_user_scram_credentials().result(30) == {}
    with pytest.raises(Exception, match="alice") as caught:
        admin.describe_user_scram_credentials(["alice"])["alice"].result(30)
    assert caught.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


def test_a_record_larger_than_the_broker_takes_is_refused_and_the_others_are_not(cluster) -> None:
    cluster.create_topic("confluent-large", configs={"max.message.bytes": "10000"})
    outcomes = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    for value in (b"small", b"x" * 50_000, b"small again"):
        producer.produce(
            "confluent-large", value=value, on_delivery=lambda e, m: outcomes.append(e and e.code())
        )
        producer.flush(30)
    assert outcomes == [None, KafkaError.MSG_SIZE_TOO_LARGE, None]
