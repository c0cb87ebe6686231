"""Columns of typed topics are written with the topic, outlive the controller, and go with the topic."""

from dataclasses import replace

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.config_commands import (
    ALL_BROKERS,
    ChangeConfigs,
    ConfigChange,
    SettingChange,
)
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DescribeSchemas,
    DoomedTopic,
    Increase,
)
from sparklog.core.controller.state import znodes
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.schema_settings import schema_settings, settings_of
from sparklog.model.zookeeper import Create, Delete

SETTINGS = schema_settings("id bigint NOT NULL, mag double", key="id")


def create(world, settings=SETTINGS, name="t"):
    topic = world.new_topic(name, configs=settings)
    done = world.submit(CreateTopics((topic,), 10_000))
    return topic.id, done


def refusal(world, settings, name="t"):
    _, done = create(world, settings, name)
    (result,) = world.answer_in(done).topics
    assert name not in world.machine.image.topics
    return result.error, result.message


def described(world, *names):
    return world.command(DescribeSchemas(names)).topics


def test_the_columns_are_written_with_the_topic_under_its_id(world):
    topic_id, done = create(world)
    (write,) = (one for one in done if isinstance(one, act.WriteZooKeeper))
    written = {one.path: one.data for one in write.operations if isinstance(one, Create)}
    assert {znodes.schema_path(topic_id), znodes.topic_path("t"), znodes.state_path("t", 0)} <= written.keys()
    document = SchemaDocument.decode(written[znodes.schema_path(topic_id)])
    assert settings_of(document) == SETTINGS
    kept = znodes.decode_configs(znodes.topic_config_path("t"), written[znodes.topic_config_path("t")])
    assert kept == {"cleanup.policy": "delete"}


def test_brokers_are_sent_the_version_and_not_the_columns(world):
    _, done = create(world)
    sends = [one for one in done if isinstance(one, act.SendUpdateMetadata | act.SendLeaderAndIsr)]
    updates = [topic for send in sends for topic in send.topics]
    assert {topic.schema_version for topic in updates} == {1}
    assert all("sparklog.schema" not in topic.configs for topic in updates)


def test_a_controller_that_takes_over_knows_the_columns(world):
    topic_id, _ = create(world)
    before = described(world, "t")
    world.activate()
    assert described(world, "t") == before
    assert (before[0].id, before[0].version) == (topic_id, 1)


def test_a_controller_does_not_start_without_columns_that_a_topic_has(world):
    topic_id, _ = create(world)
    world.zk.multi([Delete(znodes.schema_path(topic_id))])
    with pytest.raises(
        SparklogError, match=f"/schemas/{topic_id} is missing, which has the columns of a topic"
    ):
        world.activate()


def test_topics_without_columns_and_unknown_ones_are_told_apart(world):
    world.create("plain")
    plain, unknown = described(world, "plain", "unknown")
    assert (plain.error, plain.version, plain.document) == (ErrorCode.none, 0, b"")
    assert unknown.error is ErrorCode.unknown_topic_or_partition


def test_the_columns_are_deleted_with_the_topic(world):
    topic_id, done = create(world)
    world.answer_pushes(done)
    world.answer_pushes(world.submit(DeleteTopics((DoomedTopic("t"),), 10_000)))
    assert "t" not in world.machine.image.topics
    assert world.zk.get(znodes.schema_path(topic_id)) is None


def test_additional_partitions_keep_the_version_of_the_columns(world):
    _, done = create(world)
    world.answer_pushes(done)
    world.submit(CreatePartitions((Increase("t", 3),), 10_000))
    node = znodes.decode_topic("t", world.zk.get(znodes.topic_path("t")).data)
    assert (len(node.assignments), node.schema_version) == (3, 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sparklog.key": "id"}, "sparklog.key without columns: set sparklog.schema too"),
        ({"sparklog.schema": None}, "sparklog.schema without columns: set sparklog.schema too"),
        ({"sparklog.schema": "_offset int"}, "the name is reserved"),
        ({**SETTINGS, "cleanup.policy": "compact"}, "cleanup.policy of typed topic 't' is always delete"),
        ({**SETTINGS, "retention.ms": "x"}, "retention.ms='x': must be a whole number"),
    ],
)
def test_settings_that_a_typed_topic_cannot_have_are_refused(world, settings, words):
    error, message = refusal(world, settings)
    assert error is ErrorCode.invalid_config
    assert words in message


def test_internal_topics_have_no_columns(world):
    error, message = refusal(world, SETTINGS, "__consumer_offsets")
    assert error is ErrorCode.invalid_config
    assert message == "internal topic '__consumer_offsets' has no columns: do not set sparklog.schema"


def test_a_topic_node_with_columns_that_is_too_large_for_one_write_is_refused(world, monkeypatch):
    monkeypatch.setattr("sparklog.core.controller.topics.topic_creation.WRITE_BYTES_MAX", 500)
    error, message = refusal(world, SETTINGS)
    assert error is ErrorCode.invalid_config
    assert message.startswith("Typed topic 't' takes ")


def change(world, kind, name, changes, *, replaces_all=False):
    asked = tuple(SettingChange(one, "set", value) for one, value in changes.items())
    request = ChangeConfigs((ConfigChange(kind, name, asked, replaces_all=replaces_all),))
    return world.command(request).resources[0]


def test_brokers_that_compact_by_default_need_another_policy_for_a_typed_topic(world):
    assert change(world, BROKER_RESOURCE, ALL_BROKERS, {"log.cleanup.policy": "compact"}).error == 0
    error, message = refusal(world, SETTINGS)
    assert error is ErrorCode.invalid_config
    assert message.startswith("cleanup.policy=compact is the brokers' default")
    create(world, {**SETTINGS, "cleanup.policy": "delete"})
    assert world.machine.image.topics["t"].configs == {"cleanup.policy": "delete"}


def test_a_typed_topic_keeps_its_policy_whatever_becomes_of_the_others(world):
    create(world)
    assert change(world, TOPIC_RESOURCE, "t", {"cleanup.policy": "compact"}).error is ErrorCode.invalid_config
    assert change(world, TOPIC_RESOURCE, "t", {}, replaces_all=True).error is ErrorCode.none
    assert world.machine.image.topics["t"].configs == {"cleanup.policy": "delete"}


def test_what_is_shown_of_the_columns_may_be_sent_back(world):
    create(world)
    before = world.zk.nodes
    shown = {**SETTINGS, "cleanup.policy": "delete"}
    assert change(world, TOPIC_RESOURCE, "t", shown, replaces_all=True).error is ErrorCode.none
    assert world.zk.nodes == before


@pytest.mark.parametrize(
    ("name", "operation", "value"),
    [
        ("sparklog.schema", "set", "id bigint"),
        ("sparklog.schema", "delete", None),
        ("sparklog.schema", "append", "x int"),
        ("sparklog.timestamp", "set", "id"),
    ],
)
def test_columns_do_not_change_as_settings(world, name, operation, value):
    create(world)
    one = ConfigChange(TOPIC_RESOURCE, "t", (SettingChange(name, operation, value),))
    (result,) = world.command(ChangeConfigs((one,))).resources
    assert (result.error, result.message) == (
        ErrorCode.invalid_config,
        f"{name} of topic 't' cannot be changed as a setting: leave it as it is",
    )
    world.create("plain")
    (result,) = world.command(ChangeConfigs((replace(one, name="plain"),))).resources
    assert result.message == f"{name}: topic 'plain' has no columns; they are given at its creation"
