"""Rules from a client's request to the answer that another client gets, by way of ZooKeeper."""

import logging

import pytest

from sparklog.client.access_rules import create_rules, delete_rules, list_rules
from sparklog.core.apis.api_table import APIS
from sparklog.core.controller.commands.acl_commands import AclBinding, AclFilter
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rule_book import RuleBook
from sparklog.core.security.rule_nodes import (
    PREFIXED_CHANGES,
    change_path,
    encode_change,
    encode_rules,
    rules_path,
)
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.zookeeper import Create
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.access.samples import TOPIC
from tests.waiting import until

DAVE = "User:dave"
DESCRIBE = Rule(DAVE, AclOperation.describe)
NOT_ALLOWED = ErrorCode.topic_authorization_failed


@pytest.fixture
def rules(servers):
    """The servers, without any rule."""
    servers.topic_id()
    for control in servers.controls:
        control.authorizer.book = RuleBook()
    everything = list_rules(servers.cluster.client, AclFilter())
    if everything:
        delete_rules(servers.cluster.client, everything)
    until(lambda: not any(len(control.authorizer.book) for control in servers.controls), "no rules")
    return servers


@pytest.fixture
def other_tool(rules):
    """A session with ZooKeeper that is neither the broker's nor the controller's."""
    session = rules.cluster._memory.client()
    yield session
    session.close()


def described(servers, topic=TOPIC) -> ErrorCode:
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    response = servers.ask(APIS[2], request, 5, DAVE)
    return response.topics[0].partitions[0].error_code


def topic(name: str = TOPIC, kind: PatternType = PatternType.literal) -> Pattern:
    return Pattern(ResourceType.topic, name, kind)


@pytest.mark.parametrize("pattern", [topic(), topic("*"), topic("matrix", PatternType.prefixed)])
def test_a_rule_that_is_created_binds_the_broker_and_one_that_is_deleted_does_no_more(rules, pattern) -> None:
    binding = AclBinding(pattern, DESCRIBE)
    assert described(rules) is NOT_ALLOWED
    create_rules(rules.cluster.client, [binding])
    assert list_rules(rules.cluster.client, AclFilter()) == [binding]
    until(lambda: described(rules) is ErrorCode.none, "the rule", timeout_s=1)
    assert delete_rules(rules.cluster.client, [binding, binding]) == [binding, binding]
    assert delete_rules(rules.cluster.client, [binding]) == []
    until(lambda: described(rules) is NOT_ALLOWED, "the end of the rule", timeout_s=1)


def test_zookeeper_has_the_nodes_of_kafka_and_its_notifications(rules, other_tool) -> None:
    prefix = topic("matrix", PatternType.prefixed)
    before = len(other_tool.children(PREFIXED_CHANGES))
    create_rules(rules.cluster.client, [AclBinding(topic(), DESCRIBE), AclBinding(prefix, DESCRIBE)])
    for pattern in (topic(), prefix):
        assert other_tool.get(rules_path(pattern)).data == encode_rules(frozenset({DESCRIBE}))
    added = other_tool.children(PREFIXED_CHANGES)[before:]
    assert [other_tool.get(f"{PREFIXED_CHANGES}/{name}").data for name in added] == [encode_change(prefix)]
    delete_rules(rules.cluster.client, [AclBinding(topic(), DESCRIBE)])
    assert other_tool.get(rules_path(topic())) is None


def _write(session, pattern: Pattern, data: bytes) -> None:
    """As Kafka's own tool does."""
    notification = Create(change_path(pattern.kind), encode_change(pattern), sequential=True)
    session.multi([Create(rules_path(pattern), data), notification])


def test_a_rule_that_kafkas_tool_writes_binds_too_and_is_written_over_at_its_version(
    rules, other_tool
) -> None:
    _write(other_tool, topic(), encode_rules(frozenset({DESCRIBE})))
    until(lambda: described(rules) is ErrorCode.none, "the rule")
    other = Rule("User:erin", AclOperation.read)
    create_rules(rules.cluster.client, [AclBinding(topic(), other)])
    listed = {one.rule for one in list_rules(rules.cluster.client, AclFilter(name=TOPIC))}
    assert listed == {DESCRIBE, other}


def test_a_write_by_another_tool_that_was_not_told_of_is_not_lost(rules, other_tool) -> None:
    create_rules(rules.cluster.client, [AclBinding(topic(), DESCRIBE)])
    silent, added = Rule("User:silent", AclOperation.read), Rule("User:erin", AclOperation.read)
    other_tool.set(rules_path(topic()), encode_rules(frozenset({DESCRIBE, silent})))
    create_rules(rules.cluster.client, [AclBinding(topic(), added)])
    listed = {one.rule for one in list_rules(rules.cluster.client, AclFilter(name=TOPIC))}
    assert listed == {DESCRIBE, silent, added}


def test_rules_that_change_while_a_broker_is_cut_off_bind_it_when_it_is_back(rules, other_tool) -> None:
    create_rules(rules.cluster.client, [AclBinding(topic(), DESCRIBE)])
    until(lambda: described(rules) is ErrorCode.none, "the rule")
    (broker,) = rules.cluster.brokers.values()
    broker.zookeeper.lose_connection()
    other_tool.delete(rules_path(topic()))  # and the notification of it is gone already
    assert described(rules) is ErrorCode.none
    broker.zookeeper.restore_connection()
    until(lambda: described(rules) is NOT_ALLOWED, "the end of the rule")


def test_a_node_that_is_no_json_closes_what_it_covers_and_is_mended_by_deleting_its_rules(
    rules, other_tool, caplog
) -> None:
    create_rules(rules.cluster.client, [AclBinding(topic("*"), DESCRIBE)])
    until(lambda: described(rules) is ErrorCode.none, "the rule")
    with caplog.at_level(logging.ERROR):
        _write(other_tool, topic(), b"{no json")
        until(lambda: described(rules) is NOT_ALLOWED, "the closed topic")
    assert "/kafka-acl/Topic/matrix-topic is no JSON" in caplog.text
    with pytest.raises(KafkaError, match="delete those first"):
        create_rules(rules.cluster.client, [AclBinding(topic(), DESCRIBE)])
    (shown,) = list_rules(rules.cluster.client, AclFilter(ResourceType.topic, TOPIC, PatternType.literal))
    assert shown.rule.permission is Permission.deny
    delete_rules(rules.cluster.client, [shown])
    assert other_tool.get(rules_path(topic())) is None
    until(lambda: described(rules) is ErrorCode.none, "the topic open again")


@pytest.mark.parametrize(
    ("pattern", "rule", "said"),
    [
        (topic("a/b"), DESCRIBE, "no slash"),
        (topic(""), DESCRIBE, "empty resource name"),
        (topic(".."), DESCRIBE, "neither"),
        (topic("a\x00b"), DESCRIBE, "control"),
        (topic("x" * 1_001), DESCRIBE, "at most"),
        (Pattern(ResourceType.cluster, "other"), DESCRIBE, "only valid name"),
        (topic(), Rule("dave", AclOperation.read), "no type"),
        (topic(), Rule("User:" + "x" * 1_024, AclOperation.read), "longer"),
        (topic(), Rule("User:a\nb", AclOperation.read), "printable"),
        (topic(), Rule(DAVE, AclOperation.read, host=""), "neither an address"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_and_the_others_of_its_request_are_made(
    rules, pattern, rule, said
) -> None:
    good = AclBinding(topic(), DESCRIBE)
    with pytest.raises(KafkaError, match=said) as refused:
        create_rules(rules.cluster.client, [AclBinding(pattern, rule), good])
    assert refused.value.code is ErrorCode.invalid_request
    assert list_rules(rules.cluster.client, AclFilter()) == [good]


def test_rules_larger_than_a_node_are_refused(rules) -> None:
    bindings = [AclBinding(topic(), Rule(f"User:{'x' * 900}{n}", AclOperation.read)) for n in range(700)]
    with pytest.raises(KafkaError, match="more than 500000"):
        create_rules(rules.cluster.client, bindings)
    assert 400 < len(list_rules(rules.cluster.client, AclFilter())) < 700


def test_denials_are_in_the_log_of_the_broker(rules, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        described(rules, "matrix-secret")
    assert "User:dave at 127.0.0.1 is denied DESCRIBE on TOPIC 'matrix-secret'" in caplog.text
