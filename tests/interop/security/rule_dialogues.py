"""Dialogues of access rules: which of them count, what denied users see, and rules that cannot be."""

from typing import Any, Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import CLUSTER_NAME, EVERY_NAME
from tests.interop.security.login_dialogues import Dialogue
from tests.interop.security.personas import ADMIN, ALLOW, DENY, LITERAL, NOBODY, PREFIXED
from tests.interop.security.requests_of_rights import fetch, produce
from tests.interop.security.secured_sides import GROUP, ID, TOPIC, new_topic
from tests.interop.security.secured_talk import SecuredTalk

TOPICS, GROUPS, CLUSTER, IDS = (
    ResourceType.topic,
    ResourceType.group,
    ResourceType.cluster,
    ResourceType.transactional_id,
)
ANY, MATCH = 1, 2
ALICE: Final = "User:alice"


def rule(
    operation: str,
    name: str,
    kind: int = TOPICS,
    pattern: int = LITERAL,
    permission: int = ALLOW,
    principal: str = ALICE,
    host: str = "*",
) -> dict[str, Any]:
    """An entry of CreateAcls."""
    return {
        "resource_type": int(kind),
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": principal,
        "host": host,
        "operation": int(AclOperation[operation]),
        "permission_type": permission,
    }


def filter_(**fields: Any) -> dict[str, Any]:
    """Of DescribeAcls and DeleteAcls; what is not named is any."""
    return {
        "resource_type_filter": TOPICS,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **fields,
    }


def bind(talk: SecuredTalk, *entries: dict[str, Any]) -> None:
    talk.create_rules(*entries)
    talk.bound()


def unbind(talk: SecuredTalk, **fields: Any) -> None:
    talk.ask("DeleteAcls", by=ADMIN, filters=[filter_(**fields)])
    talk.bound()


def probe(talk: SecuredTalk, *topics: str, by: str = "alice") -> None:
    """What a user sees of topics and may do with each."""
    wanted = [{"name": topic} for topic in topics]
    talk.ask("Metadata", by=by, version=10, topics=wanted, include_topic_authorized_operations=1)
    for topic in topics:
        for api, fields in (produce(topic), fetch(topic)):
            answer = talk.ask(api, by=by, **fields)
            found = answer["responses"][0]
            (part,) = found.get("partitions") or found["partition_responses"]
            talk.said[-1].answer = {"error_code": part["error_code"]}


def literal_rules(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", name))
    probe(talk, name, f"{name}2", name[:-1])
    bind(talk, rule("read", f"{name}2"))
    probe(talk, name, f"{name}2")


def prefixed_rules(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("read", name[:-3], pattern=PREFIXED))
    probe(talk, name, name[:-3], name[:-4])


def rules_of_every_name(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", EVERY_NAME, principal="User:bob"))
    probe(talk, name, f"{name}2", by="bob")
    bind(talk, rule("write", EVERY_NAME, permission=DENY, principal="User:bob"))
    probe(talk, name, by="bob")
    unbind(talk, resource_name_filter=EVERY_NAME, principal_filter="User:bob")
    probe(talk, name, by="bob")


def a_prefixed_star_is_no_wildcard(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", EVERY_NAME, pattern=PREFIXED, principal="User:bob"))
    probe(talk, name, by="bob")
    unbind(talk, resource_name_filter=EVERY_NAME, pattern_type_filter=PREFIXED, principal_filter="User:bob")


def denials_beat_allowances(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("all", name), rule("write", name, permission=DENY))
    probe(talk, name)
    bind(talk, rule("read", name[:-2], pattern=PREFIXED, permission=DENY))
    probe(talk, name)
    bind(talk, rule("describe", name, permission=DENY))
    probe(talk, name)


def denials_of_everything(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", name), rule("all", name[:-1], pattern=PREFIXED, permission=DENY))
    probe(talk, name)
    probe(talk, name, by=ADMIN)


def a_denied_reader_may_still_describe(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("describe", name), rule("read", name, permission=DENY))
    probe(talk, name)


def what_implies_describe(talk: SecuredTalk, name: str) -> None:
    for operation in ("read", "write", "delete", "alter", "create", "alter_configs", "describe_configs"):
        topic = f"{name}-{operation}"
        new_topic(talk, topic)
        bind(talk, rule(operation, topic))
        probe(talk, topic)


def rules_for_everybody(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", name, principal="User:*"))
    probe(talk, name)
    bind(talk, rule("write", name, principal="User:*", permission=DENY), rule("write", name))
    probe(talk, name)


def rules_of_hosts(talk: SecuredTalk, name: str) -> None:
    for host in ("127.0.0.1", "10.9.9.9", "localhost", "127.0.0.*"):
        topic = f"{name}-{host.replace('*', 'x')}"
        new_topic(talk, topic)
        bind(talk, rule("write", topic, host=host))
        probe(talk, topic)
    new_topic(talk, name)
    bind(talk, rule("write", name), rule("write", name, host="127.0.0.1", permission=DENY))
    probe(talk, name)


def other_types_of_principals(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", name, principal="Group:alice"), rule("write", name, principal="user:alice"))
    probe(talk, name)


def a_rule_that_goes_ends_what_it_allowed(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("read", name), rule("write", name))
    probe(talk, name)
    unbind(talk, resource_name_filter=name, operation=AclOperation.read)
    probe(talk, name)
    unbind(talk, resource_name_filter=name)
    probe(talk, name)


def a_fetch_session_whose_rule_goes(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("read", name))
    api, fields = fetch(name)
    answer = talk.ask(api, by="alice", **fields, session_epoch=0)
    session = answer["session_id"]
    talk.said[-1].answer = {**answer, "session_id": "<one>"}
    unbind(talk, resource_name_filter=name)
    answer = talk.ask(api, by="alice", **{**fields, "topics": []}, session_id=session, session_epoch=1)
    talk.said[-1].answer = {**answer, "session_id": "<one>"}


def allowed_and_denied_topics_in_one_request(talk: SecuredTalk, name: str) -> None:
    mine, other = f"{name}-mine", f"{name}-other"
    for topic in (mine, other):
        new_topic(talk, topic)
    bind(talk, rule("all", mine), rule("all", name, GROUPS))
    names = (mine, other, f"{name}-absent")
    parts = [{"partition_index": 0, "committed_offset": 0, "timestamp": -1, "offset": 0, "partition": 0}]
    topics = [{"name": one, "topic": one, "partitions": parts, "partition_indexes": [0]} for one in names]
    ask = {"by": "alice", "topics": topics, "timeout_ms": 10_000}
    for api in ("Metadata", "ListOffsets", "DeleteRecords", "OffsetForLeaderEpoch"):
        talk.ask(api, **ask)
    talk.ask("OffsetCommit", **ask, group_id=name)
    talk.ask("OffsetFetch", **ask, group_id=name, version=7)
    talk.ask("OffsetFetch", by="alice", group_id=name, topics=None, version=7)
    talk.ask("OffsetDelete", **ask, group_id=name)
    creations = [{"name": one, "count": 2, "num_partitions": 1, "replication_factor": 1} for one in names]
    talk.ask("CreatePartitions", by="alice", topics=creations, timeout_ms=10_000)
    resources = [
        {"resource_type": 2, "resource_name": one, "configuration_keys": ["retention.ms"]} for one in names
    ]
    talk.ask("DescribeConfigs", by="alice", resources=resources)
    changes = [{"name": "retention.ms", "value": "7000000", "config_operation": 0}]
    altered = [{"resource_type": 2, "resource_name": one, "configs": changes} for one in names]
    talk.ask("IncrementalAlterConfigs", by="alice", resources=altered)
    talk.ask("DeleteTopics", by="alice", topics=[{"name": one} for one in names], timeout_ms=10_000)


def topics_by_their_ids(talk: SecuredTalk, name: str) -> None:
    topic_id = new_topic(talk, name)
    for operation in ("describe", "delete"):
        talk.ask("Metadata", by="alice", topics=[{"name": None, "topic_id": topic_id}])
        talk.ask("DeleteTopics", by="alice", topics=[{"name": None, "topic_id": topic_id}], timeout_ms=10_000)
        bind(talk, rule(operation, name))
    talk.ask("DeleteTopics", by="alice", topics=[{"name": None, "topic_id": topic_id}], timeout_ms=10_000)


def producer_ids_by_writing_somewhere(talk: SecuredTalk, name: str) -> None:
    def init(why: str) -> None:
        answer = talk.ask(
            "InitProducerId", by="bob", transaction_timeout_ms=1_000, producer_id=-1, producer_epoch=-1
        )
        talk.said[-1].answer = {why: answer["error_code"]}

    bob = {"principal": "User:bob"}
    init("no rule")
    bind(talk, rule("write", f"{name}-", pattern=PREFIXED, **bob))
    init("a prefix")
    bind(talk, rule("write", f"{name}-", pattern=PREFIXED, permission=DENY, **bob))
    init("the same prefix denied")
    bind(talk, rule("write", f"{name}-a", **bob))
    init("a literal below the denied prefix")
    bind(talk, rule("write", f"{name}", **bob))
    init("a literal beside it")
    bind(talk, rule("all", EVERY_NAME, permission=DENY, **bob))
    init("all denied")
    bind(talk, rule("idempotent_write", CLUSTER_NAME, CLUSTER, **bob))
    init("IDEMPOTENT_WRITE")
    unbind(talk, resource_type_filter=ANY, principal_filter="User:bob")


def transactional_ids(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", name, IDS), rule("write", name))
    wanted = {"transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1, "by": "alice"}
    talk.ask("InitProducerId", transactional_id=f"{name}-2", **wanted)
    answer = talk.until(
        "InitProducerId", lambda answer: answer["error_code"] == 0, transactional_id=name, **wanted
    )
    mine = {"producer_id": answer["producer_id"], "producer_epoch": answer["producer_epoch"]}
    topics = [{"name": one, "partitions": [0]} for one in (name, TOPIC)]
    of_3 = {f"v3_and_below_{key}": value for key, value in {**mine, "transactional_id": name}.items()}
    talk.ask("AddPartitionsToTxn", by="alice", version=3, **of_3, v3_and_below_topics=topics)
    talk.ask("AddOffsetsToTxn", by="alice", transactional_id=name, group_id=GROUP, **mine)
    talk.ask("DescribeTransactions", by="alice", transactional_ids=[name, ID])
    talk.ask("EndTxn", by="alice", transactional_id=name, committed=0, **mine)


def what_lists_leave_out(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("describe", name, GROUPS), rule("read", f"{name}-2", GROUPS), rule("describe", name))
    offsets = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 0}]}]
    for group in (name, f"{name}-2", f"{name}-3"):
        talk.ask("OffsetCommit", by=ADMIN, group_id=group, topics=offsets)
    for api, items, key in (
        ("ListGroups", "groups", "group_id"),
        ("Metadata", "topics", "name"),
        ("ListTransactions", "transaction_states", "transactional_id"),
        ("ListPartitionReassignments", "topics", "name"),
    ):
        answer = talk.ask(api, by="alice", topics=None)
        names = [one[key] for one in answer[items] if one[key].startswith(name.encode())]
        talk.said[-1].answer = {"error_code": answer.get("error_code"), "names": names}


def operations_of_groups(talk: SecuredTalk, name: str) -> None:
    for operation in ("read", "describe", "delete", "all"):
        group = f"{name}-{operation}"
        bind(talk, rule(operation, group, GROUPS))
        talk.ask("DescribeGroups", by="alice", groups=[group], include_authorized_operations=1)


def rules_that_cannot_be(talk: SecuredTalk, name: str) -> None:
    odd: tuple[dict[str, Any], ...] = (
        {"resource_name": ""},
        {"resource_name": "a/b"},
        {"resource_name": "a b"},
        {"resource_name": "x" * 300},
        {"principal": ""},
        {"principal": "alice"},
        {"principal": ":alice"},
        {"principal": "User:"},
        {"host": ""},
        {"operation": 0},
        {"operation": ANY},
        {"operation": 99},
        {"permission_type": 0},
        {"permission_type": ANY},
        {"permission_type": 9},
        {"resource_type": 0},
        {"resource_type": ANY},
        {"resource_type": 99},
        {"resource_pattern_type": 0},
        {"resource_pattern_type": ANY},
        {"resource_pattern_type": MATCH},
        {"resource_type": int(CLUSTER), "resource_name": "another"},
        {"resource_type": int(CLUSTER), "resource_name": CLUSTER_NAME, "resource_pattern_type": PREFIXED},
    )
    for fields in odd:
        talk.create_rules({**rule("read", name, principal="User:none"), **fields})
    talk.ask("DescribeAcls", by=ADMIN, **filter_(resource_name_filter=name))


def odd_rules_beside_good_ones(talk: SecuredTalk, name: str) -> None:
    talk.create_rules(rule("read", name), rule("read", "a/b"), rule("write", name))
    talk.ask("DescribeAcls", by=ADMIN, **filter_(resource_name_filter=name))


def rules_twice(talk: SecuredTalk, name: str) -> None:
    for _ in range(2):
        talk.create_rules(rule("read", name), rule("read", name))
    talk.ask("DescribeAcls", by=ADMIN, **filter_(resource_name_filter=name))
    for _ in range(2):
        talk.ask("DeleteAcls", by=ADMIN, filters=[filter_(resource_name_filter=name)] * 2)


def operations_that_do_not_fit(talk: SecuredTalk, name: str) -> None:
    for kind, operation in (
        (TOPICS, "cluster_action"),
        (GROUPS, "write"),
        (IDS, "create"),
        (CLUSTER, "read"),
    ):
        talk.create_rules(
            rule(operation, CLUSTER_NAME if kind is CLUSTER else name, kind, principal="User:none")
        )
    unbind(talk, resource_type_filter=ANY, principal_filter="User:none")


def other_types_of_resources(talk: SecuredTalk, name: str) -> None:
    for kind, operation in (
        (ResourceType.delegation_token, "describe"),
        (ResourceType.user, "create_tokens"),
    ):
        talk.create_rules(rule(operation, name, kind))
        talk.ask("DescribeAcls", by=ADMIN, **filter_(resource_type_filter=kind, resource_name_filter=name))


def filters_of_rules(talk: SecuredTalk, name: str) -> None:
    talk.create_rules(
        rule("read", f"{name}-a"),
        rule("write", f"{name}-", pattern=PREFIXED, permission=DENY),
        rule("all", f"{name}-b", principal="User:bob", host="10.0.0.1"),
    )
    mine: dict[str, Any] = {"resource_name_filter": f"{name}-a"}
    for fields in (
        {**mine, "pattern_type_filter": ANY},
        {**mine, "pattern_type_filter": LITERAL},
        {**mine, "pattern_type_filter": PREFIXED},
        {"resource_name_filter": f"{name}-", "pattern_type_filter": PREFIXED},
        {**mine, "operation": int(AclOperation.write)},
        {**mine, "operation": int(AclOperation.all)},
        {**mine, "permission_type": DENY},
        {"resource_name_filter": f"{name}-b", "principal_filter": ALICE},
        {"resource_name_filter": f"{name}-b", "principal_filter": "User:bob", "host_filter": "10.0.0.1"},
        {"resource_name_filter": f"{name}-b", "host_filter": "*"},
        {"resource_name_filter": f"{name}-c", "resource_type_filter": int(GROUPS)},
    ):
        talk.ask("DescribeAcls", by=ADMIN, **filter_(**fields))


def filters_that_cannot_be(talk: SecuredTalk, name: str) -> None:
    for fields in (
        {"resource_type_filter": 0},
        {"resource_type_filter": 99},
        {"pattern_type_filter": 0},
        {"operation": 0},
        {"operation": 99},
        {"permission_type": 0},
        {"resource_name_filter": ""},
        {"principal_filter": ""},
        {"principal_filter": "alice"},
    ):
        whole = filter_(**{"resource_name_filter": name, **fields})
        talk.ask("DescribeAcls", by=ADMIN, **whole)
        talk.ask("DeleteAcls", by=ADMIN, filters=[whole])


def rules_that_match_a_name_are_deleted(talk: SecuredTalk, name: str) -> None:
    talk.create_rules(rule("read", f"{name}-a"), rule("write", f"{name}-", pattern=PREFIXED))
    matching = filter_(resource_name_filter=f"{name}-a", pattern_type_filter=MATCH, principal_filter=ALICE)
    talk.ask("DescribeAcls", by=ADMIN, **matching)
    talk.ask("DeleteAcls", by=ADMIN, filters=[matching])
    talk.ask("DescribeAcls", by=ADMIN, **matching)


def rules_by_who_may_not(talk: SecuredTalk, name: str) -> None:
    talk.create_rules(rule("read", name), rule("read", "a/b"), by=NOBODY)
    talk.ask("DeleteAcls", by=NOBODY, filters=[filter_(resource_name_filter=name)] * 2)
    talk.ask("DescribeAcls", by=NOBODY, **filter_(resource_name_filter=name))
    talk.ask("DescribeAcls", by=ADMIN, **filter_(resource_name_filter=name))


RULE_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    a_denied_reader_may_still_describe,
    a_fetch_session_whose_rule_goes,
    a_prefixed_star_is_no_wildcard,
    a_rule_that_goes_ends_what_it_allowed,
    allowed_and_denied_topics_in_one_request,
    denials_beat_allowances,
    denials_of_everything,
    filters_of_rules,
    filters_that_cannot_be,
    literal_rules,
    odd_rules_beside_good_ones,
    operations_of_groups,
    operations_that_do_not_fit,
    other_types_of_principals,
    other_types_of_resources,
    prefixed_rules,
    producer_ids_by_writing_somewhere,
    rules_by_who_may_not,
    rules_for_everybody,
    rules_of_every_name,
    rules_of_hosts,
    rules_that_cannot_be,
    rules_that_match_a_name_are_deleted,
    rules_twice,
    topics_by_their_ids,
    transactional_ids,
    what_implies_describe,
    what_lists_leave_out,
)
