"""Which APIs exist, which versions of each are served, and from which one on the encoding is flexible.

``API_VERSIONS`` is what brokers advertise to clients: the shape of Kafka 3.6, because clients infer the
broker's release from it. It begins at version 0 everywhere: a Produce minimum of 3 makes older librdkafka
send its batches uncompressed without a word (KAFKA-18659). ``INTERNAL_VERSIONS`` are spoken between
brokers and the controller only; both ends are ours, so there is one version of each.

"Flexible" (KIP-482) versions have compact lengths and tagged fields, and a header that ends in tags.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class VersionRange:
    """An API's name and versions, both bounds inclusive, and its first flexible version."""

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
        """The API's name as modules spell it: ``InitProducerId`` is ``init_producer_id``."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()


API_VERSIONS: Final[Mapping[int, VersionRange]] = MappingProxyType(
    {
        0: VersionRange("Produce", 0, 9, 9),
        1: VersionRange("Fetch", 0, 15, 12),
        2: VersionRange("ListOffsets", 0, 8, 6),
        3: VersionRange("Metadata", 0, 12, 9),
        10: VersionRange("FindCoordinator", 0, 4, 3),
        18: VersionRange("ApiVersions", 0, 3, 3),
        19: VersionRange("CreateTopics", 0, 7, 5),
        20: VersionRange("DeleteTopics", 0, 6, 4),
        21: VersionRange("DeleteRecords", 0, 2, 2),
        22: VersionRange("InitProducerId", 0, 4, 2),
        23: VersionRange("OffsetForLeaderEpoch", 0, 4, 4),
        32: VersionRange("DescribeConfigs", 0, 4, 4),
        33: VersionRange("AlterConfigs", 0, 2, 2),
        35: VersionRange("DescribeLogDirs", 0, 4, 2),
        37: VersionRange("CreatePartitions", 0, 3, 2),
        43: VersionRange("ElectLeaders", 0, 2, 2),
        44: VersionRange("IncrementalAlterConfigs", 0, 1, 1),
        45: VersionRange("AlterPartitionReassignments", 0, 0, 0),
        46: VersionRange("ListPartitionReassignments", 0, 0, 0),
        60: VersionRange("DescribeCluster", 0, 0, 0),
    }
)

INTERNAL_VERSIONS: Final[Mapping[int, VersionRange]] = MappingProxyType(
    {
        4: VersionRange("LeaderAndIsr", 7, 7, 4),
        5: VersionRange("StopReplica", 4, 4, 2),
        6: VersionRange("UpdateMetadata", 8, 8, 6),
        7: VersionRange("ControlledShutdown", 3, 3, 3),
        56: VersionRange("AlterPartition", 3, 3, 0),
        58: VersionRange("Envelope", 0, 0, 0),
        67: VersionRange("AllocateProducerIds", 0, 0, 0),
        73: VersionRange("AssignReplicasToDirs", 0, 0, 0),
    }
)

KNOWN_VERSIONS: Final[Mapping[int, VersionRange]] = MappingProxyType({**API_VERSIONS, **INTERNAL_VERSIONS})
"""Everything that can be encoded and decoded."""

API_VERSIONS_KEY: Final = 18
"""ApiVersions is special: its response header is never flexible, and it answers versions that nobody has."""
