"""The parts of one broker that its handlers share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparklog.broker.client_quotas import ClientQuotas
from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.coordination.internal_topic_creation import InternalTopics
from sparklog.broker.coordination.transaction_markers import TransactionMarkers
from sparklog.broker.coordination.transaction_verifier import TransactionVerifier
from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.metadata.departed_brokers import DepartedBrokers
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.metadata.first_report import FirstReport
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.partition.answers import DeletionResult
from sparklog.broker.partition.append_results import AppendResult
from sparklog.broker.ports import Coordinators, ToController
from sparklog.broker.replicas.controller_fence import ControllerFence
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.replicas.refusals import Refusals
from sparklog.broker.replicas.roles import Roles
from sparklog.broker.to_controller.column_loads import ColumnLoads
from sparklog.broker.to_controller.producer_ids import ProducerIds
from sparklog.broker.to_controller.report_copy import ReportCopy
from sparklog.broker.to_controller.schema_cache import Schemas
from sparklog.broker.waiting.fetch_purgatory import FetchPurgatory
from sparklog.broker.waiting.fetch_sessions import FetchSessions
from sparklog.broker.waiting.fetches_in_progress import FetchesInProgress
from sparklog.broker.waiting.joint_wait import JointWaits
from sparklog.core.security.audit import Audit
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.model.ports import Executor, Guard
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock
from sparklog.network.access.access_control import AccessControl
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest, BrokerReportResponse


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """The parts of a broker, as its handlers use them. A handler names each part that it uses."""

    broker_id: BrokerId
    cluster_id: str
    brokers_listener: str
    """The listener that other brokers and the controller use: requests between them are served there
    alone.
    """
    metadata: MetadataCache
    first_report: FirstReport
    doubted_leaders: DoubtedLeaders
    departed_brokers: DepartedBrokers
    schemas: Schemas
    report: ReportCopy
    own_report: Callable[[BrokerReportRequest], BrokerReportResponse]
    """Says what this broker knows of itself."""
    columns: ColumnLoads
    clock: Clock
    settings: CurrentSettings
    replicas: PartitionTable
    roles: Roles
    fence: ControllerFence
    log_dirs: LogDirs
    appends: JointWaits[AppendResult, ErrorCode]
    """Produces, markers and batches of coordinators that wait for replicas."""
    deletions: JointWaits[DeletionResult, DeletionResult]
    refusals: Refusals
    fetches: FetchPurgatory
    fetch_sessions: FetchSessions
    fetches_in_progress: FetchesInProgress
    controller: ToController
    producer_ids: ProducerIds
    coordinators: Coordinators
    internal_topics: InternalTopics
    markers: TransactionMarkers
    verifier: TransactionVerifier
    new_guard: Callable[[], Guard]
    """Makes the guard of a request that several threads may answer."""
    waiting_room: Executor
    """Runs work that waits for the controller: request handlers are few, and must not wait while it is
    away.
    """
    conversions: ConversionStatistics
    quotas: ClientQuotas
    access_control: AccessControl | None = None
    """None without an authorizer: everybody may do everything."""
    audit: Audit | None = None
    """Gets the acts of administration that this broker decides; None without an audit."""
    identity: Mapping[str, str] = field(default_factory=dict)
    """Settings whose values the broker found at its start: its id, log directories and addresses."""

    @property
    def config(self) -> BrokerConfig:
        """The present settings of the broker; some of them change while it runs."""
        return self.settings.now
