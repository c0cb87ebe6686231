"""Every API of the protocol: on which listeners it is served, which rights it needs, which quota it uses up.

``API_RULES`` has a row for each API of ``sparklog.wire.versions``. Dispatchers read the listeners. Nothing
enforces rights and quotas yet: the rows are what an authorizer and a throttle will read. The rights are
Kafka's (KIP-11, KIP-140 and the KIP of each API). The brokers' listener serves clients' APIs too, because
followers fetch.

What the controller decides on it serves directly as well: its listener is not for clients, but a client that
reaches it is answered as by a broker.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType, Right


class ListenerKind(enum.Enum):
    """What a listener is for. The listener that is named for brokers is also one for clients."""

    clients = "clients"
    brokers = "brokers"
    controller = "controller"


class Quota(enum.Enum):
    """What a request uses up. Requests between brokers and the controller use up nothing."""

    none = "none"
    produce = "produce"
    """Bytes written (KIP-13), and the time of handlers (KIP-124)."""
    fetch = "fetch"
    """Bytes read, and the time of handlers."""
    request = "request"
    """The time of handlers alone."""
    controller_mutation = "controller mutation"
    """Partitions created and deleted (KIP-599), and the time of handlers."""


@dataclass(frozen=True, slots=True)
class ApiRule:
    """``rights`` are those that a request needs, each under its condition; without any, everybody may ask."""

    name: str
    listeners: frozenset[ListenerKind]
    rights: tuple[Right, ...]
    quota: Quota


_CLIENTS: Final = frozenset({ListenerKind.clients, ListenerKind.brokers})
_EVERYWHERE: Final = frozenset(ListenerKind)
_BROKERS: Final = frozenset({ListenerKind.brokers})
_CONTROLLER: Final = frozenset({ListenerKind.controller})

_READ_TOPIC: Final = Right(AclOperation.read, ResourceType.topic, "of consumers")
_WRITE_TOPIC: Final = Right(AclOperation.write, ResourceType.topic)
_ALTER_TOPIC: Final = Right(AclOperation.alter, ResourceType.topic)
_DELETE_TOPIC: Final = Right(AclOperation.delete, ResourceType.topic)
_DESCRIBE_TOPIC: Final = Right(AclOperation.describe, ResourceType.topic)
_ALTER_CLUSTER: Final = Right(AclOperation.alter, ResourceType.cluster)
_DESCRIBE_CLUSTER: Final = Right(AclOperation.describe, ResourceType.cluster)
_CLUSTER_ACTION: Final = Right(AclOperation.cluster_action, ResourceType.cluster)
_OF_REPLICAS: Final = Right(AclOperation.cluster_action, ResourceType.cluster, "of replicas")
_AS_TRANSACTION: Final = Right(AclOperation.write, ResourceType.transactional_id, "with a transactional id")
_AS_IDEMPOTENT: Final = Right(
    AclOperation.idempotent_write,
    ResourceType.cluster,
    "without a transactional id",
)
_WRITE_TRANSACTION: Final = Right(AclOperation.write, ResourceType.transactional_id)
_DESCRIBE_TRANSACTION: Final = Right(AclOperation.describe, ResourceType.transactional_id)
_OF_VERIFIERS: Final = Right(AclOperation.cluster_action, ResourceType.cluster, "of brokers that verify")
_CREATE_TOPICS: Final = (
    Right(AclOperation.create, ResourceType.cluster, "or else on each topic"),
    Right(AclOperation.create, ResourceType.topic),
    Right(AclOperation.describe_configs, ResourceType.topic, "to be answered with its settings"),
)
_CREATE_MISSING: Final = Right(AclOperation.create, ResourceType.topic, "that is created automatically")
_DELETE_BY_ID: Final = Right(AclOperation.describe, ResourceType.topic, "named by its id")
_FIND_GROUP: Final = Right(AclOperation.describe, ResourceType.group, "for a group")
_FIND_TRANSACTION: Final = Right(
    AclOperation.describe, ResourceType.transactional_id, "for a transactional id"
)
_DESCRIBE_CONFIGS: Final = (
    Right(AclOperation.describe_configs, ResourceType.topic, "for a topic"),
    Right(AclOperation.describe_configs, ResourceType.cluster, "for a broker"),
)
_ALTER_CONFIGS: Final = (
    Right(AclOperation.alter_configs, ResourceType.topic, "for a topic"),
    Right(AclOperation.alter_configs, ResourceType.cluster, "for a broker"),
)
_READ_GROUP: Final = Right(AclOperation.read, ResourceType.group)
_DESCRIBE_GROUP: Final = Right(AclOperation.describe, ResourceType.group)
_DELETE_GROUP: Final = Right(AclOperation.delete, ResourceType.group)
_CONSUME_TOPIC: Final = Right(AclOperation.read, ResourceType.topic)
_LIST_GROUPS: Final = (
    Right(AclOperation.describe, ResourceType.cluster, "or else on each group"),
    Right(AclOperation.describe, ResourceType.group, "that is listed"),
)
_DESCRIBE_QUOTAS: Final = Right(AclOperation.describe_configs, ResourceType.cluster)
_ALTER_QUOTAS: Final = Right(AclOperation.alter_configs, ResourceType.cluster)
_CREATE_TOKENS: Final = Right(AclOperation.create_tokens, ResourceType.user, "for another owner")
_DESCRIBE_TOKENS: Final = (
    Right(AclOperation.describe, ResourceType.delegation_token, "of another owner"),
    Right(AclOperation.describe_tokens, ResourceType.user, "or else on the owner"),
)
_DESCRIBE_EPOCHS: Final = Right(AclOperation.describe, ResourceType.topic, "of consumers")


def _between_brokers(name: str, listeners: frozenset[ListenerKind]) -> ApiRule:
    return ApiRule(name, listeners, (_CLUSTER_ACTION,), Quota.none)


API_RULES: Final[Mapping[int, ApiRule]] = MappingProxyType(
    {
        0: ApiRule("Produce", _CLIENTS, (_WRITE_TOPIC, _AS_TRANSACTION), Quota.produce),
        1: ApiRule("Fetch", _CLIENTS, (_READ_TOPIC, _OF_REPLICAS), Quota.fetch),
        2: ApiRule("ListOffsets", _CLIENTS, (_DESCRIBE_TOPIC,), Quota.request),
        3: ApiRule("Metadata", _CLIENTS, (_DESCRIBE_TOPIC, _CREATE_MISSING), Quota.request),
        4: _between_brokers("LeaderAndIsr", _BROKERS),
        5: _between_brokers("StopReplica", _BROKERS),
        6: _between_brokers("UpdateMetadata", _BROKERS),
        7: _between_brokers("ControlledShutdown", _CONTROLLER),
        8: ApiRule("OffsetCommit", _CLIENTS, (_READ_GROUP, _CONSUME_TOPIC), Quota.request),
        9: ApiRule("OffsetFetch", _CLIENTS, (_DESCRIBE_GROUP, _DESCRIBE_TOPIC), Quota.request),
        10: ApiRule("FindCoordinator", _CLIENTS, (_FIND_GROUP, _FIND_TRANSACTION), Quota.request),
        11: ApiRule("JoinGroup", _CLIENTS, (_READ_GROUP,), Quota.request),
        12: ApiRule("Heartbeat", _CLIENTS, (_READ_GROUP,), Quota.request),
        13: ApiRule("LeaveGroup", _CLIENTS, (_READ_GROUP,), Quota.request),
        14: ApiRule("SyncGroup", _CLIENTS, (_READ_GROUP,), Quota.request),
        15: ApiRule("DescribeGroups", _CLIENTS, (_DESCRIBE_GROUP,), Quota.request),
        16: ApiRule("ListGroups", _CLIENTS, _LIST_GROUPS, Quota.request),
        17: ApiRule("SaslHandshake", _CLIENTS, (), Quota.request),
        18: ApiRule("ApiVersions", _EVERYWHERE, (), Quota.request),
        19: ApiRule("CreateTopics", _EVERYWHERE, _CREATE_TOPICS, Quota.controller_mutation),
        20: ApiRule("DeleteTopics", _EVERYWHERE, (_DELETE_TOPIC, _DELETE_BY_ID), Quota.controller_mutation),
        21: ApiRule("DeleteRecords", _CLIENTS, (_DELETE_TOPIC,), Quota.request),
        22: ApiRule("InitProducerId", _CLIENTS, (_AS_TRANSACTION, _AS_IDEMPOTENT), Quota.request),
        23: ApiRule("OffsetForLeaderEpoch", _CLIENTS, (_DESCRIBE_EPOCHS, _OF_REPLICAS), Quota.request),
        24: ApiRule(
            "AddPartitionsToTxn", _CLIENTS, (_WRITE_TRANSACTION, _WRITE_TOPIC, _OF_VERIFIERS), Quota.request
        ),
        25: ApiRule("AddOffsetsToTxn", _CLIENTS, (_WRITE_TRANSACTION, _READ_GROUP), Quota.request),
        26: ApiRule("EndTxn", _CLIENTS, (_WRITE_TRANSACTION,), Quota.request),
        27: ApiRule("WriteTxnMarkers", _CLIENTS, (_CLUSTER_ACTION,), Quota.request),
        28: ApiRule(
            "TxnOffsetCommit", _CLIENTS, (_WRITE_TRANSACTION, _READ_GROUP, _CONSUME_TOPIC), Quota.request
        ),
        29: ApiRule("DescribeAcls", _CLIENTS, (_DESCRIBE_CLUSTER,), Quota.request),
        30: ApiRule("CreateAcls", _CLIENTS, (_ALTER_CLUSTER,), Quota.request),
        31: ApiRule("DeleteAcls", _CLIENTS, (_ALTER_CLUSTER,), Quota.request),
        32: ApiRule("DescribeConfigs", _CLIENTS, _DESCRIBE_CONFIGS, Quota.request),
        33: ApiRule("AlterConfigs", _EVERYWHERE, _ALTER_CONFIGS, Quota.request),
        35: ApiRule("DescribeLogDirs", _CLIENTS, (_DESCRIBE_CLUSTER,), Quota.request),
        36: ApiRule("SaslAuthenticate", _CLIENTS, (), Quota.request),
        37: ApiRule("CreatePartitions", _EVERYWHERE, (_ALTER_TOPIC,), Quota.controller_mutation),
        38: ApiRule("CreateDelegationToken", _CLIENTS, (_CREATE_TOKENS,), Quota.request),
        39: ApiRule("RenewDelegationToken", _CLIENTS, (), Quota.request),
        40: ApiRule("ExpireDelegationToken", _CLIENTS, (), Quota.request),
        41: ApiRule("DescribeDelegationToken", _CLIENTS, _DESCRIBE_TOKENS, Quota.request),
        42: ApiRule("DeleteGroups", _CLIENTS, (_DELETE_GROUP,), Quota.request),
        43: ApiRule("ElectLeaders", _EVERYWHERE, (_ALTER_CLUSTER,), Quota.request),
        44: ApiRule("IncrementalAlterConfigs", _EVERYWHERE, _ALTER_CONFIGS, Quota.request),
        45: ApiRule("AlterPartitionReassignments", _EVERYWHERE, (_ALTER_CLUSTER,), Quota.request),
        46: ApiRule("ListPartitionReassignments", _EVERYWHERE, (_DESCRIBE_CLUSTER,), Quota.request),
        47: ApiRule("OffsetDelete", _CLIENTS, (_DELETE_GROUP, _CONSUME_TOPIC), Quota.request),
        48: ApiRule("DescribeClientQuotas", _EVERYWHERE, (_DESCRIBE_QUOTAS,), Quota.request),
        49: ApiRule("AlterClientQuotas", _EVERYWHERE, (_ALTER_QUOTAS,), Quota.request),
        50: ApiRule("DescribeUserScramCredentials", _CLIENTS, (_DESCRIBE_CLUSTER,), Quota.request),
        56: _between_brokers("AlterPartition", _CONTROLLER),
        58: _between_brokers("Envelope", _CONTROLLER),
        60: ApiRule("DescribeCluster", _CLIENTS, (), Quota.request),
        61: ApiRule("DescribeProducers", _CLIENTS, (_CONSUME_TOPIC,), Quota.request),
        65: ApiRule("DescribeTransactions", _CLIENTS, (_DESCRIBE_TRANSACTION,), Quota.request),
        66: ApiRule("ListTransactions", _CLIENTS, (_DESCRIBE_TRANSACTION,), Quota.request),
        67: _between_brokers("AllocateProducerIds", _CONTROLLER),
        73: _between_brokers("AssignReplicasToDirs", _CONTROLLER),
        10_000: ApiRule("OpenWrite", _CLIENTS, (_WRITE_TRANSACTION, _WRITE_TOPIC), Quota.request),
        10_001: ApiRule("EndWrite", _CLIENTS, (_WRITE_TRANSACTION,), Quota.request),
        10_002: ApiRule("Agree", _CLIENTS, (_DESCRIBE_TRANSACTION,), Quota.request),
        10_003: ApiRule("DescribeVisibility", _CLIENTS, (_DESCRIBE_TOPIC,), Quota.request),
    }
)
