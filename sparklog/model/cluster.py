"""What the members of a cluster tell each other about brokers and partitions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparklog.model.ids import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)


@dataclass(frozen=True, slots=True)
class Broker:
    """A live broker and where it listens."""

    id: BrokerId
    host: str
    port: int
    epoch: BrokerEpoch = NO_BROKER_EPOCH
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as ZooKeeper records it.

    ``partition_epoch`` is the version of its state znode: every change is a compare-and-set on it.
    ``isr_incarnations`` names, for each ISR member, the version of its ``/brokers/incarnations`` node when
    it was last counted, so that a replica that restarted in between is never trusted on a stale view.
    ``eligible`` (KIP-966) are replicas outside the ISR that are known to hold everything committed.
    """

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    partition_epoch: int = 0
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    eligible: tuple[BrokerId, ...] = ()
    isr_incarnations: Mapping[BrokerId, int] = field(default_factory=dict)
    min_insync_replicas: int = 1
    """What this leader epoch commits with: the topic's setting when it began."""
    lost_in_epoch: LeaderEpoch = LeaderEpoch(-1)
    """The last epoch that began with a leader who may have lacked acknowledged records; -1 if none did."""

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its id, its partitions in order of number, and the settings that differ from defaults."""

    name: str
    id: TopicId
    partitions: tuple[PartitionState, ...]
    configs: Mapping[str, str] = field(default_factory=dict)

    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, index) for index in range(len(self.partitions))]
