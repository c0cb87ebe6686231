"""DescribeConfigs names the value in effect, its source, and the values that other sources would give."""

import pytest

from sparklog.broker.handlers.configs.described import (
    describe_all_brokers,
    describe_broker,
    describe_topic,
)
from sparklog.broker.handlers.configs.levels import BrokerLevels
from sparklog.model.kafka_numbers import ConfigType
from sparklog.model.settings.config import BrokerConfig, DynamicConfigs

STATIC = BrokerConfig.parse({"log.retention.ms": "4", "num.io.threads": "3"})
DYNAMIC = DynamicConfigs({"log.retention.ms": "2"}, {"log.retention.ms": "3", "message.max.bytes": "100"})
EVERY_RETENTION = [(2, "2"), (3, "3"), (4, "4"), (5, "168")]


def by_name(described):
    return {one.name: one for one in described}


def broker(static=None, dynamic=None, identity=None):
    return by_name(
        describe_broker(
            BrokerLevels(BrokerConfig.parse(static or {}), dynamic or DynamicConfigs(), identity or {})
        )
    )


def topic(overrides, static=STATIC, dynamic=DYNAMIC):
    return by_name(
        describe_topic(overrides, BrokerLevels(static, dynamic), static.with_dynamic(dynamic.merged))
    )


def levels(one):
    return [(synonym.source, synonym.value) for synonym in one.synonyms]


def named_levels(one):
    return [(synonym.name, synonym.source, synonym.value) for synonym in one.synonyms]


def test_a_broker_s_own_setting_goes_over_everybody_s_over_its_start_over_the_default():
    found = by_name(describe_broker(BrokerLevels(STATIC, DYNAMIC)))
    assert levels(found["log.retention.ms"]) == EVERY_RETENTION
    assert (found["log.retention.ms"].value, found["log.retention.ms"].config_source) == ("2", 2)
    assert (found["message.max.bytes"].value, found["message.max.bytes"].config_source) == ("100", 3)
    assert (found["num.io.threads"].value, found["num.io.threads"].config_source) == ("3", 4)
    assert (found["num.partitions"].config_source, found["num.partitions"].is_default) == (5, True)


def test_no_setting_that_topics_have_is_a_secret_also_where_brokers_have_none_of_its_name():
    found = topic({"cleanup.policy": "compact"})
    assert found["cleanup.policy"].value == "compact"
    assert [name for name, one in found.items() if one.is_sensitive] == []


def test_what_is_read_once_at_start_is_read_only():
    found = broker()
    assert found["num.io.threads"].read_only
    assert not found["log.retention.ms"].read_only
    assert not found["log.cleaner.backoff.ms"].read_only


def test_a_topic_s_own_setting_goes_over_the_broker_s_whose_name_is_another():
    found = topic({"retention.ms": "1", "segment.ms": "9"})
    assert levels(found["retention.ms"]) == [(1, "1"), *EVERY_RETENTION]
    assert [one.name for one in found["retention.ms"].synonyms[:2]] == ["retention.ms", "log.retention.ms"]
    assert found["max.message.bytes"].config_source == 3
    assert not any(one.read_only for one in found.values())


def test_a_setting_without_a_broker_s_counterpart_has_a_default_of_its_own():
    assert levels(topic({})["leader.replication.throttled.replicas"]) == [(5, "")]


def test_what_was_set_and_nothing_acts_on_is_shown_too():
    found = topic({"preallocate": "true"})["preallocate"]
    assert (found.value, found.config_source, found.config_type, found.documentation) == (
        "true", 1, ConfigType.BOOLEAN, "Accepted for Kafka's sake; sparklog does not act on it.",
    )  # fmt: skip
    found = broker({"delete.topic.enable": "true"}, DynamicConfigs({}, {"background.threads": "2"}))
    assert found["background.threads"].config_source == 3
    assert not found["background.threads"].read_only
    assert (found["delete.topic.enable"].value, found["delete.topic.enable"].config_source) == ("true", 4)
    assert found["delete.topic.enable"].read_only


def test_all_brokers_have_what_was_set_for_all_and_nothing_else():
    found = by_name(describe_all_brokers(BrokerLevels(STATIC, DYNAMIC)))
    assert {name: one.value for name, one in found.items()} == DYNAMIC.everybodys
    assert levels(found["log.retention.ms"]) == [(3, "3")]


def test_values_under_other_names_are_listed_in_kafka_s_order():
    found = broker({"log.retention.hours": "5", "log.retention.minutes": "7", "log.retention.ms": "9"})
    every = [
        ("log.retention.ms", 4, "9"),
        ("log.retention.minutes", 4, "7"),
        ("log.retention.hours", 4, "5"),
        ("log.retention.hours", 5, "168"),
    ]
    assert named_levels(found["log.retention.ms"]) == every
    assert named_levels(found["log.retention.minutes"]) == every[1:]
    assert named_levels(found["log.retention.hours"]) == every[2:]
    assert found["log.retention.hours"].read_only


def test_a_setting_that_only_another_name_gives_has_no_value_of_its_own_as_in_kafka():
    found = broker({"log.retention.hours": "5"})
    assert (found["log.retention.ms"].value, found["log.retention.ms"].synonyms) == (None, [])
    assert (found["log.retention.hours"].value, found["log.retention.hours"].config_source) == ("5", 4)
    of_topic = topic({}, BrokerConfig.parse({"log.retention.hours": "5"}), DynamicConfigs())["retention.ms"]
    assert (of_topic.value, of_topic.config_source, of_topic.synonyms) == ("18000000", 5, [])


def test_the_flush_interval_lists_the_scheduler_s_after_its_own():
    found = broker({"log.flush.interval.ms": "10", "log.flush.scheduler.interval.ms": "20"})
    assert [level[0] for level in named_levels(found["log.flush.interval.ms"])] == [
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
        "log.flush.scheduler.interval.ms",
    ]
    assert [level[0] for level in named_levels(found["log.flush.scheduler.interval.ms"])] == [
        "log.flush.scheduler.interval.ms"
    ] * 2


@pytest.mark.parametrize(
    "name", ["ssl.truststore.password", "listener.name.external.ssl.truststore.password"]
)
def test_a_secret_that_another_tool_stored_is_described_without_its_value(name):
    found = broker({}, DynamicConfigs({name: "very secret"}))[name]
    assert (found.value, found.is_sensitive, levels(found)) == (None, True, [(2, None)])


def test_settings_of_tls_are_described_with_their_effect_and_secrets_are_hidden():
    of_one = "listener.name.outside.ssl.keystore.password"
    found = broker(
        {
            "listeners": "PLAINTEXT://:0,OUTSIDE://:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
            "ssl.keystore.location": "/keys",
            "ssl.keystore.password": "${env:ALL}",
            of_one: "${env:ONE}",
        }
    )
    for name in ("ssl.keystore.password", of_one):
        one = found[name]
        assert (one.value, one.is_sensitive, one.read_only, levels(one)) == (None, True, True, [(4, None)])
        assert (one.config_type, one.documentation) == (
            ConfigType.PASSWORD,
            "Password of a PKCS12 key store, as a reference.",
        )
    assert (found["ssl.keystore.location"].value, found["ssl.keystore.location"].is_sensitive) == (
        "/keys",
        False,
    )
    assert (found["ssl.client.auth"].value, found["ssl.client.auth"].is_default) == ("none", True)
    assert (found["ssl.truststore.location"].value, found["ssl.cipher.suites"].value) == (None, "")


def test_identity_is_described_as_it_is_and_read_only():
    found = broker(
        {"broker.id": "7"}, identity={"broker.id": "1", "log.dirs": "/a,/b", "listeners": "PLAINTEXT://h:1"}
    )
    for name, value in (("broker.id", "1"), ("log.dirs", "/a,/b"), ("listeners", "PLAINTEXT://h:1")):
        one = found[name]
        assert (one.value, one.config_source, one.read_only) == (value, 4, True)
        assert one.documentation
    assert found["broker.id"].config_type == ConfigType.INT


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("num.partitions", "1", ConfigType.INT),
        ("log.segment.delete.delay.ms", "60000", ConfigType.LONG),
        ("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", ConfigType.DOUBLE),
        ("log.cleanup.policy", "delete", ConfigType.LIST),
        ("log.cleaner.enable", "true", ConfigType.BOOLEAN),
        ("broker.rack", None, ConfigType.STRING),
        ("metrics.port", "-1", ConfigType.INT),
    ],
)
def test_types_and_defaults_are_kafka_s(name, value, kind):
    found = broker()[name]
    assert (found.value, found.config_type) == (value, kind)


def test_a_topic_s_types_are_kafka_s():
    found = topic({})
    assert found["segment.bytes"].config_type == ConfigType.INT
    assert found["retention.bytes"].config_type == ConfigType.LONG
    assert found["cleanup.policy"].config_type == ConfigType.LIST
