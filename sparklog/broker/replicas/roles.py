"""The roles of this broker's replicas, as the controller decides them: lead, follow, stop, be deleted.

The controller sends LeaderAndIsr and StopReplica one after the other; clients and followers send produces and
fetches concurrently. One change of roles is made at a time, under a guard. What follows from it (fetchers,
listeners, proposals, reports of failed disks) is delivered after the guard is released.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.disks.gone_replicas import GoneReplicas
from sparklog.broker.disks.log_dirs import DirectoryFailed, DirectoryOffline
from sparklog.broker.partition.answers import DeletionResult
from sparklog.broker.replicas.controller_fence import ControllerFence
from sparklog.broker.replicas.directory_failures import DirectoryFailures, LostDirectory
from sparklog.broker.replicas.effects import Fetchers
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.replicas.replica_logs import ReplicaLogs, RoleEffects, note_failure
from sparklog.broker.throttles import ReplicationThrottles
from sparklog.broker.waiting.joint_wait import JointWaits
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.settings.config import DynamicConfigs
from sparklog.storage.log_config import LogConfig

logger: Final = logging.getLogger(__name__)


class Roles:
    """Changes of roles and of settings, one at a time."""

    def __init__(
        self,
        broker_id: BrokerId,
        guard: Guard,
        table: PartitionTable,
        logs: ReplicaLogs,
        settings: CurrentSettings,
        throttles: ReplicationThrottles,
        fence: ControllerFence,
        failures: DirectoryFailures,
        fetchers: Fetchers,
        deletions: JointWaits[DeletionResult, DeletionResult],
    ) -> None:
        self._broker_id = broker_id
        self._guard = guard
        self._table = table
        self._logs = logs
        self._settings = settings
        self._throttles = throttles
        self._fence = fence
        self._failures = failures
        self._fetchers = fetchers
        self._deletions = deletions
        self._gone = GoneReplicas()
        self._live: frozenset[BrokerId] = frozenset()

    def together(self) -> AbstractContextManager[None]:
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
        schema_version: int = 0,
    ) -> ErrorCode:
        """Take up the role in ``state``, and create the log if it is missing.

        FENCED_LEADER_EPOCH if the replica was deleted in this epoch or a later one: the request is late.
        """
        with self._change() as due:
            if self._gone.is_gone(topic_id, topic_partition.partition, state.leader_epoch):
                logger.warning(
                    "%s: ignored a stale LeaderAndIsr, the replica is deleted: %s", topic_partition, state
                )
                return ErrorCode.fenced_leader_epoch
            try:
                config = self._settings.now.topic(configs)
                partition = self._logs.get_or_create(topic_partition, topic_id, config, due, is_new=is_new)
            except DirectoryOffline as offline:
                logger.error("no log could be made: %s", offline)
                return ErrorCode.kafka_storage_error
            except (OSError, SparklogError) as error:
                logger.exception("%s: no log could be made", topic_partition)
                if isinstance(error, DirectoryFailed):
                    note_failure(self._failures, error, due)
                return ErrorCode.kafka_storage_error
            if isinstance(partition, ErrorCode):
                return partition
            due.append(partition)
            partition.schema_version = max(partition.schema_version, schema_version)
            try:
                return partition.on_leader_and_isr(state, broker_epoch=self._fence.broker_epoch)
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
        with self._change() as due:
            partition = self._table.get(topic_partition)
            if partition is None or topic_id not in (NO_TOPIC_ID, partition.topic_id):
                return (
                    self._delete_rival(topic_partition, topic_id, leader_epoch, due)
                    if delete
                    else ErrorCode.none
                )
            if 0 <= leader_epoch < partition.leader_epoch:
                return ErrorCode.fenced_leader_epoch
            if not delete:
                due.append(partition)
                partition.stop("the controller stopped this replica")
                return ErrorCode.none
            if self._logs.may_be_offline(partition):
                return ErrorCode.kafka_storage_error
            self._gone.note(partition.topic_id, topic_partition.partition, leader_epoch)
            try:
                self._logs.delete(partition, due)
            except DirectoryFailed as failed:
                logger.exception("%s: the log could not be deleted", topic_partition)
                note_failure(self._failures, failed, due)
                return ErrorCode.kafka_storage_error
            return ErrorCode.none

    def _delete_rival(
        self, topic_partition: TopicPartition, topic_id: TopicId, leader_epoch: int, due: RoleEffects
    ) -> ErrorCode:
        try:
            if not self._logs.delete_rival(topic_partition, topic_id):
                return ErrorCode.kafka_storage_error
        except DirectoryFailed as failed:
            logger.exception("%s: a log of an earlier topic could not be deleted", topic_partition)
            note_failure(self._failures, failed, due)
            return ErrorCode.kafka_storage_error
        self._gone.note(topic_id, topic_partition.partition, leader_epoch)
        return ErrorCode.none

    def make_way(self, topics: dict[str, TopicId]) -> None:
        """Set aside logs of earlier topics, given the controller's ids of the current ``topics``.

        Such a log was found at the start: its directory was offline while its topic was deleted. It is set
        aside even if this broker has no replica of the current topic, because no request will name it again.
        Replicas with a role, and logs without a topic id, are kept.
        """
        if topics:
            with self._change() as due:
                self._logs.make_way(topics, due)

    def configure(self, dynamic: DynamicConfigs, topics: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        """Apply settings: ``dynamic`` override those of the broker's start, and each of ``topics`` has its
        own. When ``dynamic`` changed, ``topics`` must name all topics.
        """
        # Under the guard, because a log that is created meanwhile must have the old or the new settings.
        with self._guard:
            if dynamic != self._settings.dynamic:
                self._settings.change(dynamic)
            changed = {name: self._settings.now.topic(configs) for name, configs in topics}
            for name, config in changed.items():
                self._throttles.set_topic(name, config, self._broker_id)
            logs = {name: LogConfig.of(config) for name, config in changed.items()}
            for partition in self._table.partitions():
                if partition.topic_partition.topic in logs:
                    partition.log_guard.configure(logs[partition.topic_partition.topic])

    def on_live_brokers(self, live: Collection[BrokerId]) -> None:
        """Stop waiting for dead brokers; ``live`` is the controller's list."""
        if len(self._deletions) or self._live != set(live):
            self._live = frozenset(live)
            for partition in self._table.partitions():
                partition.on_live_brokers(live)

    def stop_serving(self, why: str) -> None:
        """Give up every role: parked requests are refused at once, so that clients find the new leader."""
        for partition in self._table.partitions():
            partition.stop(why)
            partition.log_guard.deliver()

    @contextmanager
    def _change(self) -> Iterator[RoleEffects]:
        """One change of roles. What it appends to the effects is delivered after the guard is released, also
        if the change failed in the middle.
        """
        due: RoleEffects = []
        try:
            with self._guard:
                yield due
        finally:
            for effect in due:
                if isinstance(effect, LostDirectory):
                    self._report(effect)
                else:
                    effect.log_guard.deliver()

    def _report(self, lost: LostDirectory) -> None:
        """A report that fails must not keep back the effects of roles that were taken."""
        try:
            self._failures.report(lost)
        except Exception:
            logger.exception("log directory %s failed, and it was not reported", lost.directory_uuid)
