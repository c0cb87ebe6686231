"""Rules in ZooKeeper: Kafka's paths and JSON, and what no reader may take for rules."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rule_nodes import (
    RULE_PATHS,
    UnreadableRules,
    change_path,
    decode_change,
    decode_rules,
    encode_change,
    encode_rules,
    rules_path,
)
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule

DAVE = Rule("User:dave", AclOperation.read)
KAFKA = (
    b'{"version":1,"acls":[{"principal":"User:dave","permissionType":"Allow","operation":"Read","host":"*"}]}'
)


def test_rules_are_the_bytes_that_kafka_writes() -> None:
    assert encode_rules(frozenset({DAVE})) == KAFKA
    assert decode_rules("/kafka-acl/Topic/t", KAFKA) == {DAVE}


@pytest.mark.parametrize("operation", AclOperation)
@pytest.mark.parametrize("permission", Permission)
def test_each_rule_is_read_as_it_was_written(operation: AclOperation, permission: Permission) -> None:
    rule = Rule("User:CN=a,O=b", operation, permission, "10.0.0.1")
    assert decode_rules("/p", encode_rules(frozenset({rule, DAVE}))) == {rule, DAVE}


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (Pattern(ResourceType.topic, "t"), "/kafka-acl/Topic/t"),
        (Pattern(ResourceType.cluster, "kafka-cluster"), "/kafka-acl/Cluster/kafka-cluster"),
        (
            Pattern(ResourceType.transactional_id, "p", PatternType.prefixed),
            "/kafka-acl-extended/prefixed/TransactionalId/p",
        ),
        (Pattern(ResourceType.delegation_token, "d"), "/kafka-acl/DelegationToken/d"),
    ],
)
def test_paths_are_those_of_kafka(pattern: Pattern, path: str) -> None:
    assert rules_path(pattern) == path
    assert path.rpartition("/")[0] in RULE_PATHS


@pytest.mark.parametrize(
    ("pattern", "path", "data"),
    [
        (Pattern(ResourceType.topic, "t1"), "/kafka-acl-changes/acl_changes_", b"TOPIC:t1"),
        (
            Pattern(ResourceType.transactional_id, "a:b"),
            "/kafka-acl-changes/acl_changes_",
            b"TRANSACTIONAL_ID:a:b",
        ),
        (
            Pattern(ResourceType.topic, "t", PatternType.prefixed),
            "/kafka-acl-extended-changes/acl_changes_",
            b'{"version":1,"resourceType":"TOPIC","name":"t","patternType":"PREFIXED"}',
        ),
    ],
)
def test_notifications_are_those_of_kafka(pattern: Pattern, path: str, data: bytes) -> None:
    assert (change_path(pattern.kind), encode_change(pattern)) == (path, data)
    assert decode_change(pattern.kind, path, data) == pattern


WORDS = st.sampled_from(["version", "acls", "principal", "permissionType", "operation", "host", "name"])
RULES = st.fixed_dictionaries(
    {
        "principal": st.sampled_from(["User:a", "User:*", "a", ""]) | st.none(),
        "permissionType": st.sampled_from(["Allow", "Deny", "ALLOW", "x"]),
        "operation": st.sampled_from(["Read", "All", "ClusterAction", "READ", "x"]),
        "host": st.sampled_from(["*", "10.0.0.1"]) | st.integers(),
    }
)
DOCUMENTS = st.builds(
    lambda version, acls: json.dumps({"version": version, "acls": acls}).encode(),
    st.sampled_from([1, 1, 1, 2, "1"]),
    st.lists(RULES, max_size=4),
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["User:a", "Read", "Allow"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)


JSON = ANYTHING.map(lambda one: json.dumps(one).encode())
CHANGES = st.builds(
    lambda resource, name, kind: json.dumps(
        {"version": 1, "resourceType": resource, "name": name, "patternType": kind}
    ).encode(),
    st.sampled_from(["TOPIC", "Group", "x"]),
    st.text(max_size=3) | st.sampled_from(["", ".", "a/b", "\ud800"]),
    st.sampled_from(["LITERAL", "PREFIXED", "x"]),
)


@given(st.binary(max_size=200) | JSON | DOCUMENTS)
def test_whatever_a_node_holds_is_rules_or_refused(data: bytes) -> None:
    try:
        rules = decode_rules("/kafka-acl/Topic/t", data)
    except UnreadableRules:
        return
    assert decode_rules("/again", encode_rules(rules)) == rules


@given(st.binary(max_size=200) | JSON | CHANGES, st.sampled_from(PatternType))
def test_whatever_a_notification_holds_is_a_pattern_with_a_path_or_refused(
    data: bytes, kind: PatternType
) -> None:
    try:
        pattern = decode_change(kind, "/changes/1", data)
    except UnreadableRules:
        return
    assert decode_change(pattern.kind, "/again", encode_change(pattern)) == pattern
    rules_path(pattern).encode()


def _with(**fields: object) -> bytes:
    return json.dumps({"version": 1, "acls": [{**json.loads(KAFKA)["acls"][0], **fields}]}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"version":2,"acls":[]}',
        b'{"version":1}',
        b'{"version":1,"acls":{}}',
        b'{"version":1,"acls":[1]}',
        b"\xff\xfe",
        b"[" * 100_000,
        _with(operation="Fly"),
        _with(operation=["Read"]),
        _with(permissionType="Perhaps"),
        _with(principal="dave"),
        _with(principal=7),
        _with(host=None),
    ],
)
def test_what_is_no_rules_is_refused_with_its_path(data: bytes) -> None:
    with pytest.raises(UnreadableRules, match="/kafka-acl/Topic/t"):
        decode_rules("/kafka-acl/Topic/t", data)


@pytest.mark.parametrize("data", [b"", b"TOPIC", b"TOPIC:", b"TOPIC:a/b", b"PLANET:x", b"\xff:x", b"{}"])
@pytest.mark.parametrize("kind", PatternType)
def test_what_is_no_notification_is_refused(kind: PatternType, data: bytes) -> None:
    with pytest.raises(UnreadableRules, match="/changes/1"):
        decode_change(kind, "/changes/1", data)
