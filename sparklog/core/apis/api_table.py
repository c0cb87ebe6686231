"""Every API of the protocol, one row each, sorted by key. All that is data about an API stands here.

To add an API, add its row, by the function of its kind. Then write the code that the row says (``Code``),
under the row's name; tests say which is missing:

- its messages in ``wire/messages/<family>``, and their layout (``scripts/make_schemas.py``);
- its handler in ``broker/handlers``, named in ``broker/apis.py``, unless brokers forward it whole;
- its command in ``core/controller/commands``, named in ``wire/commands/command_apis.py``, if the controller
  decides.

Versions are those of Kafka 3.6, because clients infer the broker's release from them. They begin at 0 for
clients: a Produce minimum of 3 makes older librdkafka send its batches uncompressed without a word
(KAFKA-18659). Brokers and the controller speak one version, because both ends are ours.

The dispatchers of brokers and of the controller read the listeners, and the rights if there is an authorizer
(``wire/access``); brokers' meters read the quotas. The brokers' listener serves clients' APIs too, because
followers fetch. What the controller decides on it serves directly as well: its listener is not for clients,
but a client that reaches it is answered as by a broker.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

from sparklog.core.apis.api import NEVER, Api, Code, ListenerKind, Quota, Waits
from sparklog.core.apis.rights import (
    ADD_PARTITIONS,
    ALTER_CLUSTER,
    ALTER_CONFIGS,
    ALTER_QUOTAS,
    ALTER_TOPIC,
    AS_IDEMPOTENT,
    AS_TRANSACTION,
    CLUSTER_ACTION,
    COMMIT_IN_TRANSACTION,
    CONSUME_TOPIC,
    CREATE_TOKENS,
    CREATE_TOPICS,
    DELETE_BY_ID,
    DELETE_GROUP,
    DELETE_TOPIC,
    DESCRIBE_BROKER,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUP,
    DESCRIBE_OFFSETS,
    DESCRIBE_OPERATIONS,
    DESCRIBE_QUOTAS,
    DESCRIBE_SCHEMA,
    DESCRIBE_TOKENS,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONS,
    END_WRITE,
    FIND_GROUP,
    FIND_TRANSACTION,
    IN_TRANSACTION,
    LIST_GROUPS,
    LIST_TRANSACTIONS,
    METADATA,
    OF_REPLICAS,
    OPEN_WRITE,
    READ_GROUP,
    READ_REPORTS,
    READ_TOPIC,
    WRITE_MARKERS,
    WRITE_TOPIC,
    WRITE_TRANSACTION,
)

T = TypeVar("T")

_CLIENTS: Final = frozenset({ListenerKind.clients, ListenerKind.brokers})
_EVERYWHERE: Final = frozenset(ListenerKind)
_BROKERS: Final = frozenset({ListenerKind.brokers})
_CONTROLLER: Final = frozenset({ListenerKind.controller})

# The kinds of APIs

_handled: Final = partial(Api, listeners=_CLIENTS, code=Code.handler)
_answered_by_each: Final = partial(Api, listeners=_EVERYWHERE, code=Code.handler | Code.built_in)
_short: Final = partial(_handled, is_short=True)
_asking: Final = partial(_handled, waits=Waits.controller)
_reported: Final = partial(_handled, waits=Waits.first_report)
"""The answer is what the controller reported of the cluster."""
_forwarded: Final = partial(
    Api, listeners=_EVERYWHERE, code=Code.forward | Code.command, waits=Waits.controller
)
_partly_forwarded: Final = partial(
    Api, listeners=_EVERYWHERE, code=Code.handler | Code.command, waits=Waits.controller
)
"""A broker decides on one part of the request, and the controller on the other."""
_copied: Final = partial(_answered_by_each, waits=Waits.controller)
"""A broker answers from a copy of what the controller said, and asks for a newer one first."""
_between: Final = partial(Api, family="control", rights=(CLUSTER_ACTION,), quota=Quota.none)
_from_controller: Final = partial(_between, listeners=_BROKERS, code=Code.handler)
_to_controller: Final = partial(_between, listeners=_CONTROLLER, code=Code.command)

ROWS: Final = (
    # key, name, versions from, to, first flexible one, family, rights, quota
    _short(0, "Produce", 0, 9, 9, "data", (WRITE_TOPIC, IN_TRANSACTION), Quota.produce, begins_beside=True),
    _short(1, "Fetch", 0, 15, 12, "data", (READ_TOPIC, OF_REPLICAS), Quota.fetch),
    _handled(2, "ListOffsets", 0, 8, 6, "data", (DESCRIBE_OFFSETS,), Quota.request),
    _reported(3, "Metadata", 0, 12, 9, "discovery", METADATA, Quota.request),
    _from_controller(4, "LeaderAndIsr", 7, 7, 4),
    _from_controller(5, "StopReplica", 4, 4, 2),
    _from_controller(6, "UpdateMetadata", 8, 8, 6),
    _to_controller(7, "ControlledShutdown", 3, 3, 3),
    _reported(8, "OffsetCommit", 0, 8, 8, "groups", (READ_GROUP, CONSUME_TOPIC), Quota.request),
    _handled(9, "OffsetFetch", 0, 8, 6, "groups", (DESCRIBE_GROUP, DESCRIBE_TOPIC), Quota.request),
    _handled(10, "FindCoordinator", 0, 4, 3, "discovery", (FIND_GROUP, FIND_TRANSACTION), Quota.request),
    _handled(11, "JoinGroup", 0, 9, 6, "groups", (READ_GROUP,), Quota.request),
    _handled(12, "Heartbeat", 0, 4, 4, "groups", (READ_GROUP,), Quota.request),
    _handled(13, "LeaveGroup", 0, 5, 4, "groups", (READ_GROUP,), Quota.request),
    _handled(14, "SyncGroup", 0, 5, 4, "groups", (READ_GROUP,), Quota.request),
    _handled(15, "DescribeGroups", 0, 5, 5, "groups", (DESCRIBE_GROUP,), Quota.request),
    _handled(16, "ListGroups", 0, 4, 3, "groups", (LIST_GROUPS,), Quota.request),
    _handled(17, "SaslHandshake", 0, 1, NEVER, "security", (), Quota.request),
    _answered_by_each(18, "ApiVersions", 0, 3, 3, "discovery", (), Quota.request),
    _forwarded(19, "CreateTopics", 0, 7, 5, "admin", CREATE_TOPICS, Quota.controller_mutation),
    _forwarded(20, "DeleteTopics", 0, 6, 4, "admin", (DELETE_TOPIC, DELETE_BY_ID), Quota.controller_mutation),
    _handled(21, "DeleteRecords", 0, 2, 2, "data", (DELETE_TOPIC,), Quota.request),
    _asking(22, "InitProducerId", 0, 4, 2, "data", (AS_TRANSACTION, AS_IDEMPOTENT), Quota.request),
    _handled(23, "OffsetForLeaderEpoch", 0, 4, 4, "data", (DESCRIBE_OFFSETS,), Quota.request),
    _reported(24, "AddPartitionsToTxn", 0, 4, 3, "transactions", ADD_PARTITIONS, Quota.request),
    _handled(25, "AddOffsetsToTxn", 0, 3, 3, "transactions", (WRITE_TRANSACTION, READ_GROUP), Quota.request),
    _handled(26, "EndTxn", 0, 3, 3, "transactions", (WRITE_TRANSACTION,), Quota.request),
    _handled(27, "WriteTxnMarkers", 0, 1, 1, "transactions", (WRITE_MARKERS,), Quota.none),
    _reported(28, "TxnOffsetCommit", 0, 3, 3, "transactions", COMMIT_IN_TRANSACTION, Quota.request),
    _partly_forwarded(29, "DescribeAcls", 0, 3, 2, "security", (DESCRIBE_CLUSTER,), Quota.request),
    _partly_forwarded(30, "CreateAcls", 0, 3, 2, "security", (ALTER_CLUSTER,), Quota.request),
    _partly_forwarded(31, "DeleteAcls", 0, 3, 2, "security", (ALTER_CLUSTER,), Quota.request),
    _reported(32, "DescribeConfigs", 0, 4, 4, "admin", DESCRIBE_CONFIGS, Quota.request),
    _forwarded(33, "AlterConfigs", 0, 2, 2, "admin", ALTER_CONFIGS, Quota.request),
    _handled(35, "DescribeLogDirs", 0, 4, 2, "admin", (DESCRIBE_CLUSTER,), Quota.request),
    _handled(36, "SaslAuthenticate", 0, 2, 2, "security", (), Quota.request),
    _forwarded(37, "CreatePartitions", 0, 3, 2, "admin", (ALTER_TOPIC,), Quota.controller_mutation),
    _handled(38, "CreateDelegationToken", 0, 3, 2, "security", (CREATE_TOKENS,), Quota.request),
    _handled(39, "RenewDelegationToken", 0, 2, 2, "security", (), Quota.request),
    _handled(40, "ExpireDelegationToken", 0, 2, 2, "security", (), Quota.request),
    _handled(41, "DescribeDelegationToken", 0, 3, 2, "security", (DESCRIBE_TOKENS,), Quota.request),
    _handled(42, "DeleteGroups", 0, 2, 2, "groups", (DELETE_GROUP,), Quota.request),
    _forwarded(43, "ElectLeaders", 0, 2, 2, "admin", (ALTER_CLUSTER,), Quota.request),
    _partly_forwarded(44, "IncrementalAlterConfigs", 0, 1, 1, "admin", ALTER_CONFIGS, Quota.request),
    _forwarded(45, "AlterPartitionReassignments", 0, 0, 0, "admin", (ALTER_CLUSTER,), Quota.request),
    _forwarded(46, "ListPartitionReassignments", 0, 0, 0, "admin", (DESCRIBE_CLUSTER,), Quota.request),
    _reported(47, "OffsetDelete", 0, 0, NEVER, "groups", (DELETE_GROUP, CONSUME_TOPIC), Quota.request),
    _forwarded(48, "DescribeClientQuotas", 0, 1, 1, "admin", (DESCRIBE_QUOTAS,), Quota.request),
    _partly_forwarded(49, "AlterClientQuotas", 0, 1, 1, "admin", (ALTER_QUOTAS,), Quota.request),
    _forwarded(50, "DescribeUserScramCredentials", 0, 0, 0, "security", (DESCRIBE_CLUSTER,), Quota.request),
    _forwarded(51, "AlterUserScramCredentials", 0, 0, 0, "security", (ALTER_CLUSTER,), Quota.request),
    _to_controller(56, "AlterPartition", 3, 3, 0),
    _to_controller(58, "Envelope", 0, 0, 0, code=Code.built_in),
    _reported(60, "DescribeCluster", 0, 0, 0, "discovery", (DESCRIBE_OPERATIONS,), Quota.request),
    _handled(61, "DescribeProducers", 0, 0, 0, "transactions", (CONSUME_TOPIC,), Quota.request),
    _handled(65, "DescribeTransactions", 0, 0, 0, "transactions", DESCRIBE_TRANSACTIONS, Quota.request),
    _handled(66, "ListTransactions", 0, 0, 0, "transactions", (LIST_TRANSACTIONS,), Quota.request),
    _to_controller(67, "AllocateProducerIds", 0, 0, 0),
    _to_controller(73, "AssignReplicasToDirs", 0, 0, 0),
    _reported(10_000, "OpenWrite", 0, 0, 0, "writes", OPEN_WRITE, Quota.request),
    _handled(10_001, "EndWrite", 0, 0, 0, "writes", (END_WRITE,), Quota.request),
    _handled(10_002, "Agree", 0, 0, 0, "writes", (), Quota.request),
    _handled(10_003, "DescribeVisibility", 0, 0, 0, "writes", (DESCRIBE_TOPIC,), Quota.request),
    _copied(10_004, "ClusterReport", 0, 0, 0, "discovery", (READ_REPORTS,), Quota.request),
    _handled(10_005, "BrokerReport", 0, 0, 0, "discovery", DESCRIBE_BROKER, Quota.request),
    _forwarded(10_006, "OperateBrokers", 0, 0, 0, "admin", (ALTER_CLUSTER,), Quota.request),
    _partly_forwarded(10_007, "DescribeSchema", 0, 0, 0, "discovery", (DESCRIBE_SCHEMA,), Quota.request),
    _forwarded(10_008, "AlterSchema", 0, 0, 0, "admin", (ALTER_TOPIC,), Quota.request),
    _short(10_009, "LeanFetch", 0, 0, NEVER, "data", (CLUSTER_ACTION,), Quota.none, listeners=_BROKERS),
)

APIS: Final[Mapping[int, Api]] = MappingProxyType({api.key: api for api in ROWS})
"""The rows by key."""

_KEYS: Final = {api.name: api.key for api in ROWS}


def by_key(code: Mapping[str, T]) -> Mapping[int, T]:
    """Code of APIs by key, from code by name. Raises KeyError if a name has no row."""
    return MappingProxyType({_KEYS[name]: part for name, part in code.items()})
