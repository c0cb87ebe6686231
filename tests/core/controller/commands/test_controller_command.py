"""What a log line says of a command."""

import uuid

import pytest

from sparklog.core.controller.commands.broker_commands import AllocateProducerIds
from sparklog.core.controller.commands.config_commands import (
    ALL_BROKERS,
    ChangeConfigs,
    ConfigChange,
    SettingChange,
)
from sparklog.core.controller.commands.controller_command import NAME_CHARACTERS_MAX, describe_change
from sparklog.core.controller.commands.partition_commands import (
    AlterReassignments,
    ElectLeaders,
    ListReassignments,
    Move,
)
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DoomedTopic,
    Increase,
    TopicToCreate,
)
from sparklog.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE

ID = uuid.UUID(int=7)
PARTITION = TopicPartition("t", 3)


def topics(*names):
    return tuple(TopicToCreate(name, NO_TOPIC_ID) for name in names)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (CreateTopics(topics("a", "b"), 1), "create topics 'a', 'b'"),
        (DeleteTopics((DoomedTopic("a"), DoomedTopic(None, ID)), 1), f"delete topics 'a', '{ID}'"),
        (CreatePartitions((Increase("a", 3),), 1), "add partitions to topics 'a'"),
        (ElectLeaders(unclean=True, partitions=(PARTITION,)), "elect unclean leaders of 1 partitions"),
        (ElectLeaders(unclean=False), "elect preferred leaders of all partitions"),
        (AlterReassignments((Move(PARTITION, None),)), "move 't-3'"),
    ],
)
def test_a_change_is_described_with_what_it_names(request_, text):
    assert describe_change(request_) == text


def test_the_description_of_a_change_of_settings_leaves_their_values_out():
    secret = (SettingChange("password", "set", "hunter2"),)
    resources = (
        ConfigChange(TOPIC_RESOURCE, "t", secret),
        ConfigChange(BROKER_RESOURCE, ALL_BROKERS, secret),
    )
    assert describe_change(ChangeConfigs(resources)) == "change settings of 't', 'all brokers'"


@pytest.mark.parametrize(
    "request_",
    [
        CreateTopics(topics("a"), 1, validate_only=True),
        CreatePartitions((Increase("a", 3),), 1, validate_only=True),
        ChangeConfigs((), validate_only=True),
        ListReassignments(),
        AllocateProducerIds(BrokerId(1), BrokerEpoch(2)),
    ],
)
def test_what_changes_nothing_that_an_administrator_wants_is_not_described(request_):
    assert describe_change(request_) is None


def test_a_description_is_short_and_of_one_line_whatever_the_names_are():
    names = [f"{number}\n" + "x" * 1_000 for number in range(100)]
    text = describe_change(CreateTopics(topics(*names), 1))
    assert text.endswith(" and 97 more")
    assert "\n" not in text
    assert len(text) < 4 * NAME_CHARACTERS_MAX + 100
