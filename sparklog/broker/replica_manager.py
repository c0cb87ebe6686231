"""The partitions of this broker: which there are, which role each has, and where their effects go.

LeaderAndIsr and StopReplica come from the controller, one after the other; produces and fetches come from
everybody at once. The manager itself holds only a table; each partition guards itself.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from sparklog.broker.fetch import FetchPurgatory
from sparklog.broker.log_dirs import LogDirs
from sparklog.broker.partition import Partition
from sparklog.broker.ports import IsrProposals, Ports
from sparklog.broker.produce import ProducePurgatory
from sparklog.core.replication.actions import (
    AskLeaderOffsets,
    BackOff,
    CompleteProduce,
    OutwardEffect,
    ProposeIsr,
    PublishHighWatermark,
    ReportLogFailure,
    StartFetching,
    StopFetching,
    WakeFetch,
)
from sparklog.core.replication.replica import Replica
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.cluster import PartitionState
from sparklog.model.config import BrokerConfig, TopicConfig
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig

logger = logging.getLogger(__name__)


class Fetchers(Protocol):
    """Who fetches from leaders for the partitions that follow."""

    def start(self, partition: Partition, leader: BrokerId) -> None: ...

    def stop(self, partition: Partition) -> None: ...

    def ask_leader_offsets(self, partition: Partition, leader_epoch: int) -> None: ...

    def back_off(self, partition: Partition, error: ErrorCode) -> None: ...


class ReplicaManager:
    """All partitions that this broker holds a replica of."""

    def __init__(
        self,
        broker_id: BrokerId,
        config: BrokerConfig,
        log_dirs: LogDirs,
        ports: Ports,
        *,
        fetchers: Fetchers,
        proposals: IsrProposals,
        on_log_failure: Callable[[str], None] = logger.error,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = BrokerEpoch(-1)
        self.config = config
        self.produces = ProducePurgatory(ports)
        self.fetches = FetchPurgatory(ports)
        self._log_dirs = log_dirs
        self._ports = ports
        self._fetchers = fetchers
        self._proposals = proposals
        self._on_log_failure = on_log_failure
        self._partitions: dict[TopicPartition, Partition] = {}
        self._names: dict[TopicId, str] = {}
        self._guard = ports.new_guard()
        self.controller_epoch = -1

    def load(self) -> None:
        """Make a partition, without a role yet, of every log that is on disk."""
        watermarks = self._log_dirs.high_watermarks()
        for topic_partition, log in self._log_dirs.logs().items():
            self._partitions[topic_partition] = self._partition(
                topic_partition, log, watermarks.get(topic_partition, 0)
            )

    def get(self, topic_partition: TopicPartition) -> Partition | None:
        return self._partitions.get(topic_partition)

    def partitions(self) -> list[Partition]:
        return list(self._partitions.values())

    def topic_name(self, topic_id: TopicId) -> str | None:
        """The name of a topic that we hold a replica of."""
        return self._names.get(topic_id)

    def find(self, topic_partition: TopicPartition, topic_id: TopicId | None = None) -> Partition | ErrorCode:
        """The partition, or the error a client gets for asking here."""
        partition = self._partitions.get(topic_partition)
        if partition is None:
            return ErrorCode.unknown_topic_or_partition
        if topic_id is not None and partition.topic_id != topic_id:
            return ErrorCode.inconsistent_topic_id
        return partition

    # What the controller says

    @property
    def knows_its_epoch(self) -> bool:
        """Whether this broker was told under which epoch it is registered."""
        return self.broker_epoch >= 0

    def accept_controller(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Fence a controller that was replaced, and one that speaks to an earlier incarnation of us."""
        with self._guard:
            if controller_epoch < self.controller_epoch:
                return ErrorCode.stale_controller_epoch
            if broker_epoch not in (-1, self.broker_epoch):
                return ErrorCode.stale_broker_epoch
            self.controller_epoch = controller_epoch
            return ErrorCode.none

    def become(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        state: PartitionState,
        configs: Mapping[str, str],
        *,
        is_new: bool,
    ) -> ErrorCode:
        """Take up the role that ``state`` gives us, creating the log if there is none yet."""
        with self._guard:
            try:
                topic_config = self.config.topic(configs)
                partition = self._get_or_create(topic_partition, topic_id, topic_config, is_new)
            except (OSError, SparklogError):
                logger.exception("%s: no log could be made", topic_partition)
                return ErrorCode.kafka_storage_error
            if isinstance(partition, ErrorCode):
                return partition
            try:
                return partition.on_leader_and_isr(
                    state,
                    broker_epoch=self.broker_epoch,
                    min_insync_replicas=topic_config.get_int("min.insync.replicas"),
                )
            except SparklogError:
                # The other partitions of the request must still hear of their roles.
                logger.exception("%s: the role in %s cannot be taken up", topic_partition, state)
                return ErrorCode.invalid_request

    def stop_replica(self, topic_partition: TopicPartition, leader_epoch: int, *, delete: bool) -> ErrorCode:
        """Stop serving, and if told so delete. Epochs -1 and -2 come without fencing (KIP-570)."""
        with self._guard:
            partition = self._partitions.get(topic_partition)
            if partition is None:
                return ErrorCode.none
            if 0 <= leader_epoch < partition.leader_epoch:
                return ErrorCode.fenced_leader_epoch
            if not delete:
                partition.stop("the controller stopped this replica")
                return ErrorCode.none
            del self._partitions[topic_partition]
            if all(other.topic_id != partition.topic_id for other in self.partitions()):
                self._names.pop(partition.topic_id, None)
            try:
                partition.delete(lambda: self._log_dirs.delete(topic_partition))
            except OSError:
                logger.exception("%s: the log could not be deleted", topic_partition)
                return ErrorCode.kafka_storage_error
            return ErrorCode.none

    # Housekeeping

    def on_tick(self) -> None:
        """Let every leader look for followers that fell behind; call each half of the longest lag."""
        for partition in self.partitions():
            partition.on_tick()

    def delete_old_segments(self) -> None:
        """Let retention remove old segments of every partition."""
        for partition in self.partitions():
            deleted = partition.delete_old_segments()
            if deleted:
                logger.info("%s: retention removed %d segments", partition.topic_partition, deleted)

    def expire_producers(self) -> None:
        """Let every log forget producers that were silent for ``producer.id.expiration.ms``."""
        max_age_ms = self.config.get_int("producer.id.expiration.ms")
        for partition in self.partitions():
            partition.expire_producers(max_age_ms)

    def checkpoint_high_watermarks(self) -> None:
        self._log_dirs.write_high_watermarks(
            {partition.topic_partition: partition.high_watermark for partition in self.partitions()}
        )

    def checkpoint_recovery_points(self) -> None:
        """Write recovery points, after syncing logs that have sealed a segment since theirs was raised."""
        for partition in self.partitions():
            if partition.has_unsynced_sealed_segment:
                partition.flush()
        self._log_dirs.checkpoint_recovery_points()

    def stop_serving(self, why: str) -> None:
        """Give up every role: whoever waits here is told at once to look elsewhere."""
        for partition in self.partitions():
            partition.stop(why)

    def close(self, clean_epoch: int | None) -> None:
        """Let go of the logs; with ``clean_epoch`` everything is on disk afterwards, and a marker says so."""
        if clean_epoch is not None:
            for partition in self.partitions():
                partition.flush()
            self.checkpoint_high_watermarks()
            if any(partition.is_offline for partition in self.partitions()):
                logger.warning("a log failed, so this stop is not a clean one")
                clean_epoch = None
        for partition in self.partitions():
            partition.stop("the broker stops")
        self._log_dirs.close(clean_epoch)

    # Effects

    def deliver(self, partition: Partition, effect: OutwardEffect) -> None:
        """Carry an effect to whom it concerns; called outside all partition locks, in order."""
        match effect:
            case CompleteProduce(token, error):
                self.produces.complete(token, error)
            case WakeFetch(token):
                self.fetches.wake(token)
            case ProposeIsr():
                self._proposals.propose(partition.topic_partition, effect)
            case StartFetching(leader):
                if self._partitions.get(partition.topic_partition) is partition:  # not deleted since
                    self._fetchers.start(partition, leader)
            case StopFetching():
                self._fetchers.stop(partition)
            case AskLeaderOffsets(leader_epoch):
                self._fetchers.ask_leader_offsets(partition, leader_epoch)
            case BackOff(error):
                self._fetchers.back_off(partition, error)
            case ReportLogFailure(reason):
                self._on_log_failure(reason)
            case PublishHighWatermark():
                pass  # read from the partition by whoever checkpoints or describes it

    # Details

    def _get_or_create(
        self, topic_partition: TopicPartition, topic_id: TopicId, config: TopicConfig, is_new: bool
    ) -> Partition | ErrorCode:
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            if partition.topic_id != topic_id:
                return ErrorCode.inconsistent_topic_id
            partition.configure(LogConfig.of(config))
            return partition
        log = self._log_dirs.create(topic_partition, topic_id, config, is_new=is_new)
        partition = self._partition(topic_partition, log, 0)
        self._partitions[topic_partition] = partition
        return partition

    def _partition(self, topic_partition: TopicPartition, log: Log, high_watermark: int) -> Partition:
        replica = Replica(
            broker_id=self.broker_id,
            topic_partition=topic_partition,
            epochs=log.epochs,
            marks=Watermarks(log.log_start_offset, high_watermark, log.log_end_offset),
            lag_max_ms=self.config.get_int("replica.lag.time.max.ms"),
        )
        replica.marks.clamp()
        self._names[log.topic_id] = topic_partition.topic
        return Partition(
            replica,
            log,
            guard=self._ports.new_guard(),
            delivery=self._ports.new_guard(),
            outlet=self.deliver,
            clock=self._ports.clock,
        )
