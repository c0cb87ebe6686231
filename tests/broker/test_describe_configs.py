"""Which value counts, where it comes from, and what it would be without."""

from sparklog.broker.handlers.describe_configs import describe_all_brokers, describe_broker, describe_topic
from sparklog.model.config import BrokerConfig, DynamicConfigs

STATIC = BrokerConfig.parse({"log.retention.ms": "4", "num.io.threads": "3"})
DYNAMIC = DynamicConfigs({"log.retention.ms": "2"}, {"log.retention.ms": "3", "message.max.bytes": "100"})
EVERY_RETENTION = [(2, "2"), (3, "3"), (4, "4"), (5, "604800000")]


def by_name(described):
    return {one.name: one for one in described}


def levels(one):
    return [(synonym.source, synonym.value) for synonym in one.synonyms]


def test_a_broker_s_own_setting_goes_over_everybody_s_over_its_start_over_the_default():
    found = by_name(describe_broker(STATIC, DYNAMIC))
    assert levels(found["log.retention.ms"]) == EVERY_RETENTION
    assert (found["log.retention.ms"].value, found["log.retention.ms"].config_source) == ("2", 2)
    assert (found["message.max.bytes"].value, found["message.max.bytes"].config_source) == ("100", 3)
    assert (found["num.io.threads"].value, found["num.io.threads"].config_source) == ("3", 4)
    assert (found["num.partitions"].config_source, found["num.partitions"].is_default) == (5, True)


def test_what_is_read_once_at_start_is_read_only():
    found = by_name(describe_broker(STATIC, DYNAMIC))
    assert found["num.io.threads"].read_only
    assert not found["log.retention.ms"].read_only


def test_a_topic_s_own_setting_goes_over_the_broker_s_whose_name_is_another():
    found = by_name(describe_topic({"retention.ms": "1", "segment.ms": "9"}, STATIC, DYNAMIC))
    assert levels(found["retention.ms"]) == [(1, "1"), *EVERY_RETENTION]
    assert [one.name for one in found["retention.ms"].synonyms[:2]] == ["retention.ms", "log.retention.ms"]
    assert found["max.message.bytes"].config_source == 3
    assert not any(one.read_only for one in found.values())


def test_a_setting_without_a_broker_s_counterpart_has_a_default_of_its_own():
    found = by_name(describe_topic({}, STATIC, DYNAMIC))
    assert levels(found["leader.replication.throttled.replicas"]) == [(5, "")]


def test_what_was_set_and_nothing_acts_on_is_shown_too():
    topic = by_name(describe_topic({"compression.type": "lz4"}, STATIC, DYNAMIC))["compression.type"]
    assert (topic.value, topic.config_source, topic.documentation) == (
        "lz4", 1, "Accepted for Kafka's sake; sparklog does not act on it.",
    )  # fmt: skip
    broker = by_name(describe_broker(STATIC, DynamicConfigs({}, {"background.threads": "2"})))
    assert broker["background.threads"].config_source == 3


def test_all_brokers_have_what_was_set_for_all_and_nothing_else():
    found = by_name(describe_all_brokers(DYNAMIC))
    assert {name: one.value for name, one in found.items()} == DYNAMIC.everybodys
    assert levels(found["log.retention.ms"]) == [(3, "3")]
