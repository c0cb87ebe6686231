"""What the doctor knows of a cluster when it begins to judge. PURE.

Everything was answered by brokers over Kafka's APIs, or is in the controller's report. A part that nobody
answered for is in ``unknown`` with the reason, and checks that need it say so instead of judging.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sparklog.client.changes import LogDirDescription
from sparklog.client.group.lag_look import PartitionLag
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.client.transactions.hanging import OpenTransaction
from sparklog.model.cluster_facts import Node
from sparklog.wire.messages.discovery.broker_report import BrokerReportResponse
from sparklog.wire.messages.discovery.cluster_report import ClusterReportResponse


class Part(StrEnum):
    """A part of the facts, which is asked for and fails as a whole."""

    report = "report"
    brokers = "brokers"
    own_reports = "own_reports"
    topics = "topics"
    transactions = "transactions"
    groups = "groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBroker:
    """A broker, asked for what it alone knows. ``silence`` says why it did not answer: then that is empty."""

    broker_id: int
    host: str
    settings: Mapping[str, str] = field(default_factory=dict)
    log_dirs: Mapping[str, LogDirDescription] = field(default_factory=dict)
    silence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTopic:
    """A topic, with every setting as it is in effect."""

    metadata: TopicMetadata
    settings: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def min_in_sync(self) -> int:
        return int(self.settings.get("min.insync.replicas") or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateGroup:
    """A group with records that it should have read long ago, or that were deleted before it read them."""

    group_id: str
    group_state: str
    query: str = ""
    """The name of the streaming query that reports as this group; empty if none does."""
    late: tuple[PartitionLag, ...] = ()
    """Partitions with unread records that are older than ``LATE_MS`` of the gathering."""
    moved: bool = False
    """Whether it committed between two looks at these partitions."""
    deleted: tuple[PartitionLag, ...] = ()
    """Partitions whose log begins after the committed offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """``options`` are the words by which commands name the cluster. ``silence`` says why no broker answers;
    then only the report is known. ``groups_unseen``: groups that were not looked at, each with the reason.
    """

    options: str
    now_ms: int
    silence: str = ""
    report: ClusterReportResponse | None = None
    nodes: tuple[Node, ...] = ()
    """The brokers that are registered."""
    brokers: tuple[SeenBroker, ...] = ()
    own_reports: Mapping[int, BrokerReportResponse] = field(default_factory=dict)
    """What each broker that answers knows of its process, its disks and its metrics."""
    topics: tuple[SeenTopic, ...] = ()
    hanging: tuple[OpenTransaction, ...] = ()
    groups: tuple[LateGroup, ...] = ()
    groups_unseen: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[Part, str] = field(default_factory=dict)

    @property
    def answering(self) -> tuple[SeenBroker, ...]:
        return tuple(broker for broker in self.brokers if not broker.silence)
