"""What is asked of a partition, and what it answers.

Named tuples: some of each are made for every batch, and frozen dataclasses take several times as long.
"""

from typing import NamedTuple

from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.replication.epoch_history import EpochEntry
from sparklog.core.replication.leader import Diverging
from sparklog.core.replication.visibility import Visibility
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_BROKER_EPOCH, NO_EPOCH, BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.parts import Part


class HistoryRange(NamedTuple):
    """What a consumer wants of the records that are in the remote store only. All of them are stable."""

    topic_id: TopicId
    topic_partition: TopicPartition
    fetch_offset: int
    end_offset: int
    """The local start, exclusive: what is from there on is read from disk."""
    max_bytes: int
    at_least_one_batch: bool
    leaves_out_aborted: bool
    epochs: tuple[EpochEntry, ...] = ()
    """The leader epochs of the log up to ``end_offset``: batches of others are not this log's."""
    leader_epoch: int = NO_EPOCH
    """In which this replica leads or follows: what a later leader cut is not for it to judge."""


class HistoryTime(NamedTuple):
    """A search by time among the records that are in the remote store only: for the first one from
    ``start_offset`` on, and before ``end_offset``, with at least ``timestamp_ms``.
    """

    topic_id: TopicId
    topic_partition: TopicPartition
    timestamp_ms: int
    start_offset: int
    end_offset: int


class HistoryFound(NamedTuple):
    """What a search by time has found; both numbers are -1 if no record is that late."""

    error: ErrorCode
    offset: int = -1
    timestamp_ms: int = -1


class HistoryRead(NamedTuple):
    """Whole batches from the remote store: the first holds the fetch offset, the last ends before
    ``next_offset``. With an error there are none. No batches and a ``next_offset`` above the fetch
    offset: unclean elections lost the records between. Read on at ``next_offset``.
    """

    error: ErrorCode
    parts: tuple[Part, ...] = ()
    size_bytes: int = 0
    next_offset: int = -1
    aborted: tuple[AbortedTransaction, ...] = ()


class StoreShare(NamedTuple):
    """What the remote store has of a log, as its leader of ``leader_epoch`` saw it in its last round of
    copying; -1 is unknown. ``trouble``: what is wrong with it, or empty.
    """

    leader_epoch: int
    start_offset: int = -1
    end_offset: int = -1
    size_bytes: int = -1
    waiting_segments: int = -1
    waiting_bytes: int = -1
    trouble: str = ""

    @property
    def figures(self) -> tuple[int, ...]:
        """In the order of the tag ``remote_share`` (docs/format/wire.md)."""
        return self.start_offset, self.end_offset, self.size_bytes, self.waiting_segments, self.waiting_bytes


class ReadResult(NamedTuple):
    """What a fetcher gets of one partition."""

    error: ErrorCode
    parts: tuple[Part, ...] = ()
    size_bytes: int = 0
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: Diverging | None = None
    preferred: int = -1
    """The replica that a consumer should read from instead."""
    last_stable_offset: int = -1
    aborted: tuple[AbortedTransaction, ...] = ()
    """For consumers that leave them out: the aborted transactions with records in ``parts``."""
    history: HistoryRange | None = None
    """What to read from the remote store instead: nothing of it is on this disk."""
    next_offset: int = -1
    """Where ``parts`` end, exclusive; -1 where nothing was read."""
    looked_to: int = -1
    """For consumers with a condition: up to here they have what they want; -1 where nothing was read."""


class ReadRequest(NamedTuple):
    """What a fetcher asks of one partition. ``follower`` is None for consumers."""

    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    follower: BrokerId | None = None
    follower_epoch: BrokerEpoch = NO_BROKER_EPOCH
    log_start_offset: int = -1
    """Where the follower's own log begins."""
    from_any_replica: bool = False
    """Whether a follower may answer a consumer (KIP-392)."""
    read_committed: bool = False
    """Whether a consumer reads nothing of open or aborted transactions."""
    with_aborted: bool = False
    """Whether a consumer that reads up to the high watermark gets the list of aborted transactions."""
    columns: tuple[int, ...] | None = None
    """The ids of the columns that a consumer of a typed topic wants; None for whole batches."""
    condition: bytes = b""
    """Which rows it wants of them, packed; empty for all."""

    @property
    def visibility(self) -> Visibility:
        if self.follower is not None:
            return Visibility.LOG_END
        return Visibility.of_consumer(read_committed=self.read_committed)

    @property
    def leaves_out_aborted(self) -> bool:
        """Whether the consumer must get the list of aborted transactions."""
        return self.read_committed or self.with_aborted


class DeletionResult(NamedTuple):
    """What became of a deletion of records. ``low_watermark``: no live replica has any below."""

    error: ErrorCode
    low_watermark: int = -1
    waits: bool = False
