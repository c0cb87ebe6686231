"""Changing settings while everything runs."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.config_commands import (
    ALL_BROKERS,
    ChangeConfigs,
    ConfigChange,
    SettingChange,
)
from sparklog.core.controller.state import znodes
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.model.zookeeper import Create


def change(world, *changes, kind=TOPIC_RESOURCE, name="t", validate_only=False, **more):
    """The result; changes are (setting, operation, value)."""
    settings = tuple(SettingChange(*one) for one in changes)
    resource = ConfigChange(kind, name, settings, **more)
    (result,) = world.command(ChangeConfigs((resource,), validate_only)).resources
    return result


def set_topic(world, **settings):
    return change(world, *((key.replace("_", "."), "set", value) for key, value in settings.items()))


def metadata(world):
    return [one for one in world.done if isinstance(one, act.SendUpdateMetadata)]


def test_a_topic_s_setting_is_written_and_every_broker_hears_of_it(world):
    world.create()
    world.done.clear()
    assert set_topic(world, retention_ms="1000").error == ErrorCode.none
    assert {one.broker for one in metadata(world)} == {1, 2, 3}
    assert all(one.topics[0].configs == {"retention.ms": "1000"} for one in metadata(world))
    assert world.stored().leader_epoch == 0, "nobody's role has changed"
    world.activate()
    assert world.machine.image.topics["t"].configs == {"retention.ms": "1000"}


def test_a_deleted_setting_falls_back_to_the_default(world):
    world.create(retention_ms="1000", segment_bytes="2000000")
    change(world, ("retention.ms", "delete", None))
    assert world.machine.image.topics["t"].configs == {"segment.bytes": "2000000"}


def test_alter_configs_replaces_everything_that_was_set(world):
    world.create(retention_ms="1000", segment_bytes="2000000")
    change(world, ("retention.bytes", "set", "77"), replaces_all=True)
    assert world.machine.image.topics["t"].configs == {"retention.bytes": "77"}


def test_lists_are_appended_to_and_subtracted_from_beginning_with_the_default(world):
    world.create()
    assert (
        change(world, ("cleanup.policy", "append", "compact")).configs["cleanup.policy"] == "delete,compact"
    )
    assert (
        change(world, ("cleanup.policy", "append", "compact")).configs["cleanup.policy"] == "delete,compact"
    )
    assert change(world, ("cleanup.policy", "subtract", "delete")).configs["cleanup.policy"] == "compact"
    refused = change(world, ("retention.ms", "append", "1"))
    assert refused.error == ErrorCode.invalid_config
    assert "append is not allowed for config key: retention.ms" in refused.message


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("retention.ms", "soon", "whole number"),
        ("retenton.ms", "1", "did you mean retention.ms?"),
        ("min.insync.replicas", "0", "at least 1"),
    ],
)
def test_an_illegal_setting_is_refused_and_changes_nothing(world, setting, value, words):
    world.create()
    refused = change(world, (setting, "set", value))
    assert refused.error == ErrorCode.invalid_config
    assert words in refused.message
    assert world.machine.image.topics["t"].configs == {}


def test_a_dry_run_says_what_would_be_and_changes_nothing(world):
    world.create()
    assert change(world, ("retention.ms", "set", "5"), validate_only=True).configs == {"retention.ms": "5"}
    assert world.machine.image.topics["t"].configs == {}


def test_an_unknown_topic_an_unknown_kind_and_a_broker_without_a_number_are_refused(world):
    assert change(world, name="nosuch").error == ErrorCode.unknown_topic_or_partition
    assert change(world, kind=9).error == ErrorCode.invalid_request
    assert change(world, kind=BROKER_RESOURCE, name="first").error == ErrorCode.invalid_request
    world.create()
    assert change(world, ("retention.ms", None, "1")).error == ErrorCode.invalid_request


def test_one_bad_resource_does_not_keep_the_others_from_being_changed(world):
    world.create()
    good = ConfigChange(TOPIC_RESOURCE, "t", (SettingChange("retention.ms", "set", "5"),))
    bad = ConfigChange(TOPIC_RESOURCE, "nosuch", ())
    results = world.command(ChangeConfigs((bad, good))).resources
    assert [one.error for one in results] == [ErrorCode.unknown_topic_or_partition, ErrorCode.none]
    assert world.machine.image.topics["t"].configs == {"retention.ms": "5"}


def test_a_resource_that_is_named_twice_is_not_changed_at_all(world):
    world.create()
    twice = ConfigChange(TOPIC_RESOURCE, "t", (SettingChange("retention.ms", "set", "5"),))
    results = world.command(ChangeConfigs((twice, twice))).resources
    assert [one.error for one in results] == [ErrorCode.invalid_request] * 2
    assert world.machine.image.topics["t"].configs == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([("retention.ms", "set", None)], "Null value not supported for : retention.ms"),
        ([("retention.ms", "set", "1"), ("retention.ms", "set", "2")], "duplicate config keys"),
        ([("retention.ms", None, "1")], "Unknown operations type for retention.ms"),
    ],
)
def test_a_change_without_sense_is_an_invalid_request(world, changes, words):
    world.create()
    refused = change(world, *changes)
    assert refused.error == ErrorCode.invalid_request
    assert words in refused.message


def test_there_are_no_settings_of_all_topics(world):
    refused = change(world, ("retention.ms", "set", "1"), name="")
    assert (refused.error, refused.message) == (
        ErrorCode.invalid_request,
        "Default topic resources are not allowed.",
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("log.retention.ms", "soon", "must be a whole number"),
        ("log.retention.ms", "0", "must be -1 (no limit) or at least 1"),
        ("log.retention.hours", "1", "Cannot update these configs dynamically: log.retention.hours"),
        ("broker.id", "4", "Cannot update these configs dynamically: broker.id"),
        ("delete.topic.enable", "true", "Cannot update these configs dynamically: delete.topic.enable"),
        ("delete.topic.enable", "false", "sparklog deletes topics for every client that asks"),
        ("zookeeper.ssl.crl.enable", "true", "leave it out"),
        ("client.quota.callback.class", "Mine", "takes no class of your own"),
        ("log.retenton.ms", "1", "did you mean log.retention.ms?"),
        ("listener.name.external.ssl.truststore.password", "x", "cannot be changed while brokers run"),
        ("ssl.keystore.location", "/x", "the files that the settings name, which brokers read again"),
        ("ssl.client.auth", "none", "ssl.client.auth cannot be changed while brokers run"),
        ("sasl.enabled.mechanisms", "GSSAPI", "sasl.enabled.mechanisms cannot be changed while brokers run"),
    ],
)
def test_an_illegal_setting_of_a_broker_is_an_invalid_request(world, name, value, words):
    refused = change(world, (name, "set", value), kind=BROKER_RESOURCE, name="1")
    assert refused.error == ErrorCode.invalid_request
    assert words in refused.message
    assert world.machine.image.broker_configs.get("1", {}) == {}


def test_what_another_tool_stored_for_a_broker_is_in_nobody_s_way_and_can_be_deleted(world):
    path, configs = znodes.broker_config_path("1"), {"num.io.threads": "8", "log.retention.ms": "odd"}
    world.zk.multi([Create(path, znodes.encode_configs(configs))])
    world.activate()
    assert change(world, ("log.segment.bytes", "set", "5000"), kind=BROKER_RESOURCE, name="1").error == 0
    deleted = change(world, ("num.io.threads", "delete", None), kind=BROKER_RESOURCE, name="1")
    assert deleted.configs == {"log.retention.ms": "odd", "log.segment.bytes": "5000"}


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_change_whose_write_got_lost_is_made_once(world, lost):
    world.create()
    world.lose_answers = [lost]
    assert change(world, ("cleanup.policy", "append", "compact")).error == ErrorCode.none
    assert world.machine.image.topics["t"].configs == {"cleanup.policy": "delete,compact"}


# -- brokers


def test_a_broker_hears_its_own_settings_over_those_of_all_brokers(world):
    change(world, ("log.retention.ms", "set", "7"), kind=BROKER_RESOURCE, name=ALL_BROKERS)
    world.done.clear()
    change(world, ("log.retention.ms", "set", "8"), kind=BROKER_RESOURCE, name="2")
    everybodys = {"log.retention.ms": "7"}
    told = {one.broker: (one.dynamic_configs, one.default_configs) for one in metadata(world)}
    assert told == {1: ({}, everybodys), 2: ({"log.retention.ms": "8"}, everybodys), 3: ({}, everybodys)}
    world.done.clear()
    world.activate()
    assert {one.broker: (one.dynamic_configs, one.default_configs) for one in metadata(world)} == told


def test_what_is_read_at_start_alone_cannot_be_changed_while_brokers_run(world):
    refused = change(world, ("num.io.threads", "set", "4"), kind=BROKER_RESOURCE, name=ALL_BROKERS)
    assert refused.error == ErrorCode.invalid_request
    assert "Cannot update these configs dynamically: num.io.threads" in refused.message


def test_what_the_controller_acts_on_cannot_differ_between_brokers(world):
    refused = change(world, ("min.insync.replicas", "set", "2"), kind=BROKER_RESOURCE, name="1")
    assert refused.error == ErrorCode.invalid_request
    assert "set it for all brokers" in refused.message


def set_retention(world, broker):
    return change(world, ("log.retention.ms", "set", "8"), kind=BROKER_RESOURCE, name=broker)


def test_settings_of_a_broker_that_never_was_are_refused_with_those_that_were(world):
    world.crash(2)
    refused = set_retention(world, "9")
    assert refused.error == ErrorCode.broker_id_not_registered
    assert refused.message == "no broker with id 9 has ever registered; there are 1, 2, 3"
    assert "9" not in world.machine.image.broker_configs


def test_a_broker_that_is_down_takes_settings_even_from_a_controller_that_never_saw_it(world):
    world.crash(2)
    world.activate()
    assert set_retention(world, "2").error == ErrorCode.none
    assert world.machine.image.broker_configs["2"] == {"log.retention.ms": "8"}


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_broker_that_is_down_takes_settings_though_their_write_got_lost(world, lost):
    world.crash(2)
    world.activate()
    world.lose_answers = [lost]
    assert set_retention(world, "2").error == ErrorCode.none


def test_settings_that_a_broker_without_a_registration_has_can_be_taken_back(world):
    path, configs = znodes.broker_config_path("9"), {"log.retention.ms": "8"}
    world.zk.multi([Create(path, znodes.encode_configs(configs))])
    world.activate()
    assert change(world, ("log.retention.ms", "delete", None), kind=BROKER_RESOURCE, name="9").configs == {}
    assert set_retention(world, "9").error == ErrorCode.broker_id_not_registered


# -- min.insync.replicas, which decides who is eligible


def test_a_new_minimum_begins_a_new_leader_epoch_with_the_same_leader_and_isr(world):
    world.create(min_insync_replicas="1")
    world.done.clear()
    set_topic(world, min_insync_replicas="2")
    state = world.stored()
    assert (state.leader, state.leader_epoch, state.isr) == (1, 1, (1, 2, 3))
    assert state.min_insync_replicas == 2
    roles = [one for one in world.done if isinstance(one, act.SendLeaderAndIsr) and one.broker == 1]
    assert roles[-1].topics[0].partitions[0][1].min_insync_replicas == 2


def test_a_lower_minimum_ends_eligibility_outside_the_isr_before_the_leader_knows(world):
    world.create(min_insync_replicas="2")
    world.propose(1, 1)
    assert world.stored().eligible == (2, 3)
    world.done.clear()
    set_topic(world, min_insync_replicas="1")
    assert world.stored().eligible == ()
    written = next(
        index
        for index, one in enumerate(world.done)
        if isinstance(one, act.WriteZooKeeper) and any("state" in each.path for each in one.operations)
    )
    told = next(index for index, one in enumerate(world.done) if isinstance(one, act.SendLeaderAndIsr))
    assert written < told


def test_a_higher_minimum_makes_no_replica_eligible_that_left_before_it(world):
    world.create(min_insync_replicas="1")
    world.propose(1, 1)
    set_topic(world, min_insync_replicas="2")
    assert (world.stored().isr, world.stored().eligible) == ((1,), ())


def test_a_leader_that_has_not_heard_of_the_new_minimum_cannot_shrink_its_isr_under_it(world):
    world.create(min_insync_replicas="1")
    set_topic(world, min_insync_replicas="2")
    assert world.propose(1, 1, leader_epoch=0).error == ErrorCode.fenced_leader_epoch
    assert world.stored().isr == (1, 2, 3)


def test_a_minimum_changed_by_a_controller_that_died_in_between_is_settled_by_the_next(world):
    world.create(min_insync_replicas="2")
    world.propose(1, 1)
    world.lose_answers = ["after", "before"]
    set_topic(world, min_insync_replicas="1")
    world.activate()
    assert (world.stored().min_insync_replicas, world.stored().eligible) == (1, ())


def test_the_cluster_s_minimum_holds_for_topics_without_their_own(world):
    world.create("own", min_insync_replicas="1")
    world.create("t")
    change(world, ("min.insync.replicas", "set", "2"), kind=BROKER_RESOURCE, name=ALL_BROKERS)
    assert world.stored("t").min_insync_replicas == 2
    assert world.stored("own").min_insync_replicas == 1


def test_unclean_election_allowed_while_nobody_leads_elects_at_once(world):
    world.create(replicas=((1, 2),))
    world.propose(1, 1)
    world.answer_pushes(world.crash(1), ends={(2, TopicPartition("t", 0)): (0, 7)})
    assert world.stored().leader == -1
    set_topic(world, unclean_leader_election_enable="true")
    assert world.stored().leader == 2


@pytest.mark.parametrize("name", ["007", "\u0663", "1" * 5_000, "-1", "one"])
def test_a_broker_goes_by_its_id_and_by_no_other_spelling_of_it(world, name):
    change = SettingChange("log.retention.ms", "set", "1000")
    request = ChangeConfigs((ConfigChange(BROKER_RESOURCE, name, (change,)),))
    assert world.command(request).resources[0].error == ErrorCode.invalid_request


@pytest.mark.parametrize("given", [("set", "delete"), ("append", "delete")])
def test_the_cleanup_policy_of_an_internal_topic_cannot_be_changed(world, given):
    world.create("__consumer_offsets")
    result = change(world, ("cleanup.policy", *given), name="__consumer_offsets")
    assert result.error == ErrorCode.invalid_config
    assert "is always compact" in result.message
    assert world.machine.image.topics["__consumer_offsets"].configs == {"cleanup.policy": "compact"}


def test_an_internal_topic_stays_compacted_when_all_its_settings_are_replaced(world):
    world.create("__consumer_offsets", retention_ms="1000")
    changes = ("segment.bytes", "set", "2000000")
    result = change(world, changes, name="__consumer_offsets", replaces_all=True)
    expected = {"segment.bytes": "2000000", "cleanup.policy": "compact"}
    assert (result.error, result.configs) == (ErrorCode.none, expected)
    assert world.machine.image.topics["__consumer_offsets"].configs == expected


def test_a_deleted_cleanup_policy_of_an_internal_topic_is_compact_again(world):
    world.create("__consumer_offsets")
    result = change(world, ("cleanup.policy", "delete", None), name="__consumer_offsets")
    assert (result.error, result.configs) == (ErrorCode.none, {"cleanup.policy": "compact"})
