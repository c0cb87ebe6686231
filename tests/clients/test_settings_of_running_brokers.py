"""Settings of running brokers, seen and changed by the admin clients of librdkafka and of kafka-python."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kafka.admin import ConfigResource as KafkaPythonResource
from kafka.admin import ConfigResourceType, KafkaAdminClient

from sparklog.client.changes import ClusterChanges
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

WAIT_S = 30
NO_KNOWN_TYPE = "allow.everyone.if.no.acl.found"
"""Without a type of Kafka's it counts as a secret. Passwords are refused: no promise of theirs is kept."""


@pytest.fixture(scope="module")
def cluster():
    """Its brokers' settings change, so no other test uses it."""
    settings = {
        "log.retention.hours": "5",
        "delete.topic.enable": "true",
        NO_KNOWN_TYPE: "false",
    }
    with InProcessCluster(brokers=2, settings=settings) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster):
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


def resource(kind, name, **entries):
    """``entries``: a value each, or None to delete; ``_`` stands for ``.``."""
    operations = [
        ConfigEntry(
            key.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in entries.items()
    ]
    return ConfigResource(kind, name, incremental_configs=operations)


def describe(admin, kind, name):
    asked = ConfigResource(kind, name)
    return admin.describe_configs([asked])[asked].result(WAIT_S)


def alter(admin, kind, name, *, validate_only=False, **entries):
    (future,) = admin.incremental_alter_configs(
        [resource(kind, name, **entries)], validate_only=validate_only
    ).values()
    future.result(WAIT_S)


def alter_all_brokers(cluster, **entries):
    """librdkafka takes no empty name, which stands for all brokers."""
    changes = {name.replace("_", "."): value for name, value in entries.items()}
    ClusterChanges(cluster.client).alter_broker_configs(None, changes)


def refusal(admin, kind, name, **entries):
    with pytest.raises(KafkaException) as refused:
        alter(admin, kind, name, **entries)
    return refused.value.args[0]


def produce(cluster, topic, value, *, timestamp_ms=0):
    """The error's code, or None."""
    outcome = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce(
        topic,
        value,
        timestamp=timestamp_ms,
        on_delivery=lambda error, _: outcome.append(error and error.code()),
    )
    producer.flush(WAIT_S)
    return outcome[0]


def stamps(cluster, topic, count):
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, WAIT_S)
    consumer.close()
    return [message.timestamp()[1] for message in messages]


def test_a_broker_is_described_with_sources_types_identity_and_without_secrets(admin, cluster):
    found = describe(admin, ResourceType.BROKER, "1")
    assert (found["broker.id"].value, found["broker.id"].is_read_only) == ("1", True)
    assert str(cluster.root) in found["log.dirs"].value
    assert found["listeners"].value.startswith("PLAINTEXT://127.0.0.1:")
    assert found["log.retention.hours"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert found["log.retention.ms"].value is None
    assert (found[NO_KNOWN_TYPE].value, found[NO_KNOWN_TYPE].is_sensitive) == (
        None,
        True,
    )
    assert found["num.io.threads"].is_read_only
    assert not found["log.cleaner.backoff.ms"].is_read_only


def test_a_setting_changes_for_one_broker_and_for_all_and_is_deleted_again(admin, cluster):
    def source(broker):
        entry = describe(admin, ResourceType.BROKER, broker)["log.segment.bytes"]
        return entry.value, ConfigSource(entry.source)

    alter_all_brokers(cluster, log_segment_bytes="20000")
    alter(admin, ResourceType.BROKER, "2", log_segment_bytes="30000")
    until(lambda: source("1") == ("20000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG))
    until(lambda: source("2") == ("30000", ConfigSource.DYNAMIC_BROKER_CONFIG))
    synonyms = describe(admin, ResourceType.BROKER, "2")["log.segment.bytes"].synonyms
    assert list(synonyms) == ["log.segment.bytes"]
    alter(admin, ResourceType.BROKER, "2", log_segment_bytes=None)
    until(lambda: source("2") == ("20000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG))
    alter_all_brokers(cluster, log_segment_bytes=None)
    until(lambda: source("1") == ("1073741824", ConfigSource.DEFAULT_CONFIG))


def test_what_cannot_change_is_refused_with_the_reason_and_a_dry_run_changes_nothing(admin):
    refused = refusal(admin, ResourceType.BROKER, "1", num_io_threads="3")
    assert refused.code() == KafkaError.INVALID_REQUEST
    assert "Cannot update these configs dynamically: num.io.threads" in refused.str()
    assert refusal(admin, ResourceType.BROKER, "1", broker_id="9").code() == KafkaError.INVALID_REQUEST
    assert (
        refusal(admin, ResourceType.BROKER, "1", message_max_bytes="-1").code() == KafkaError.INVALID_REQUEST
    )
    cluster_wide = refusal(admin, ResourceType.TOPIC, "no-such-topic", retention_ms="1")
    assert cluster_wide.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    alter(admin, ResourceType.BROKER, "1", validate_only=True, message_max_bytes="77")
    assert describe(admin, ResourceType.BROKER, "1")["message.max.bytes"].value == "1048588"


def test_a_limit_of_messages_holds_for_the_next_one(admin, cluster):
    cluster.create_topic("limited")
    alter_all_brokers(cluster, message_max_bytes="1000")
    until(lambda: produce(cluster, "limited", b"x" * 2_000) == KafkaError.MSG_SIZE_TOO_LARGE)
    alter_all_brokers(cluster, message_max_bytes=None)
    until(lambda: produce(cluster, "limited", b"x" * 2_000) is None)


def test_rules_of_timestamps_hold_for_the_next_record(admin, cluster):
    cluster.create_topic("stamped")
    old_ms = int(time.time() * 1_000) - 3_600_000
    assert produce(cluster, "stamped", b"v", timestamp_ms=old_ms) is None
    alter_all_brokers(cluster, log_message_timestamp_before_max_ms="1000")
    until(lambda: produce(cluster, "stamped", b"v", timestamp_ms=old_ms) == KafkaError.INVALID_TIMESTAMP)
    alter_all_brokers(
        cluster,
        log_message_timestamp_before_max_ms=None,
        log_message_timestamp_after_max_ms="1000",
    )
    future_ms = int(time.time() * 1_000) + 3_600_000
    until(lambda: produce(cluster, "stamped", b"v", timestamp_ms=future_ms) == KafkaError.INVALID_TIMESTAMP)
    alter_all_brokers(
        cluster,
        log_message_timestamp_after_max_ms=None,
        log_message_timestamp_type="LogAppendTime",
    )
    cluster.create_topic("stamped-by-brokers")
    until(
        lambda: (
            describe(admin, ResourceType.TOPIC, "stamped-by-brokers")["message.timestamp.type"].value
            == "LogAppendTime"
        )
    )
    assert produce(cluster, "stamped-by-brokers", b"v", timestamp_ms=old_ms) is None
    assert stamps(cluster, "stamped-by-brokers", 1)[0] > old_ms + 1_000_000
    alter_all_brokers(cluster, log_message_timestamp_type=None)


def test_kafka_python_describes_and_alters_topics_and_brokers(cluster):
    cluster.create_topic("kafka-python-settings")
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    changed = KafkaPythonResource(
        ConfigResourceType.TOPIC, "kafka-python-settings", configs={"retention.ms": "5"}
    )
    admin.alter_configs([changed])
    asked = [
        KafkaPythonResource(ConfigResourceType.TOPIC, "kafka-python-settings"),
        KafkaPythonResource(ConfigResourceType.BROKER, "2"),
    ]
    until(lambda: "'retention.ms'" in str(admin.describe_configs(asked)), timeout_s=WAIT_S)
    of_broker = admin.describe_configs(asked[1:], config_filter="all")["broker"]["2"]
    assert (of_broker["broker.id"]["value"], of_broker["broker.id"]["read_only"]) == ("2", True)
    fixed = KafkaPythonResource(ConfigResourceType.BROKER, "2", configs={"num.io.threads": "3"})
    with pytest.raises(ValueError, match=r"num\.io\.threads"):  # it is described as read-only
        admin.alter_configs([fixed])
    admin.close()


def test_an_internal_topic_that_a_client_creates_is_that_of_the_coordinators(cluster, admin):
    """A client that asks for metadata of a topic creates it; the policy cannot be changed after that."""
    name = "__consumer_offsets"
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    until(lambda: producer.list_topics(name, WAIT_S).topics[name].partitions, "the topic to be created")
    found = describe(admin, ResourceType.TOPIC, name)
    assert found["cleanup.policy"].value == "compact"
    assert len(admin.list_topics(timeout=WAIT_S).topics[name].partitions) == 5
    change = resource(ResourceType.TOPIC, name, cleanup_policy="delete")
    with pytest.raises(KafkaException, match="is always compact") as refused:
        admin.incremental_alter_configs([change])[change].result(WAIT_S)
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG
