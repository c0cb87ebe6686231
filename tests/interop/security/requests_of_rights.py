"""One request for each way in which rights are needed; every persona asks it of both systems.

Each entry is an API and its fields, ``%`` in texts the persona's name. None of them changes what another one
is answered: they name what is not there, only look, or only validate.
"""

import time
from typing import Any, Final

from sparklog.records.kafka.encode import Record, build_records_batch
from tests.interop.security.secured_sides import GROUP, ID, TOPIC

BEGAN_MS: Final = int(time.time() * 1_000)
TOPIC_TYPE, BROKER_TYPE = 2, 4
PART: Final = {"partition_index": 0}
NOTHING: Final = "nothing-%"
"""The name of what is not there."""

Request = tuple[str, dict[str, Any]]


def _batch(**producer: Any) -> bytes:
    return build_records_batch([Record(b"k", b"v", timestamp_ms=BEGAN_MS)], now_ms=BEGAN_MS, **producer)


def produce(topic: str, **fields: Any) -> Request:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": _batch()}]}]
    return "Produce", {"topic_data": data, "timeout_ms": 10_000, **fields}


def fetch(topic: str, **fields: Any) -> Request:
    part = {"partition": 0, "partition_max_bytes": 1_000, "log_start_offset": -1, "last_fetched_epoch": -1}
    wanted = [{"topic": topic, "partitions": [part]}]
    return "Fetch", {"topics": wanted, "max_bytes": 1_000, "version": 11, **fields}


def _topics(api: str, name: str, part: dict[str, Any], **fields: Any) -> Request:
    return api, {
        "topics": [{"name": name, "topic": name, "partitions": [part], "partition_indexes": [0]}],
        **fields,
    }


def _config(api: str, kind: int, name: str, **fields: Any) -> Request:
    name_of_setting = "retention.ms" if kind == TOPIC_TYPE else "log.retention.ms"
    setting = {"name": name_of_setting, "value": "1000", "config_operation": 0}
    return api, {
        "resources": [{"resource_type": kind, "resource_name": name, "configs": [setting], **fields}],
        "validate_only": 1,
    }


_OFFSETS: Final = {"partition_index": 0, "committed_offset": 0}
_TXN: Final = {"producer_id": 77_777, "producer_epoch": 0}
_NEW: Final = {"num_partitions": 1, "replication_factor": 1}
_ANY_RULE: Final = {
    "resource_type_filter": 2,
    "resource_name_filter": NOTHING,
    "pattern_type_filter": 3,
    "operation": 1,
    "permission_type": 1,
}
_A_RULE: Final = {
    "resource_type": 2,
    "resource_name": "nobody's",
    "resource_pattern_type": 3,
    "principal": "User:none",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_MEMBER: Final = {"group_id": NOTHING, "member_id": "stranger", "generation_id": 1}
_DELETION: Final = {"name": "none-of-us", "mechanism": 1}
_QUOTA: Final = {
    "entity": [{"entity_type": "user", "entity_name": "none"}],
    "ops": [{"key": "producer_byte_rate", "value": 1e6}],
}
_REMARK: Final = {
    "producer_id": 1,
    "transaction_result": 0,
    "topics": [{"name": NOTHING, "partition_indexes": [0]}],
}

REQUESTS: Final[dict[str, Request]] = {
    "produce": produce(TOPIC),
    "produce to nothing": produce(NOTHING),
    "produce in a transaction": produce(TOPIC, transactional_id=ID),
    "fetch": fetch(TOPIC),
    "fetch from nothing": fetch(NOTHING),
    "fetch as a replica": fetch(TOPIC, replica_id=1),
    "list offsets": _topics("ListOffsets", TOPIC, {"partition_index": 0, "timestamp": -2}),
    "list offsets of nothing": _topics("ListOffsets", NOTHING, {"partition_index": 0, "timestamp": -2}),
    "ends of epochs": _topics("OffsetForLeaderEpoch", TOPIC, {"partition": 0, "leader_epoch": 0}),
    "ends of epochs of nothing": _topics(
        "OffsetForLeaderEpoch", NOTHING, {"partition": 0, "leader_epoch": 0}
    ),
    "metadata": ("Metadata", {"topics": [{"name": TOPIC}], "include_topic_authorized_operations": 1}),
    "metadata of nothing": ("Metadata", {"topics": [{"name": NOTHING}], "allow_auto_topic_creation": 1}),
    "metadata of all": ("Metadata", {"topics": None}),
    "metadata, with operations on the cluster": (
        "Metadata",
        {"topics": [], "include_cluster_authorized_operations": 1, "version": 10},
    ),
    "the cluster": ("DescribeCluster", {"include_cluster_authorized_operations": 1}),
    "delete records": _topics("DeleteRecords", TOPIC, {"partition_index": 0, "offset": 0}, timeout_ms=10_000),
    "producers": _topics("DescribeProducers", TOPIC, {}),
    "commit offsets": _topics("OffsetCommit", TOPIC, _OFFSETS, group_id=GROUP),
    "fetch offsets": (
        "OffsetFetch",
        {"group_id": GROUP, "topics": [{"name": TOPIC, "partition_indexes": [0]}], "version": 7},
    ),
    "fetch all offsets": ("OffsetFetch", {"group_id": GROUP, "topics": None, "version": 7}),
    "fetch offsets of groups": (
        "OffsetFetch",
        {"groups": [{"group_id": GROUP, "topics": None}, {"group_id": NOTHING, "topics": []}], "version": 8},
    ),
    "delete offsets": _topics("OffsetDelete", TOPIC, PART, group_id=NOTHING),
    "find a group": ("FindCoordinator", {"key_type": 0, "coordinator_keys": [GROUP]}),
    "find a producer": ("FindCoordinator", {"key_type": 1, "coordinator_keys": [ID]}),
    "join": (
        "JoinGroup",
        {
            "group_id": NOTHING,
            "session_timeout_ms": 0,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"\0"}],
            "version": 4,
        },
    ),
    "sync": ("SyncGroup", {**_MEMBER, "protocol_type": "consumer", "protocol_name": "range"}),
    "heartbeat": ("Heartbeat", _MEMBER),
    "leave": ("LeaveGroup", {"group_id": NOTHING, "members": [{"member_id": "stranger"}]}),
    "groups": ("ListGroups", {}),
    "describe groups": ("DescribeGroups", {"groups": [GROUP, NOTHING], "include_authorized_operations": 1}),
    "delete groups": ("DeleteGroups", {"groups_names": [NOTHING]}),
    "create a topic": (
        "CreateTopics",
        {"topics": [{"name": NOTHING, **_NEW}], "validate_only": 1, "timeout_ms": 10_000},
    ),
    "create a topic with settings": (
        "CreateTopics",
        {
            "topics": [{"name": NOTHING, **_NEW, "configs": [{"name": "retention.ms", "value": "7"}]}],
            "validate_only": 1,
            "timeout_ms": 10_000,
        },
    ),
    "create a topic that is there": (
        "CreateTopics",
        {"topics": [{"name": TOPIC, **_NEW}], "timeout_ms": 10_000},
    ),
    "create partitions": (
        "CreatePartitions",
        {"topics": [{"name": TOPIC, "count": 1}], "timeout_ms": 10_000},
    ),
    "delete a topic": ("DeleteTopics", {"topics": [{"name": NOTHING}], "timeout_ms": 10_000}),
    "delete a topic by id": (
        "DeleteTopics",
        {"topics": [{"name": None, "topic_id": b"7" * 16}], "timeout_ms": 10_000},
    ),
    "settings of a topic": _config("DescribeConfigs", TOPIC_TYPE, TOPIC, configuration_keys=["retention.ms"]),
    "settings of a broker": _config(
        "DescribeConfigs", BROKER_TYPE, "1", configuration_keys=["log.retention.ms"]
    ),
    "change settings of a topic": _config("IncrementalAlterConfigs", TOPIC_TYPE, TOPIC),
    "change settings of brokers": _config("IncrementalAlterConfigs", BROKER_TYPE, ""),
    "replace settings of a topic": _config("AlterConfigs", TOPIC_TYPE, TOPIC),
    "log directories": ("DescribeLogDirs", {"topics": [{"topic": TOPIC, "partitions": [0]}]}),
    "elect": (
        "ElectLeaders",
        {"topic_partitions": [{"topic": NOTHING, "partitions": [0]}], "timeout_ms": 10_000},
    ),
    "reassign": (
        "AlterPartitionReassignments",
        {
            "topics": [{"name": NOTHING, "partitions": [{"partition_index": 0, "replicas": [1]}]}],
            "timeout_ms": 10_000,
        },
    ),
    "reassignments": ("ListPartitionReassignments", {"topics": None, "timeout_ms": 10_000}),
    "a producer id": (
        "InitProducerId",
        {"transaction_timeout_ms": 1_000, "producer_id": -1, "producer_epoch": -1},
    ),
    "a producer id with a name": (
        "InitProducerId",
        {
            "transactional_id": NOTHING,
            "transaction_timeout_ms": 1_000,
            "producer_id": -1,
            "producer_epoch": -1,
        },
    ),
    "add partitions": (
        "AddPartitionsToTxn",
        {
            "v3_and_below_transactional_id": ID,
            "v3_and_below_producer_id": 77_777,
            "version": 3,
            "v3_and_below_topics": [{"name": TOPIC, "partitions": [0]}, {"name": NOTHING, "partitions": [0]}],
        },
    ),
    "add partitions as a broker": (
        "AddPartitionsToTxn",
        {
            "transactions": [
                {
                    "transactional_id": ID,
                    **_TXN,
                    "verify_only": 1,
                    "topics": [{"name": TOPIC, "partitions": [0]}],
                }
            ],
            "version": 4,
        },
    ),
    "add offsets": ("AddOffsetsToTxn", {"transactional_id": ID, "group_id": GROUP, **_TXN}),
    "end a transaction": ("EndTxn", {"transactional_id": ID, "committed": 0, **_TXN}),
    "commit offsets in a transaction": _topics(
        "TxnOffsetCommit", TOPIC, _OFFSETS, transactional_id=ID, group_id=GROUP, **_TXN
    ),
    "write markers": ("WriteTxnMarkers", {"markers": [_REMARK]}),
    "transactions": ("ListTransactions", {}),
    "describe transactions": ("DescribeTransactions", {"transactional_ids": [ID, NOTHING]}),
    "rules": ("DescribeAcls", _ANY_RULE),
    "create a rule": ("CreateAcls", {"creations": [_A_RULE]}),
    "delete a rule": ("DeleteAcls", {"filters": [_ANY_RULE]}),
    "users": ("DescribeUserScramCredentials", {"users": [{"name": "none-of-us"}]}),
    "delete a user": ("AlterUserScramCredentials", {"deletions": [_DELETION]}),
    "quotas": ("DescribeClientQuotas", {"components": [], "strict": 0}),
    "set a quota": ("AlterClientQuotas", {"entries": [_QUOTA], "validate_only": 1}),
    "tokens": ("DescribeDelegationToken", {"owners": None}),
    "a token": ("CreateDelegationToken", {"max_lifetime_ms": -1}),
}


def named(fields: Any, persona: str) -> Any:
    """The fields, with the persona's name in them."""
    if isinstance(fields, dict):
        return {key: named(value, persona) for key, value in fields.items()}
    if isinstance(fields, list):
        return [named(value, persona) for value in fields]
    return fields.replace("%", persona) if isinstance(fields, str) else fields
