"""Which APIs exist, which versions of each are served, and from which one on the encoding is flexible.

``API_VERSIONS`` is what brokers advertise to clients: the shape of Kafka 3.6, because clients infer the
broker's release from it. It begins at version 0 everywhere: a Produce minimum of 3 makes older librdkafka
send its batches uncompressed without a word (KAFKA-18659). ``INTERNAL_VERSIONS`` are spoken between
brokers and the controller only; both ends are ours, so there is one version of each.

``OWN_VERSIONS`` are sparklog's own APIs, far above Kafka's keys. They are never in the list of ApiVersions; a
tagged field of it tells them to sparklog's clients.

"Flexible" (KIP-482) versions have compact lengths and tagged fields, and a header that ends in tags.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Family = Literal["data", "discovery", "groups", "transactions", "writes", "admin", "security", "control"]
"""The packages of ``sparklog.wire.messages``."""


NEVER: Final = 2**15
"""``flexible_from`` of an API without a flexible version: above every version."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """An API's family, name and versions, both bounds inclusive, and its first flexible version."""

    family: Family
    name: str
    min: int
    max: int
    flexible_from: int

    def __contains__(self, version: int) -> bool:
        return self.min <= version <= self.max

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from

    @property
    def module(self) -> str:
        """The API's name in the spelling of a module: ``init_producer_id`` for ``InitProducerId``."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()


API_VERSIONS: Final[Mapping[int, VersionRange]] = MappingProxyType(
    {
        0: VersionRange("data", "Produce", 0, 9, 9),
        1: VersionRange("data", "Fetch", 0, 15, 12),
        2: VersionRange("data", "ListOffsets", 0, 8, 6),
        3: VersionRange("discovery", "Metadata", 0, 12, 9),
        8: VersionRange("groups", "OffsetCommit", 0, 8, 8),
        9: VersionRange("groups", "OffsetFetch", 0, 8, 6),
        10: VersionRange("discovery", "FindCoordinator", 0, 4, 3),
        11: VersionRange("groups", "JoinGroup", 0, 9, 6),
        12: VersionRange("groups", "Heartbeat", 0, 4, 4),
        13: VersionRange("groups", "LeaveGroup", 0, 5, 4),
        14: VersionRange("groups", "SyncGroup", 0, 5, 4),
        15: VersionRange("groups", "DescribeGroups", 0, 5, 5),
        16: VersionRange("groups", "ListGroups", 0, 4, 3),
        17: VersionRange("security", "SaslHandshake", 0, 1, NEVER),
        18: VersionRange("discovery", "ApiVersions", 0, 3, 3),
        19: VersionRange("admin", "CreateTopics", 0, 7, 5),
        20: VersionRange("admin", "DeleteTopics", 0, 6, 4),
        21: VersionRange("data", "DeleteRecords", 0, 2, 2),
        22: VersionRange("data", "InitProducerId", 0, 4, 2),
        23: VersionRange("data", "OffsetForLeaderEpoch", 0, 4, 4),
        24: VersionRange("transactions", "AddPartitionsToTxn", 0, 4, 3),
        25: VersionRange("transactions", "AddOffsetsToTxn", 0, 3, 3),
        26: VersionRange("transactions", "EndTxn", 0, 3, 3),
        27: VersionRange("transactions", "WriteTxnMarkers", 0, 1, 1),
        28: VersionRange("transactions", "TxnOffsetCommit", 0, 3, 3),
        29: VersionRange("security", "DescribeAcls", 0, 3, 2),
        30: VersionRange("security", "CreateAcls", 0, 3, 2),
        31: VersionRange("security", "DeleteAcls", 0, 3, 2),
        32: VersionRange("admin", "DescribeConfigs", 0, 4, 4),
        33: VersionRange("admin", "AlterConfigs", 0, 2, 2),
        35: VersionRange("admin", "DescribeLogDirs", 0, 4, 2),
        36: VersionRange("security", "SaslAuthenticate", 0, 2, 2),
        37: VersionRange("admin", "CreatePartitions", 0, 3, 2),
        38: VersionRange("security", "CreateDelegationToken", 0, 3, 2),
        39: VersionRange("security", "RenewDelegationToken", 0, 2, 2),
        40: VersionRange("security", "ExpireDelegationToken", 0, 2, 2),
        41: VersionRange("security", "DescribeDelegationToken", 0, 3, 2),
        42: VersionRange("groups", "DeleteGroups", 0, 2, 2),
        43: VersionRange("admin", "ElectLeaders", 0, 2, 2),
        44: VersionRange("admin", "IncrementalAlterConfigs", 0, 1, 1),
        45: VersionRange("admin", "AlterPartitionReassignments", 0, 0, 0),
        46: VersionRange("admin", "ListPartitionReassignments", 0, 0, 0),
        47: VersionRange("groups", "OffsetDelete", 0, 0, NEVER),
        48: VersionRange("admin", "DescribeClientQuotas", 0, 1, 1),
        49: VersionRange("admin", "AlterClientQuotas", 0, 1, 1),
        50: VersionRange("security", "DescribeUserScramCredentials", 0, 0, 0),
        60: VersionRange("discovery", "DescribeCluster", 0, 0, 0),
        61: VersionRange("transactions", "DescribeProducers", 0, 0, 0),
        65: VersionRange("transactions", "DescribeTransactions", 0, 0, 0),
        66: VersionRange("transactions", "ListTransactions", 0, 0, 0),
    }
)

INTERNAL_VERSIONS: Final[Mapping[int, VersionRange]] = MappingProxyType(
    {
        4: VersionRange("control", "LeaderAndIsr", 7, 7, 4),
        5: VersionRange("control", "StopReplica", 4, 4, 2),
        6: VersionRange("control", "UpdateMetadata", 8, 8, 6),
        7: VersionRange("control", "ControlledShutdown", 3, 3, 3),
        56: VersionRange("control", "AlterPartition", 3, 3, 0),
        58: VersionRange("control", "Envelope", 0, 0, 0),
        67: VersionRange("control", "AllocateProducerIds", 0, 0, 0),
        73: VersionRange("control", "AssignReplicasToDirs", 0, 0, 0),
    }
)

OWN_VERSIONS: Final[Mapping[int, VersionRange]] = MappingProxyType(
    {
        10_000: VersionRange("writes", "OpenWrite", 0, 0, 0),
        10_001: VersionRange("writes", "EndWrite", 0, 0, 0),
        10_002: VersionRange("writes", "Agree", 0, 0, 0),
        10_003: VersionRange("writes", "DescribeVisibility", 0, 0, 0),
    }
)

KNOWN_VERSIONS: Final[Mapping[int, VersionRange]] = MappingProxyType(
    {**API_VERSIONS, **INTERNAL_VERSIONS, **OWN_VERSIONS}
)
"""Everything that can be encoded and decoded."""

API_VERSIONS_KEY: Final = 18
"""ApiVersions is special: its response header is never flexible, and it answers versions that nobody has."""
