"""The partitions of this broker: their table, their roles, and the routing of their effects.

The controller sends LeaderAndIsr and StopReplica one after the other; clients and followers send produces and
fetches concurrently. The manager holds only a table; each partition has its own lock.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.gone_replicas import GoneReplicas
from sparklog.broker.leadership import LeadershipListeners
from sparklog.broker.log_dirs import DirectoryFailed, DirectoryOffline, LogDirs
from sparklog.broker.partition.answers import AppendResult, DeletionResult
from sparklog.broker.partition.flusher import Flusher
from sparklog.broker.partition.free_space import FreeSpaces
from sparklog.broker.partition.partition import Partition
from sparklog.broker.ports import IsrProposals, Ports
from sparklog.broker.throttles import ReplicationThrottles
from sparklog.broker.waiting.fetch_purgatory import FetchPurgatory
from sparklog.broker.waiting.fetch_sessions import FetchSessions
from sparklog.broker.waiting.fetches_in_progress import FetchesInProgress
from sparklog.broker.waiting.joint_wait import JointWaits
from sparklog.core.producers.refused_batches import RefusingConnections
from sparklog.core.replication.actions import (
    AskLeaderOffsets,
    BackOff,
    BeganLeading,
    CeasedLeading,
    CheckLog,
    CompleteDeletion,
    CompleteProduce,
    FlushLog,
    HandOver,
    OutwardEffect,
    ProposeIsr,
    ReportLogFailure,
    StartFetching,
    StopFetching,
    WakeFetch,
)
from sparklog.core.replication.replica import Replica
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.cluster import PartitionState
from sparklog.model.config import BrokerConfig, DynamicConfigs, TopicConfig
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import (
    NO_TOPIC_ID,
    TOPIC_NAME_LENGTH_MAX,
    BrokerEpoch,
    BrokerId,
    TopicId,
    TopicPartition,
)
from sparklog.model.time import MonotonicMs
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory

logger = logging.getLogger(__name__)

OnDiskFailure = Callable[[str, str | None], None]
"""Called when the last disk failed, with the reason and the id of the suspect log directory, or None."""


def _log_suspect(directory_uuid: str) -> None:
    """The default of ``on_suspect``: it logs; the other directories hold the notes."""
    logger.warning("what log directory %s holds may not be what it was", directory_uuid)


def _log_failure(why: str, _suspect: str | None) -> None:
    logger.error("%s", why)


OnReplicasLost = Callable[[list[tuple[TopicId, int]]], None]
"""Called with the replicas that went offline with their directory, while other directories serve on."""


def _log_lost(lost: list[tuple[TopicId, int]]) -> None:
    logger.error("%d replicas are offline", len(lost))


class Fetchers(Protocol):
    """The fetchers of the partitions that follow a leader."""

    def start(self, partition: Partition, leader: BrokerId) -> None: ...

    def stop(self, partition: Partition) -> None: ...

    def together(self) -> AbstractContextManager[None]:
        """A context for many ``start`` calls: a poll in progress is ended once at its exit, not once a
        call."""

    def ask_leader_offsets(self, partition: Partition) -> None: ...

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
        on_disk_failure: OnDiskFailure = _log_failure,
        on_replicas_lost: OnReplicasLost = _log_lost,
        on_suspect: Callable[[str], None] = _log_suspect,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = BrokerEpoch(-1)
        self.settings = CurrentSettings(config)
        throttles = self._throttles = ReplicationThrottles(ports.clock, ports.new_guard)
        throttles.set_rates(config)
        self.settings.on_change(throttles.set_rates)
        self.appends = JointWaits(ports, timed_out=AppendResult(ErrorCode.request_timed_out))
        self.leader_throttle, self.follower_throttle = throttles.leader, throttles.follower
        self.fetch_sessions = FetchSessions(ports)
        self.fetches = FetchPurgatory(ports, self.leader_throttle, self.fetch_sessions.by_token)
        self.fetches_in_progress = FetchesInProgress()
        self.deletions = JointWaits(ports, timed_out=DeletionResult(ErrorCode.request_timed_out))
        self._flusher = Flusher(ports.executor, ports.new_guard)
        self.clock = ports.clock
        self._log_dirs = log_dirs
        self.free_spaces = FreeSpaces(self.settings, log_dirs.home_of, ports.new_guard())
        self._ports = ports
        self.attentive_until: Callable[[], MonotonicMs] = ports.clock.monotonic_ms
        """Every request that arrived before this time has reached a handler; it is now, unless handlers
        hang."""
        self._fetchers = fetchers
        self._proposals = proposals
        self._on_disk_failure = on_disk_failure
        self._on_replicas_lost = on_replicas_lost
        self._on_suspect = on_suspect
        self.leadership = LeadershipListeners()
        self._partitions: dict[TopicPartition, Partition] = {}
        self._names: dict[TopicId, str] = {}
        self._gone = GoneReplicas()
        self._refusals = RefusingConnections()
        self._refusals_guard = ports.new_guard()
        self._live: frozenset[BrokerId] = frozenset()
        self._guard = ports.new_guard()
        self.controller_epoch = -1

    def load(self) -> None:
        """Create a partition without a role for every log on disk."""
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
        """The name of a topic of which this broker holds a replica."""
        return self._names.get(topic_id)

    def directories(self) -> dict[LogDirectory, list[TopicPartition]]:
        """The partitions in each log directory that serves."""
        return self._log_dirs.contents()

    def offline_directories(self) -> list[str]:
        return list(self._log_dirs.offline)

    def find(self, topic_partition: TopicPartition, topic_id: TopicId | None = None) -> Partition | ErrorCode:
        """The partition, or the error for a client that asked this broker."""
        partition = self._partitions.get(topic_partition)
        if partition is None:
            return ErrorCode.unknown_topic_or_partition
        if topic_id is not None and partition.topic_id != topic_id:
            return ErrorCode.inconsistent_topic_id
        return partition

    def on_produce_request(self, connection_id: int) -> None:
        """To be called before a produce request is examined."""
        if self._refusals.connections:
            with self._refusals_guard:
                self._refusals.on_request(connection_id)

    def note_refusal(self, connection_id: int, topic_partition: TopicPartition) -> None:
        """Record that a batch was refused on this connection with a retriable error."""
        if len(topic_partition.topic) <= TOPIC_NAME_LENGTH_MAX:
            with self._refusals_guard:
                self._refusals.note(connection_id, topic_partition)

    def has_refused(self, connection_id: int, topic_partition: TopicPartition) -> bool:
        """Whether batches on this connection may have been sent after a batch that was refused."""
        if not self._refusals.connections:
            return False
        with self._refusals_guard:
            return self._refusals.has_refused(connection_id, topic_partition)

    # Requests of the controller

    @property
    def knows_its_epoch(self) -> bool:
        """Whether this broker has received the epoch of its registration."""
        return self.broker_epoch >= 0

    def accept_controller(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Fence a replaced controller, and a request to an earlier incarnation of this broker."""
        with self._guard:
            if controller_epoch < self.controller_epoch:
                return ErrorCode.stale_controller_epoch
            if broker_epoch not in (-1, self.broker_epoch):
                return ErrorCode.stale_broker_epoch
            self.controller_epoch = controller_epoch
            return ErrorCode.none

    def roles_together(self) -> AbstractContextManager[None]:
        """A context for many ``become`` calls."""
        return self._fetchers.together()

    def become(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        state: PartitionState,
        configs: Mapping[str, str],
        *,
        is_new: bool,
    ) -> ErrorCode:
        """Take up the role in ``state``, and create the log if it is missing.

        FENCED_LEADER_EPOCH if the replica was deleted in this epoch or a later one: the request is late.
        """
        with self._guard:
            if self._gone.is_gone(topic_id, topic_partition.partition, state.leader_epoch):
                logger.warning(
                    "%s: ignored a stale LeaderAndIsr, the replica is deleted: %s", topic_partition, state
                )
                return ErrorCode.fenced_leader_epoch
            try:
                topic_config = self.config.topic(configs)
                partition = self._get_or_create(topic_partition, topic_id, topic_config, is_new)
            except DirectoryOffline as offline:
                logger.error("no log could be made: %s", offline)
                return ErrorCode.kafka_storage_error
            except (OSError, SparklogError) as error:
                logger.exception("%s: no log could be made", topic_partition)
                if isinstance(error, DirectoryFailed):
                    self._on_directory_failed(error)
                return ErrorCode.kafka_storage_error
            if isinstance(partition, ErrorCode):
                return partition
            try:
                return partition.on_leader_and_isr(state, broker_epoch=self.broker_epoch)
            except SparklogError:
                # The other partitions of the request must still get their roles.
                logger.exception("%s: the role in %s cannot be taken up", topic_partition, state)
                return ErrorCode.invalid_request

    def stop_replica(
        self,
        topic_partition: TopicPartition,
        leader_epoch: int,
        *,
        delete: bool,
        topic_id: TopicId = NO_TOPIC_ID,
    ) -> ErrorCode:
        """Stop serving, and with ``delete`` delete the log. Epochs -1 and -2 are not fenced (KIP-570).

        ``topic_id`` protects a newer topic of this name from a late request about the deleted one.
        """
        with self._guard:
            partition = self._partitions.get(topic_partition)
            if partition is None or topic_id not in (NO_TOPIC_ID, partition.topic_id):
                return (
                    self._delete_rival(topic_partition, topic_id, leader_epoch) if delete else ErrorCode.none
                )
            if 0 <= leader_epoch < partition.leader_epoch:
                return ErrorCode.fenced_leader_epoch
            if not delete:
                partition.stop("the controller stopped this replica")
                return ErrorCode.none
            if partition.is_offline and not self._log_dirs.is_online(topic_partition):
                return ErrorCode.kafka_storage_error
            self._gone.note(partition.topic_id, topic_partition.partition, leader_epoch)
            self._forget(partition)
            try:
                partition.delete(lambda: self._log_dirs.delete(topic_partition))
            except DirectoryFailed as failed:
                logger.exception("%s: the log could not be deleted", topic_partition)
                self._on_directory_failed(failed)
                return ErrorCode.kafka_storage_error
            return ErrorCode.none

    def make_way(self, topics: Mapping[str, TopicId]) -> None:
        """Set aside logs of earlier topics, given the controller's ids of the current ``topics``.

        Such a log was found at the start: its directory was offline while its topic was deleted. It is set
        aside even if this broker has no replica of the current topic, because no request will name it again.
        Replicas with a role, and logs without a topic id, are kept.
        """
        if not topics:
            return
        with self._guard:
            waiting = [
                topic_partition
                for topic_partition, partition in self._partitions.items()
                if partition.leader_epoch < 0
            ]
            for topic_partition in dict.fromkeys([*waiting, *self._log_dirs.with_rivals()]):
                topic_id = topics.get(topic_partition.topic, NO_TOPIC_ID)
                if topic_id != NO_TOPIC_ID:
                    self._make_way(topic_partition, topic_id)

    def _make_way(self, topic_partition: TopicPartition, topic_id: TopicId) -> None:
        partition = self._partitions.get(topic_partition)
        if partition is not None and partition.topic_id != topic_id:
            if partition.leader_epoch >= 0 or partition.topic_id == NO_TOPIC_ID:
                return
            self._give_up(partition)
            partition = None
        if partition is None:
            self._adopt(topic_partition, topic_id)
        self._set_aside_rivals(topic_partition)

    @property
    def config(self) -> BrokerConfig:
        return self.settings.now

    def configure(self, dynamic: DynamicConfigs, topics: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        """Apply settings: ``dynamic`` override those of the broker's start, and each of ``topics`` has its
        own. When ``dynamic`` changed, ``topics`` must name all topics.
        """
        with self._guard:
            if dynamic != self.settings.dynamic:
                self.settings.change(dynamic)
            changed = {name: self.config.topic(configs) for name, configs in topics}
            for name, config in changed.items():
                self._throttles.set_topic(name, config, self.broker_id)
            logs = {name: LogConfig.of(config) for name, config in changed.items()}
            for topic_partition, partition in self._partitions.items():
                if topic_partition.topic in logs:
                    partition.log_guard.configure(logs[topic_partition.topic])

    def on_live_brokers(self, live: Collection[BrokerId]) -> None:
        """Stop waiting for dead brokers; ``live`` is the controller's list."""
        if len(self.deletions) or self._live != set(live):
            self._live = frozenset(live)
            for partition in self.partitions():
                partition.on_live_brokers(live)

    # Housekeeping

    def on_tick(self) -> None:
        """Let every leader look for lagging followers; to be called twice in ``replica.lag.time.max.ms``."""
        for partition in self.partitions():
            now_ms = self.attentive_until()
            partition.on_tick(now_ms, self.fetches_in_progress.arrivals(now_ms))

    def delete_old_segments(self) -> None:
        """Let retention remove old segments of every partition."""
        for partition in self.partitions():
            deleted = partition.delete_old_segments()
            if deleted:
                logger.info("%s: retention removed %d segments", partition.topic_partition, deleted)

    def remove_late_files(self) -> None:
        """Remove files of deleted segments that have waited for ``file.delete.delay.ms``."""
        for partition in self.partitions():
            partition.log_guard.remove_late_files()

    def flush_by_time(self) -> None:
        """Flush every log with records that have waited for ``flush.ms``."""
        for partition in self.partitions():
            partition.log_guard.flush_by_time()

    def expire_producers(self) -> None:
        """Let every log forget producers that were silent for ``producer.id.expiration.ms``."""
        max_age_ms = self.config.get_int("producer.id.expiration.ms")
        for partition in self.partitions():
            partition.log_guard.expire_producers(max_age_ms)

    def checkpoint_high_watermarks(self) -> None:
        watermarks = {partition.topic_partition: partition.high_watermark for partition in self.partitions()}
        self._checkpoint(lambda: self._log_dirs.write_high_watermarks(watermarks))

    def checkpoint_recovery_points(self) -> None:
        """Write recovery points, after flushing the logs that rolled a segment since their last one."""
        for partition in self.partitions():
            if partition.log_guard.should_flush_before_checkpoint:
                partition.log_guard.flush()
        self._checkpoint(self._log_dirs.checkpoint_recovery_points)

    def _checkpoint(self, write: Callable[[], None]) -> None:
        """A failed checkpoint takes its directory offline, because the disk would fail the next write too."""
        try:
            write()
        except DirectoryFailed as failed:
            logger.exception("a checkpoint could not be written")
            self._on_directory_failed(failed)

    def _on_log_failed(self, partition: Partition, why: str, *, is_suspect: bool) -> None:
        directory = self._log_dirs.home_of(partition.topic_partition)
        if directory is not None:
            self._take_offline(directory, why, is_suspect=is_suspect)

    def _on_directory_failed(self, failed: DirectoryFailed) -> None:
        self._take_offline(failed.directory, str(failed), is_suspect=failed.is_suspect)

    def _take_offline(self, directory: LogDirectory, why: str, *, is_suspect: bool) -> None:
        """Take a failed disk's directory offline, and report its replicas to the controller.

        If it was the last directory, the broker stops.
        """
        try:
            lost = self._log_dirs.fail(directory, why, is_suspect=is_suspect)
        except OSError as error:
            lost, why = [], f"{why}; and it could not be noted elsewhere that its fsync failed: {error}"
        else:
            if lost is None:
                return
            if self._log_dirs.is_any_online:
                if is_suspect:
                    self._on_suspect(str(directory.uuid))
                partitions = [self._partitions[one] for one in lost if one in self._partitions]
                for partition in partitions:
                    partition.go_offline(why)
                self._on_replicas_lost([(one.topic_id, one.topic_partition.partition) for one in partitions])
                return
        self._on_disk_failure(why, str(directory.uuid) if is_suspect else None)

    def suspects(self) -> frozenset[str]:
        """Ids of log directories noted as suspect; ZooKeeper may not have them yet."""
        return self._log_dirs.suspects()

    def forget_suspect(self, directory_uuid: str) -> None:
        """Remove the notes about a suspect directory, because ZooKeeper has recorded it."""
        try:
            self._log_dirs.forget_suspect(directory_uuid)
        except DirectoryFailed as failed:
            logger.exception("a note of log directory %s stays", directory_uuid)
            self._on_directory_failed(failed)

    def stop_serving(self, why: str) -> None:
        """Give up every role: parked requests are refused at once, so that clients find the new leader."""
        for partition in self.partitions():
            partition.stop(why)

    def close(self, clean_epoch: int | None) -> None:
        """Close the logs; with ``clean_epoch`` flush them first and write the clean marker."""
        if clean_epoch is not None:
            for partition in self.partitions():
                partition.log_guard.flush()
            self.checkpoint_high_watermarks()
            if any(
                one.is_offline and self._log_dirs.is_online(one.topic_partition) for one in self.partitions()
            ):
                logger.warning("a log failed, so this stop is not a clean one")
                clean_epoch = None
        for partition in self.partitions():
            partition.stop("the broker stops")
        self._log_dirs.close(clean_epoch)

    # Effects

    def deliver(self, partition: Partition, effect: OutwardEffect) -> None:
        """Carry out an outward effect; called in order, outside all partition locks."""
        match effect:
            case CompleteProduce(token, error):
                self.appends.complete(token, AppendResult(error))
            case FlushLog():
                self._flusher.request(partition.log_guard)
            case CompleteDeletion(token, error, low_watermark):
                self.deletions.complete(token, DeletionResult(error, low_watermark))
            case WakeFetch(token):
                self.fetches.wake(token)
            case ProposeIsr():
                self._proposals.propose(partition.topic_partition, effect)
            case StartFetching(leader):
                if self._partitions.get(partition.topic_partition) is partition:  # not deleted since
                    self._fetchers.start(partition, leader)
            case StopFetching():
                self._fetchers.stop(partition)
            case BeganLeading() | CeasedLeading():
                self.leadership.announce(partition.topic_partition, effect)
            case AskLeaderOffsets():
                self._fetchers.ask_leader_offsets(partition)
            case BackOff(error):
                self._fetchers.back_off(partition, error)
            case ReportLogFailure(reason, is_suspect):
                self._on_log_failed(partition, reason, is_suspect=is_suspect)
            case CheckLog(offset):
                partition.check_log(offset)
            case HandOver():
                self._on_replicas_lost([(partition.topic_id, partition.topic_partition.partition)])

    # Details

    def _get_or_create(
        self, topic_partition: TopicPartition, topic_id: TopicId, config: TopicConfig, is_new: bool
    ) -> Partition | ErrorCode:
        partition = self._partitions.get(topic_partition)
        if partition is not None and partition.topic_id != topic_id:
            if partition.leader_epoch >= 0:
                return ErrorCode.inconsistent_topic_id
            self._give_up(partition)
            partition = None
        partition = partition or self._adopt(topic_partition, topic_id)
        self._set_aside_rivals(topic_partition)
        if partition is not None:
            partition.log_guard.configure(LogConfig.of(config))
            return partition
        log = self._log_dirs.create(topic_partition, topic_id, config, is_new=is_new)
        partition = self._partition(topic_partition, log, 0)
        self._partitions[topic_partition] = partition
        return partition

    def _give_up(self, partition: Partition) -> None:
        """Set aside a log of an earlier topic of this name, found at the start.

        Its replica was moved and its topic deleted while this broker or directory was down. No request will
        name it; it is kept for the operator.
        """
        topic_partition = partition.topic_partition
        self._forget(partition)
        partition.delete(lambda: self._log_dirs.give_up(topic_partition))

    def _adopt(self, topic_partition: TopicPartition, topic_id: TopicId) -> Partition | None:
        """Put into use the topic's log if it is among several found at the start for this name."""
        log = self._log_dirs.adopt(topic_partition, topic_id)
        if log is None:
            return None
        watermark = self._log_dirs.high_watermarks().get(topic_partition, 0)
        partition = self._partitions[topic_partition] = self._partition(topic_partition, log, watermark)
        return partition

    def _delete_rival(
        self, topic_partition: TopicPartition, topic_id: TopicId, leader_epoch: int
    ) -> ErrorCode:
        """Delete the log of a deleted topic that has no ``Partition`` here. It may exist if a log of another
        topic has the same name, and neither has had a role yet."""
        try:
            if not self._log_dirs.delete_rival(topic_partition, topic_id):
                return ErrorCode.kafka_storage_error
        except DirectoryFailed as failed:
            logger.exception("%s: a log of an earlier topic could not be deleted", topic_partition)
            self._on_directory_failed(failed)
            return ErrorCode.kafka_storage_error
        self._gone.note(topic_id, topic_partition.partition, leader_epoch)
        return ErrorCode.none

    def _set_aside_rivals(self, topic_partition: TopicPartition) -> None:
        try:
            self._log_dirs.set_aside_rivals(topic_partition)
        except DirectoryFailed as failed:  # not the directory of the log that is wanted
            logger.exception("%s: a log of an earlier topic could not be set aside", topic_partition)
            self._on_directory_failed(failed)

    def _forget(self, partition: Partition) -> None:
        del self._partitions[partition.topic_partition]
        if all(other.topic_id != partition.topic_id for other in self.partitions()):
            self._names.pop(partition.topic_id, None)

    def _partition(self, topic_partition: TopicPartition, log: Log, high_watermark: int) -> Partition:
        replica = Replica(
            broker_id=self.broker_id,
            topic_partition=topic_partition,
            epochs=log.epochs,
            marks=Watermarks(
                log.log_start_offset,
                high_watermark,
                log.log_end_offset,
                log.recovery_point if self.config.get_str("log.flush.acks") == "fsync" else None,
                local_start_offset=log.local_start_offset,
            ),
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
            flushing=self._ports.new_guard(),
            why_no_room=self.free_spaces.why_no_room,
        )
