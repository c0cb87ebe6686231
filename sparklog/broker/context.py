"""The parts of one broker that its handlers share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparklog.broker.conversion.statistics import ConversionStatistics
from sparklog.broker.coordination.internal_topics import InternalTopics
from sparklog.broker.coordination.transaction_markers import TransactionMarkers
from sparklog.broker.coordination.transaction_verifier import TransactionVerifier
from sparklog.broker.metadata.departed_brokers import DepartedBrokers
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.metadata.first_report import FirstReport
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.ports import Coordinators, ToController
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.broker.to_controller.producer_ids import ProducerIds
from sparklog.model.config import BrokerConfig
from sparklog.model.ids import BrokerId
from sparklog.model.ports import Executor


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """The parts of a broker, as its handlers use them."""

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
    replicas: ReplicaManager
    controller: ToController
    producer_ids: ProducerIds
    coordinators: Coordinators
    internal_topics: InternalTopics
    markers: TransactionMarkers
    verifier: TransactionVerifier
    waiting_room: Executor
    """Runs work that waits for the controller: request handlers are few, and must not wait while it is
    away.
    """
    conversions: ConversionStatistics = field(default_factory=ConversionStatistics)
    identity: Mapping[str, str] = field(default_factory=dict)
    """Settings whose values the broker found at its start: its id, log directories and addresses."""

    @property
    def config(self) -> BrokerConfig:
        """The present settings of the broker; some of them change while it runs."""
        return self.replicas.config
