"""Settings: typed values of known names, warnings for what Kafka has and we do not, errors for the rest."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import (
    BrokerConfig,
    check_broker_settings,
    check_dynamic_settings,
    check_topic_settings,
)
from sparklog.model.settings.kafka_names import KAFKA_BROKER_PROPERTIES, KAFKA_TOPIC_PROPERTIES
from sparklog.model.settings.setting import Setting, render
from sparklog.model.settings.settings_table import BROKER_NAMES, BROKER_SETTINGS, TOPIC_NAMES, TOPIC_SETTINGS


def test_given_values_stand_over_defaults() -> None:
    config = BrokerConfig.parse({"min.insync.replicas": "2", "auto.create.topics.enable": "FALSE"})
    assert config.get_int("min.insync.replicas") == 2
    assert config.get_bool("auto.create.topics.enable") is False
    assert config.get_int("replica.lag.time.max.ms") == 30_000


def test_a_topic_takes_its_own_value_then_the_brokers_then_the_default() -> None:
    broker = BrokerConfig.parse({"log.segment.bytes": "5000"})
    assert broker.topic({"segment.bytes": "7000"}).get_int("segment.bytes") == 7_000
    assert broker.topic({}).get_int("segment.bytes") == 5_000
    assert BrokerConfig().topic({}).get_int("segment.bytes") == 1_073_741_824


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("min.insync.replicas", "two", r"min\.insync\.replicas='two': must be a whole number"),
        ("min.insync.replicas", "0", r"min\.insync\.replicas=0: must be at least 1"),
        ("num.io.threads", "1000", r"num\.io\.threads=1000: must be at most 64"),
        (
            "auto.create.topics.enable",
            "maybe",
            r"auto\.create\.topics\.enable='maybe': must be true or false",
        ),
        ("log.cleanup.policy", "shred", r"log\.cleanup\.policy='shred': must be one of delete, compact"),
    ],
)
def test_an_illegal_value_is_refused_with_its_name_and_the_bounds(name, value, message) -> None:
    with pytest.raises(ConfigError, match=message):
        check_broker_settings({name: value})


def test_a_compacted_topic_is_not_copied_to_a_remote_store() -> None:
    both = {"remote.storage.enable": "true", "cleanup.policy": "compact,delete"}
    with pytest.raises(ConfigError, match=r"cleanup\.policy=compact,delete: compacted topics are not copied"):
        check_topic_settings(both)
    assert check_topic_settings({**both, "remote.storage.enable": "false"}).warnings == ()


def test_a_layout_of_remote_segments_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"remote\.log\.layout='parquet': must be one of arrow, raw"):
        check_topic_settings({"remote.log.layout": "parquet"})


def test_a_misspelt_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown broker setting 'min\.insync\.replica'.*min\.insync\.replicas"
    ):
        check_broker_settings({"min.insync.replica": "2"})
    with pytest.raises(ConfigError, match=r"unknown topic setting 'retention\.msec'.*retention\.ms"):
        check_topic_settings({"retention.msec": "2"})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        *((broker, topic) for broker, topic in TOPIC_NAMES.items() if broker != topic),
        ("log.retenton.ms", "retention.ms"),
        ("retention.hours", "retention.ms"),
    ],
)
def test_a_broker_s_name_given_to_a_topic_is_refused_with_the_topic_s_name_for_it(given, meant) -> None:
    with pytest.raises(ConfigError, match=rf"unknown topic setting '{given}'; did you mean {meant}\?"):
        check_topic_settings({given: "1"})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("retention.ms", "log.retention.ms"),
        ("segment.ms", "log.roll.ms"),
        ("max.message.bytes", "message.max.bytes"),
        ("preallocate", "log.preallocate"),
        ("retenton.ms", "log.retention.ms"),
    ],
)
def test_a_topic_s_name_given_to_a_broker_is_refused_with_the_broker_s_name_for_it(given, meant) -> None:
    with pytest.raises(ConfigError, match=rf"unknown broker setting '{given}'; did you mean {meant}\?"):
        check_broker_settings({given: "1"})


def test_names_of_one_level_stand_for_names_of_the_other() -> None:
    topic = TOPIC_SETTINGS.keys() | KAFKA_TOPIC_PROPERTIES
    broker = BROKER_SETTINGS.keys() | KAFKA_BROKER_PROPERTIES
    assert set(TOPIC_NAMES) <= broker
    assert set(TOPIC_NAMES.values()) <= topic
    assert set(BROKER_NAMES) <= topic
    assert set(BROKER_NAMES.values()) <= broker


def test_a_setting_that_kafka_has_and_we_do_not_act_on_is_accepted_with_one_warning() -> None:
    checked = check_broker_settings({"background.threads": "2"})
    assert checked.values == {}
    assert checked.ignored == {"background.threads": "2"}
    assert len(checked.warnings) == 1
    assert "background.threads" in checked.warnings[0]
    assert BrokerConfig.parse({"background.threads": "2"}).not_acted_on == {"background.threads": "2"}


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"log.retention.hours": "2"}, "log.retention.ms", 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "log.retention.ms", 180_000),
        ({"log.retention.hours": "2", "log.retention.ms": "4"}, "log.retention.ms", 4),
        ({"log.retention.hours": "-1"}, "log.retention.ms", -1),
        ({"log.roll.hours": "1"}, "log.roll.ms", 3_600_000),
        ({"log.roll.jitter.hours": "1", "log.roll.jitter.ms": "5"}, "log.roll.jitter.ms", 5),
        ({"log.flush.scheduler.interval.ms": "50"}, "log.flush.interval.ms", 50),
        ({}, "log.flush.interval.ms", 2**63 - 1),
        ({"zookeeper.session.timeout.ms": "9000"}, "zookeeper.connection.timeout.ms", 9_000),
    ],
)
def test_other_names_of_a_setting_count_in_kafka_s_order(given, name, value) -> None:
    assert BrokerConfig.parse(given).get_int(name) == value


def test_a_topic_inherits_what_another_name_of_the_broker_s_setting_gives() -> None:
    broker = BrokerConfig.parse({"log.retention.hours": "2", "log.roll.hours": "3"})
    assert broker.topic({}).get_int("retention.ms") == 7_200_000
    assert broker.topic({}).get_int("segment.ms") == 10_800_000
    assert broker.with_dynamic({"log.retention.ms": "5"}).topic({}).get_int("retention.ms") == 5


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
def test_a_broker_s_retention_is_unlimited_or_longer_than_nothing(name) -> None:
    with pytest.raises(ConfigError, match=rf"{name}=0: must be -1 \(no limit\) or at least 1"):
        check_broker_settings({name: "0"})


def test_stored_settings_that_cannot_be_used_are_left_out_with_a_warning_each() -> None:
    stored = {"log.retention.ms": "many", "num.io.threads": "3", "log.segment.bytes": "5000"}
    checked = check_dynamic_settings(stored)
    assert checked.values == {"log.segment.bytes": 5_000}
    assert len(checked.warnings) == 2
    assert BrokerConfig().with_dynamic(stored).get_int("num.io.threads") == 2


def test_a_value_that_we_do_not_act_on_yet_is_accepted_with_a_warning() -> None:
    setting = Setting("colour", "list", ("red",), "A colour.", choices=("red", "blue"), not_yet=("blue",))
    assert setting.is_not_yet(setting.parse("red,blue"))
    assert not setting.is_not_yet(setting.parse("red"))


def test_a_topic_can_be_compacted_and_trimmed() -> None:
    checked = check_topic_settings({"cleanup.policy": "compact,delete"})
    assert checked.values["cleanup.policy"] == ("compact", "delete")
    assert checked.warnings == ()


def test_a_share_is_a_number_between_0_and_1() -> None:
    broker = BrokerConfig.parse({"log.cleaner.min.cleanable.ratio": "0.25"})
    assert broker.topic({}).get_float("min.cleanable.dirty.ratio") == 0.25
    for text, message in (("1.5", "must be at most 1"), ("half", "must be a number"), ("nan", "finite")):
        with pytest.raises(ConfigError, match=message):
            check_topic_settings({"min.cleanable.dirty.ratio": text})


@pytest.mark.parametrize(
    "setting", [*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values()], ids=lambda s: s.name
)
def test_every_default_is_a_legal_value_and_every_setting_is_documented(setting) -> None:
    assert setting.parse(render(setting.default)) == setting.default
    assert setting.doc.endswith(".")


@pytest.mark.parametrize("name", ["ssl.truststore.location", "listener.name.x.ssl.keystore.key"])
def test_a_topic_has_no_setting_of_tls(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown topic setting"):
        check_topic_settings({name: "x"})
