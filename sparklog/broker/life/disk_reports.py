"""What a broker reports about disks that failed, each until it is known, however long that takes.

The controller must know which replicas went offline, because it elects other leaders for them. ZooKeeper must
know which log directory is suspect (an fsync of it failed), because a start without that mark would be
trusted with records that the disk does not have. A note in the broker's other directories is not enough: they
may be unreadable then.
"""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId
from sparklog.model.loops import Await, CallController, Changes, Loop, Pause
from sparklog.model.zookeeper import ZooKeeper
from sparklog.wire.messages.control.assign_replicas_to_dirs import (
    AssignReplicasToDirsDirectory,
    AssignReplicasToDirsPartition,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsTopic,
)
from sparklog.zookeeper.broker_registration import report_suspect, withdraw_suspect

logger: Final = logging.getLogger(__name__)

RETRY_MS: Final = 500
"""Pause between two attempts."""

LOST_LOGS_TIMEOUT_MS: Final = 5_000
"""Longest wait for the controller's answer before the lost logs are reported to it again."""

LANE: Final = "lost-logs"

LostLogs = list[tuple[TopicId, int]]
"""Topic id and partition of each replica that went offline."""


class DiskReports:
    """The reports of one broker, as loops. ``broker_epoch`` returns -1 until the broker is registered."""

    def __init__(
        self,
        broker_id: BrokerId,
        broker_epoch: Callable[[], BrokerEpoch],
        zookeeper: ZooKeeper,
        controller_changes: Changes,
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._zookeeper = zookeeper
        self._controller_changes = controller_changes

    def lost_logs(self, lost: LostLogs) -> Loop:
        """Report to the controller which replicas went offline, and to each new controller until one
        answers.
        """
        with self._controller_changes.signalled() as changed:
            while True:
                changed.take()
                try:
                    request = self._lost_logs_request(lost)
                    response = yield CallController(request, LOST_LOGS_TIMEOUT_MS, LANE)
                    if response.error_code is ErrorCode.none:
                        return
                    problem = response.error_code.name
                except (OSError, SparklogError) as error:
                    problem = str(error)
                logger.warning("the controller does not know yet which logs are lost: %s", problem)
                yield Await(changed, RETRY_MS)

    def suspect(self, directory_uuid: str, on_reported: Callable[[], None]) -> Loop:
        """Record in ZooKeeper that a directory is suspect, while the broker serves on with its other
        directories.
        """

        def write() -> None:
            broker_epoch = self._broker_epoch()
            if broker_epoch < 0:
                raise SparklogError("the broker is not registered yet")
            report_suspect(self._zookeeper, self._broker_id, directory_uuid, broker_epoch)

        yield from self._write(directory_uuid, write)
        on_reported()

    def withdrawal(self, directory_uuid: str, on_reported: Callable[[], None]) -> Loop:
        """End the registration, and record that the broker's last directory is suspect."""

        def write() -> None:
            withdraw_suspect(self._zookeeper, self._broker_id, self._broker_epoch(), directory_uuid)

        yield from self._write(directory_uuid, write)
        on_reported()

    @staticmethod
    def _write(directory_uuid: str, write: Callable[[], None]) -> Loop:
        while True:
            try:
                write()
                return
            except SparklogError as error:
                logger.warning("log directory %s is not marked suspect yet: %s", directory_uuid, error)
            yield Pause(RETRY_MS)

    def _lost_logs_request(self, lost: LostLogs) -> AssignReplicasToDirsRequest:
        """Kafka's message for replicas that moved to another directory, without a directory."""
        topics = [
            AssignReplicasToDirsTopic(
                topic_id=topic, partitions=[AssignReplicasToDirsPartition(partition_index=number)]
            )
            for topic, number in lost
        ]
        return AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            directories=[AssignReplicasToDirsDirectory(topics=topics)],
        )
