"""What is asked of a partition, and what it answers."""

from dataclasses import dataclass

from sparklog.core.replication.leader import Diverging
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch, BrokerId
from sparklog.model.parts import Part


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What became of a produced batch. ``base_offset`` is -1 unless it is in the log."""

    error: ErrorCode
    base_offset: int = -1
    log_start_offset: int = -1
    waits: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a fetcher gets of one partition."""

    error: ErrorCode
    parts: tuple[Part, ...] = ()
    size_bytes: int = 0
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: Diverging | None = None


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a fetcher asks of one partition. ``follower`` is None for consumers."""

    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    follower: BrokerId | None = None
    follower_epoch: BrokerEpoch = NO_BROKER_EPOCH
