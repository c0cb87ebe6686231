"""A request for each case of each row of the table of APIs: one in which the right is needed."""

import itertools
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sparklog.core.security.conditions import Condition
from sparklog.model.ids import TopicId
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.codec import message_class

TOPIC: Final = "matrix-topic"
NO_TOPIC: Final = "matrix-no-topic"
GROUP: Final = "matrix-group"
TRANSACTION: Final = "matrix-transaction"
OTHER_USER: Final = "User:matrix-other"
OWN_WRITE: Final = "write-matrix"
APP: Final = "app-matrix"

Make = Callable[[TopicId], Any]
"""Makes the request; the topic's id is known when the cluster is up."""


class Sample(NamedTuple):
    """``first`` and ``last``: the versions in which the case occurs."""

    make: Make
    first: int = 0
    last: int = 100


def _of(key: int, /, **fields: Any) -> Any:
    return message_class(key, "request")(**fields)


def _in(key: int, part_name: str, /, **fields: Any) -> Any:
    """A part of the request with this key."""
    part = getattr(sys.modules[message_class(key, "request").__module__], part_name)
    return part(**fields)


_numbers = itertools.count()


def _new(make_of: Callable[[str], Any], first: int = 0, last: int = 100) -> Sample:
    """A request that names a topic that has never been there."""
    return Sample(lambda _: make_of(f"matrix-new-{next(_numbers)}"), first, last)


def _sample(key: int, first: int = 0, last: int = 100, /, **fields: Any) -> Sample:
    return Sample(lambda _: _of(key, **fields), first, last)


def _produce(is_transactional: bool, **fields: Any) -> Sample:
    stamp = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0} if is_transactional else {}
    batch = build_records_batch(
        [Record(value=b"a")], now_ms=1_000, is_transactional=is_transactional, **stamp
    )

    def make(_: TopicId) -> Any:
        data = _in(0, "ProducePartition", index=0, records=bytearray(batch))
        return _of(0, topic_data=[_in(0, "ProduceTopic", name=TOPIC, partition_data=[data])], **fields)

    return Sample(make, 3)


def _fetch(replica_id: int) -> Sample:
    def make(topic_id: TopicId) -> Any:
        part = _in(1, "FetchPartition", partition=0, fetch_offset=0, partition_max_bytes=1_000)
        topic = _in(1, "FetchTopic", topic=TOPIC, topic_id=topic_id, partitions=[part])
        return _of(1, replica_id=replica_id, max_wait_ms=0, topics=[topic])

    return Sample(make)


def _described_by_id(topic_id: TopicId) -> Any:
    return _of(20, topics=[_in(20, "DeleteTopicState", topic_id=topic_id)])


_MATCH_ALL = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
_RULE = {
    "resource_type": 2,
    "resource_name": "matrix-rule",
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_MEMBER = {"group_id": GROUP, "generation_id": 1, "member_id": "m"}
_PRODUCER = {"producer_id": 5, "producer_epoch": 0}
_BROKER = {"broker_id": 1, "broker_epoch": 1}
_FROM_CONTROLLER = {"controller_id": 1, "controller_epoch": 1, "broker_epoch": 1}
_RUN = {"app_version": 0, "run": "r"}


def _offsets(key: int, **fields: Any) -> dict[str, Any]:
    prefix = message_class(key, "request").__name__
    part = _in(key, f"{prefix}Partition", partition_index=0, committed_offset=0)
    return {"topics": [_in(key, f"{prefix}Topic", name=TOPIC, partitions=[part])], **fields}


def _resource(key: int, name: str, kind: int) -> dict[str, Any]:
    resource_name = TOPIC if kind == TOPIC_RESOURCE else "1"
    return {"resources": [_in(key, name, resource_type=kind, resource_name=resource_name)]}


def _settings(api: str, key: int, name: str) -> dict[tuple[str, Condition], Sample]:
    return {
        (api, Condition.for_topic): _sample(key, **_resource(key, name, TOPIC_RESOURCE)),
        (api, Condition.for_broker): _sample(key, **_resource(key, name, BROKER_RESOURCE)),
    }


def _new_topic(name: str) -> dict[str, Any]:
    return {"topics": [_in(19, "CreatableTopic", name=name, num_partitions=1, replication_factor=1)]}


def _add_partitions() -> list[Any]:
    return [_in(24, "AddPartitionsToTxnTopic", name=TOPIC, partitions=[0])]


ALWAYS, LISTED = Condition.always, Condition.listed

SAMPLES: Final[Mapping[tuple[str, Condition], Sample]] = {
    ("Produce", ALWAYS): _produce(False),
    ("Produce", Condition.in_named_transaction): _produce(True, transactional_id=TRANSACTION),
    ("Fetch", Condition.of_consumers): _fetch(-1),
    ("Fetch", Condition.of_replicas): _fetch(2),
    ("ListOffsets", ALWAYS): _sample(2, topics=[
        _in(2, "ListOffsetsTopic", name=TOPIC,
            partitions=[_in(2, "ListOffsetsPartition", partition_index=0, timestamp=-1)])]),
    ("Metadata", ALWAYS): _sample(3, topics=[_in(3, "MetadataRequestTopic", name=TOPIC)]),
    ("Metadata", Condition.created_automatically): _new(
        lambda name: _of(3, topics=[_in(3, "MetadataRequestTopic", name=name)]), 4),
    ("Metadata", Condition.with_operations): _sample(
        3, 8, 10, topics=[], include_cluster_authorized_operations=True),
    ("OffsetCommit", ALWAYS): _sample(8, **_offsets(8, group_id=GROUP)),
    ("OffsetFetch", ALWAYS): _sample(
        9, 0, 7, group_id=GROUP,
        topics=[_in(9, "OffsetFetchRequestTopic", name=TOPIC, partition_indexes=[0])]),
    ("FindCoordinator", Condition.for_group): _sample(10, 4, key_type=0, coordinator_keys=[GROUP]),
    ("FindCoordinator", Condition.for_transactional_id): _sample(10, 1, 3, key_type=1, key=TRANSACTION),
    ("JoinGroup", ALWAYS): _sample(
        11, group_id=GROUP, session_timeout_ms=6_000, rebalance_timeout_ms=6_000, member_id="m",
        protocol_type="consumer", protocols=[]),
    ("Heartbeat", ALWAYS): _sample(12, **_MEMBER),
    ("LeaveGroup", ALWAYS): _sample(13, 0, 2, group_id=GROUP, member_id="m"),
    ("SyncGroup", ALWAYS): _sample(14, **_MEMBER),
    ("DescribeGroups", ALWAYS): _sample(15, groups=[GROUP]),
    ("ListGroups", ALWAYS): _sample(16),
    ("CreateTopics", Condition.of_clients): _new(
        lambda name: _of(19, **_new_topic(name), validate_only=True), 1),
    ("CreateTopics", Condition.of_internal_topics): _sample(
        19, 1, **_new_topic(GROUP_OFFSETS_TOPIC), validate_only=True),
    ("CreateTopics", Condition.with_settings): _new(
        lambda name: _of(19, **_new_topic(name), validate_only=True), 5),
    ("DeleteTopics", ALWAYS): _sample(20, 0, 5, topic_names=[NO_TOPIC]),
    ("DeleteTopics", Condition.named_by_id): Sample(_described_by_id, 6),
    ("DeleteRecords", ALWAYS): _sample(21, topics=[
        _in(21, "DeleteRecordsTopic", name=TOPIC,
            partitions=[_in(21, "DeleteRecordsPartition", partition_index=0, offset=0)])]),
    ("InitProducerId", Condition.with_transactional_id): _sample(
        22, transactional_id=TRANSACTION, transaction_timeout_ms=1_000),
    ("InitProducerId", Condition.without_transactional_id): _sample(22, transaction_timeout_ms=1_000),
    ("OffsetForLeaderEpoch", ALWAYS): _sample(23, topics=[
        _in(23, "OffsetForLeaderTopic", topic=TOPIC,
            partitions=[_in(23, "OffsetForLeaderPartition", partition=0, leader_epoch=0)])]),
    ("AddPartitionsToTxn", Condition.of_producers): _sample(
        24, 0, 3, v3_and_below_transactional_id=TRANSACTION, v3_and_below_producer_id=5,
        v3_and_below_producer_epoch=0, v3_and_below_topics=_add_partitions()),
    ("AddPartitionsToTxn", Condition.of_verifiers): _sample(24, 4, transactions=[
        _in(24, "AddPartitionsToTxnTransaction", transactional_id=TRANSACTION, **_PRODUCER,
            verify_only=True, topics=_add_partitions())]),
    ("AddOffsetsToTxn", ALWAYS): _sample(25, transactional_id=TRANSACTION, **_PRODUCER, group_id=GROUP),
    ("EndTxn", ALWAYS): _sample(26, transactional_id=TRANSACTION, **_PRODUCER, committed=True),
    ("WriteTxnMarkers", ALWAYS): _sample(27, markers=[
        _in(27, "WritableTxnMarker", **_PRODUCER, transaction_result=False, coordinator_epoch=0,
            topics=[_in(27, "WritableTxnMarkerTopic", name=NO_TOPIC, partition_indexes=[0])])]),
    ("TxnOffsetCommit", ALWAYS): _sample(
        28, **_offsets(28, transactional_id=TRANSACTION, group_id=GROUP, **_PRODUCER)),
    ("DescribeAcls", ALWAYS): _sample(29, 1, **_MATCH_ALL),
    ("CreateAcls", ALWAYS): _sample(30, creations=[_in(30, "AclCreation", **_RULE)]),
    ("DeleteAcls", ALWAYS): _sample(31, 1, filters=[_in(31, "DeleteAclsFilter", **_MATCH_ALL,
                                                        principal_filter="User:nobody-has-rules")]),
    **_settings("DescribeConfigs", 32, "DescribeConfigsResource"),
    **_settings("AlterConfigs", 33, "AlterConfigsResource"),
    **_settings("IncrementalAlterConfigs", 44, "IncrementalAlterConfigsResource"),
    ("DescribeLogDirs", ALWAYS): _sample(35, 3, topics=None),
    ("CreatePartitions", ALWAYS): _sample(
        37, topics=[_in(37, "CreatePartitionsTopic", name=TOPIC, count=1, assignments=None)],
        validate_only=True),
    ("CreateDelegationToken", Condition.for_another_owner): _sample(
        38, 3, owner_principal_type="User", owner_principal_name=OTHER_USER.partition(":")[2],
        max_lifetime_ms=-1),
    ("DescribeDelegationToken", Condition.of_another_owner): _sample(41, owners=None),
    ("DeleteGroups", ALWAYS): _sample(42, groups_names=[GROUP]),
    ("ElectLeaders", ALWAYS): _sample(43, topic_partitions=[
        _in(43, "ElectLeadersTopicPartitions", topic=TOPIC, partitions=[0])]),
    ("AlterPartitionReassignments", ALWAYS): _sample(45, topics=[
        _in(45, "ReassignableTopic", name=TOPIC,
            partitions=[_in(45, "ReassignablePartition", partition_index=0, replicas=None)])]),
    ("ListPartitionReassignments", ALWAYS): _sample(46, topics=None),
    ("OffsetDelete", ALWAYS): _sample(47, group_id=GROUP, topics=[
        _in(47, "OffsetDeleteRequestTopic", name=TOPIC,
            partitions=[_in(47, "OffsetDeleteRequestPartition", partition_index=0)])]),
    ("DescribeClientQuotas", ALWAYS): _sample(48, components=[], strict=False),
    ("AlterClientQuotas", ALWAYS): _sample(49, validate_only=True, entries=[
        _in(49, "EntryData", ops=[],
            entity=[_in(49, "EntityData", entity_type="user", entity_name="matrix")])]),
    ("DescribeUserScramCredentials", ALWAYS): _sample(50, users=None),
    ("AlterUserScramCredentials", ALWAYS): _sample(51, upsertions=[], deletions=[
        _in(51, "ScramCredentialDeletion", name="matrix", mechanism=1)]),
    ("DescribeCluster", Condition.with_operations): _sample(60, include_cluster_authorized_operations=True),
    ("ClusterReport", ALWAYS): _sample(10_004),
    ("BrokerReport", ALWAYS): _sample(10_005),
    ("BrokerReport", Condition.with_warnings): _sample(10_005, warnings_max=1),
    ("OperateBrokers", ALWAYS): _sample(10_006, action="cancel", operation=1_000_000),
    ("DescribeProducers", ALWAYS): _sample(61, topics=[
        _in(61, "DescribeProducersTopic", name=TOPIC, partition_indexes=[0])]),
    ("DescribeTransactions", ALWAYS): _sample(65, transactional_ids=[TRANSACTION]),
    ("DescribeTransactions", LISTED): _sample(65, transactional_ids=[TRANSACTION]),
    ("ListTransactions", LISTED): _sample(66),
    ("OpenWrite", ALWAYS): _sample(
        10_000, app_id=OWN_WRITE, **_RUN, attempt="a", timeout_ms=1_000, is_plain=True, state=0,
        topics=[_in(10_000, "OpenWriteTopic", name=TOPIC, partitions=[0])]),
    ("OpenWrite", Condition.under_own_name): _sample(
        10_000, app_id=OWN_WRITE, **_RUN, attempt="b", timeout_ms=1_000, is_plain=True, state=0, topics=[]),
    ("OpenWrite", Condition.under_other_name): _sample(
        10_000, app_id=APP, **_RUN, attempt="c", timeout_ms=1_000, state=0, topics=[]),
    ("EndWrite", Condition.under_other_name): _sample(10_001, app_id=APP, **_RUN, is_commit=False),
    ("DescribeVisibility", ALWAYS): _sample(10_003, topics=[
        _in(10_003, "AskedTopic", name=TOPIC,
            partitions=[_in(10_003, "AskedPartition", partition_index=0, since_offset=0)])]),
    ("DescribeSchema", ALWAYS): _sample(10_007, topics=[TOPIC]),
    ("AlterSchema", ALWAYS): _sample(10_008, topic=TOPIC, from_version=1),
    ("LeanFetch", ALWAYS): _sample(10_009, session_id=1, session_epoch=1),
    ("LeaderAndIsr", ALWAYS): _sample(4, **_FROM_CONTROLLER),
    ("StopReplica", ALWAYS): _sample(5, **_FROM_CONTROLLER),
    ("UpdateMetadata", ALWAYS): _sample(6, **_FROM_CONTROLLER),
    ("ControlledShutdown", ALWAYS): _sample(7, **_BROKER),
    ("AlterPartition", ALWAYS): _sample(56, **_BROKER),
    ("Envelope", ALWAYS): _sample(58, request_data=b"", request_principal=b"User:x",
                                  client_host_address=b"127.0.0.1"),
    ("AllocateProducerIds", ALWAYS): _sample(67, **_BROKER),
    ("AssignReplicasToDirs", ALWAYS): _sample(73, **_BROKER),
}  # fmt: skip
