"""What brokers ask for themselves: a controlled shutdown, producer ids, elections in place of lost logs."""

from dataclasses import dataclass

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class ControlledShutdownResult:
    """``remaining`` are partitions that the broker still leads although waiting may find them a leader."""

    error: ErrorCode
    remaining: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsResult:
    """``length`` ids from ``first`` on."""

    error: ErrorCode
    first: int = -1
    length: int = 0


@dataclass(frozen=True, slots=True)
class LoseLogs:
    """The disk under these replicas of a live broker failed: elect others, at once."""

    broker: BrokerId
    broker_epoch: BrokerEpoch
    partitions: tuple[tuple[TopicId, int], ...]


@dataclass(frozen=True, slots=True)
class LoseLogsResult:
    error: ErrorCode
