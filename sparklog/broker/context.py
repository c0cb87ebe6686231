"""What the handlers of one broker share."""

from dataclasses import dataclass

from sparklog.broker.metadata_cache import MetadataCache
from sparklog.broker.ports import ToController
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.broker.to_controller.producer_ids import ProducerIds
from sparklog.model.config import BrokerConfig
from sparklog.model.ids import BrokerId
from sparklog.model.ports import Executor


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """The rooms of a broker, as its handlers see them."""

    broker_id: BrokerId
    cluster_id: str
    brokers_listener: str
    """The listener that other brokers and the controller use: requests between them are served there
    alone.
    """
    metadata: MetadataCache
    replicas: ReplicaManager
    controller: ToController
    producer_ids: ProducerIds
    waiting_room: Executor
    """For work that waits for the controller. Handlers are few, and must go on serving while it is away."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings as they are now; some may be changed while it runs."""
        return self.replicas.config
