"""For each right that the table of APIs has, a request that needs it; and the conditions as predicates.

A request names the topic ``a-topic``, the group ``a-group`` and the transactional id ``an-id``. Where a right
has a condition, one request is in the case, and another of the same API is outside.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sparklog.core.apis.api_table import ROWS
from sparklog.core.security.acl import ResourceType
from sparklog.core.security.conditions import Condition
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, INTERNAL_TOPICS
from sparklog.wire.messages.admin.create_topics import CreatableTopic
from sparklog.wire.messages.admin.delete_topics import DeleteTopicState
from sparklog.wire.messages.discovery.metadata import MetadataRequestTopic
from sparklog.wire.messages.groups.offset_fetch import OffsetFetchRequestTopic
from sparklog.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnTransaction
from tests.wire.least_request import least, least_request

TOPIC, GROUP, ID = "a-topic", "a-group", "an-id"
NAMES: Final = {
    ResourceType.topic: TOPIC,
    ResourceType.group: GROUP,
    ResourceType.transactional_id: ID,
    ResourceType.user: "an-owner",
}
OWN_NAME = f"write-{uuid.UUID(int=7)}"
TOPIC_ID = uuid.UUID(int=9)
GROUPS, TRANSACTIONS = 0, 1
OF_TOPIC, OF_BROKER, OF_LOGGERS = 2, 4, 8
OWN_NAMES: Final = ("write-", "query-", "cut-")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in a version."""

    request: Any
    version: int


KEYS: Final = {api.name: api.key for api in ROWS}
LATEST: Final = {api.name: api.max for api in ROWS}


def asked(name: str, version: int | None = None, **fields: Any) -> Asked:
    """The least request of the API with these fields."""
    request = replace(least_request(KEYS[name]), **fields)
    return Asked(request, LATEST[name] if version is None else version)


def with_topics(name: str, field: str = "topics", version: int | None = None, **fields: Any) -> Asked:
    """A request whose list ``field`` has one entry, which names the topic."""
    return asked(name, version, **{field: [least(KEYS[name], field, TOPIC)]}, **fields)


def with_resource(name: str, kind: int) -> Asked:
    entry = least(KEYS[name], "resources", TOPIC if kind == OF_TOPIC else "1")
    return asked(name, resources=[replace(entry, resource_type=kind)])


def added(*, is_verified: bool) -> Asked:
    topics = [least(KEYS["AddPartitionsToTxn"], "v3_and_below_topics", TOPIC)]
    if not is_verified:
        fields = {"v3_and_below_transactional_id": ID, "v3_and_below_topics": topics}
        return asked("AddPartitionsToTxn", 3, **fields)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=ID, producer_id=1, producer_epoch=0, topics=topics
    )
    return asked("AddPartitionsToTxn", 4, transactions=[transaction])


def looked_up(name: str, *, creates: bool = True, operations: bool = False) -> Asked:
    return asked(
        "Metadata", 10,
        topics=[MetadataRequestTopic(name=name)],
        allow_auto_topic_creation=creates,
        include_cluster_authorized_operations=operations,
    )  # fmt: skip


INTERNAL: Final = [CreatableTopic(name=GROUP_OFFSETS_TOPIC, num_partitions=1, replication_factor=1)]
CREATED: Final = [CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]

UNCONDITIONAL: Final[Mapping[str, Asked]] = {
    "Produce": with_topics("Produce", "topic_data"),
    "Metadata": looked_up(TOPIC),
    "OffsetCommit": with_topics("OffsetCommit", group_id=GROUP),
    "OffsetFetch": asked(
        "OffsetFetch", 7, group_id=GROUP, topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    ),
    "JoinGroup": asked("JoinGroup", group_id=GROUP),
    "Heartbeat": asked("Heartbeat", group_id=GROUP),
    "LeaveGroup": asked("LeaveGroup", group_id=GROUP),
    "SyncGroup": asked("SyncGroup", group_id=GROUP),
    "ListGroups": asked("ListGroups"),
    "DescribeGroups": asked("DescribeGroups", groups=[GROUP]),
    "DeleteTopics": asked("DeleteTopics", topics=[DeleteTopicState(name=TOPIC)]),
    "AddOffsetsToTxn": asked("AddOffsetsToTxn", transactional_id=ID, group_id=GROUP),
    "EndTxn": asked("EndTxn", transactional_id=ID),
    "TxnOffsetCommit": with_topics("TxnOffsetCommit", transactional_id=ID, group_id=GROUP),
    "DeleteGroups": asked("DeleteGroups", groups_names=[GROUP]),
    "OffsetDelete": with_topics("OffsetDelete", group_id=GROUP),
    "DescribeTransactions": asked("DescribeTransactions", transactional_ids=[ID]),
    "OpenWrite": with_topics("OpenWrite", app_id=OWN_NAME),
    "ClusterReport": asked("ClusterReport"),
    "BrokerReport": asked("BrokerReport"),
    "AlterSchema": asked("AlterSchema", topic=TOPIC, from_version=1),
    "OperateBrokers": asked("OperateBrokers", action="cancel"),
    "DescribeSchema": asked("DescribeSchema", topics=[TOPIC]),
    **{
        name: with_topics(name)
        for name in (
            *("ListOffsets", "DeleteRecords", "OffsetForLeaderEpoch", "CreatePartitions"),
            *("DescribeProducers", "DescribeVisibility"),
        )
    },
}
"""Requests that need the rights without a condition. What is about the cluster needs no names."""

INSIDE: Final[Mapping[tuple[str, Condition], Asked]] = {
    ("Produce", Condition.in_named_transaction): with_topics("Produce", "topic_data", transactional_id=ID),
    ("Fetch", Condition.of_consumers): with_topics("Fetch", version=12, replica_id=-1),
    ("Fetch", Condition.of_replicas): with_topics("Fetch", version=12, replica_id=2),
    ("Metadata", Condition.created_automatically): looked_up(TOPIC),
    ("Metadata", Condition.with_operations): looked_up(TOPIC, operations=True),
    ("FindCoordinator", Condition.for_group): asked(
        "FindCoordinator", key_type=GROUPS, coordinator_keys=[GROUP]
    ),
    ("FindCoordinator", Condition.for_transactional_id): asked(
        "FindCoordinator", key_type=TRANSACTIONS, coordinator_keys=[ID, OWN_NAME]
    ),
    ("CreateTopics", Condition.with_settings): asked("CreateTopics", 5, topics=CREATED),
    ("CreateTopics", Condition.of_clients): asked("CreateTopics", topics=CREATED),
    ("CreateTopics", Condition.of_internal_topics): asked("CreateTopics", topics=[*INTERNAL, *CREATED]),
    ("DeleteTopics", Condition.named_by_id): asked(
        "DeleteTopics", topics=[DeleteTopicState(name=None, topic_id=TOPIC_ID)]
    ),
    ("InitProducerId", Condition.with_transactional_id): asked("InitProducerId", transactional_id=ID),
    ("InitProducerId", Condition.without_transactional_id): asked("InitProducerId"),
    ("AddPartitionsToTxn", Condition.of_producers): added(is_verified=False),
    ("AddPartitionsToTxn", Condition.of_verifiers): added(is_verified=True),
    ("DescribeTransactions", Condition.listed): asked("DescribeTransactions", transactional_ids=[ID]),
    ("ListTransactions", Condition.listed): asked("ListTransactions"),
    ("CreateDelegationToken", Condition.for_another_owner): asked(
        "CreateDelegationToken", owner_principal_type="User", owner_principal_name="an-owner"
    ),
    ("DescribeDelegationToken", Condition.of_another_owner): asked("DescribeDelegationToken"),
    ("DescribeCluster", Condition.with_operations): asked(
        "DescribeCluster", include_cluster_authorized_operations=True
    ),
    ("BrokerReport", Condition.with_warnings): asked("BrokerReport", warnings_max=1),
    ("OpenWrite", Condition.under_own_name): with_topics("OpenWrite", app_id=OWN_NAME),
    ("OpenWrite", Condition.under_other_name): with_topics("OpenWrite", app_id=ID),
    ("EndWrite", Condition.under_other_name): asked("EndWrite", app_id=ID),
    **{
        (name, condition): with_resource(name, kind)
        for name in ("DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs")
        for condition, kind in ((Condition.for_topic, OF_TOPIC), (Condition.for_broker, OF_BROKER))
    },
}
"""Requests that need the rights with that condition."""

OUTSIDE: Final[Mapping[tuple[str, Condition], Asked]] = {
    ("Produce", Condition.in_named_transaction): with_topics(
        "Produce", "topic_data", transactional_id=OWN_NAME
    ),
    ("Metadata", Condition.created_automatically): looked_up(TOPIC, creates=False),
    ("Metadata", Condition.with_operations): looked_up(TOPIC),
    ("FindCoordinator", Condition.for_transactional_id): asked(
        "FindCoordinator", key_type=TRANSACTIONS, coordinator_keys=[OWN_NAME]
    ),
    ("CreateTopics", Condition.with_settings): asked("CreateTopics", 4, topics=CREATED),
    ("CreateTopics", Condition.of_clients): asked("CreateTopics", topics=INTERNAL),
    ("DeleteTopics", Condition.named_by_id): UNCONDITIONAL["DeleteTopics"],
    ("CreateDelegationToken", Condition.for_another_owner): asked("CreateDelegationToken"),
    ("DescribeCluster", Condition.with_operations): asked("DescribeCluster"),
    ("BrokerReport", Condition.with_warnings): asked("BrokerReport"),
    ("EndWrite", Condition.under_other_name): asked("EndWrite", app_id=OWN_NAME),
}
"""Requests of the same API that need no right with that condition, where none in ``INSIDE`` is one."""

OF_THE_ANSWER: Final = frozenset({Condition.listed, Condition.of_another_owner})
"""Conditions that the answer decides, for every request."""


def is_own(name: str | None) -> bool:
    return name is not None and name.startswith(OWN_NAMES)


IS_IN: Final[Mapping[Condition, Callable[[Any, int], bool]]] = {
    Condition.of_consumers: lambda request, _: request.replica_id < 0,
    Condition.of_replicas: lambda request, _: request.replica_id >= 0,
    Condition.of_producers: lambda _, version: version < 4,
    Condition.of_verifiers: lambda _, version: version >= 4,
    Condition.with_transactional_id: lambda request, _: request.transactional_id is not None,
    Condition.without_transactional_id: lambda request, _: request.transactional_id is None,
    Condition.in_named_transaction: lambda request, _: (
        request.transactional_id is not None and not is_own(request.transactional_id)
    ),
    Condition.for_group: lambda request, _: request.key_type == GROUPS,
    Condition.for_transactional_id: lambda request, _: (
        request.key_type == TRANSACTIONS and not all(map(is_own, request.coordinator_keys))
    ),
    Condition.under_own_name: lambda request, _: is_own(request.app_id),
    Condition.under_other_name: lambda request, _: not is_own(request.app_id),
    Condition.for_topic: lambda request, _: any(one.resource_type == OF_TOPIC for one in request.resources),
    Condition.for_broker: lambda request, _: any(
        one.resource_type in (OF_BROKER, OF_LOGGERS) for one in request.resources
    ),
    Condition.of_clients: lambda request, _: any(one.name not in INTERNAL_TOPICS for one in request.topics),
    Condition.of_internal_topics: lambda request, _: any(
        one.name in INTERNAL_TOPICS for one in request.topics
    ),
    Condition.named_by_id: lambda request, _: any(one.name is None for one in request.topics),
    Condition.created_automatically: lambda request, _: request.allow_auto_topic_creation,
    Condition.with_settings: lambda _, version: version >= 5,
    Condition.with_operations: lambda request, _: request.include_cluster_authorized_operations,
    Condition.with_warnings: lambda request, _: request.warnings_max > 0,
    Condition.for_another_owner: lambda request, _: request.owner_principal_name is not None,
}
"""Whether a request of an API with that condition is in the case, as far as the request says it."""
