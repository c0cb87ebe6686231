"""A broker's replicas, and the loops around them, from its opened logs to its registration and after.

Servers and the simulation build a broker's replication here, and start its loops here in one order: the watch
of the controller and the ISR proposals before the broker registers, because the controller writes to it from
then on; the reports of suspect directories and the watch of the registration after it, because both need the
broker epoch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.following.fetcher import Fetcher
from sparklog.broker.following.fetchers import Fetchers
from sparklog.broker.life.disk_reports import DiskReports, LostLogs
from sparklog.broker.life.registration_watch import watch_registration
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.ports import Ports
from sparklog.broker.replicas.directory_failures import DiskListeners, OnDiskFailure
from sparklog.broker.replicas.replica_parts import ReplicaParts
from sparklog.broker.to_controller.column_loads import ColumnLoads
from sparklog.broker.to_controller.controller_link import watch_controller
from sparklog.broker.to_controller.isr_proposals import IsrProposalSender
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch, BrokerId
from sparklog.model.loops import Changes, Loops
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ZooKeeper


class Link(Protocol):
    """The connections to the active controller."""

    changes: Changes

    def lead_to(self, controller: ControllerNode | None) -> None:
        """From now on requests go to ``controller``; None if no controller is known."""


@dataclass(frozen=True, slots=True)
class ReplicationPorts:
    """What runs a broker's loops, and what they reach."""

    inside: Ports
    loops: Loops
    zookeeper_loops: Loops
    """Runs the loops that make no calls but may wait for ZooKeeper. May be ``loops``."""
    zookeeper: ZooKeeper
    link: Link
    hang_up: Callable[[BrokerId, int], None]
    """Ends the call to a broker that is under way on a lane."""
    lanes: int
    """Connections to each leader, each with a fetcher of its own."""


class Replication:
    """The replicas of one broker with their fetchers, proposals and reports."""

    def __init__(
        self,
        broker_id: BrokerId,
        config: BrokerConfig,
        log_dirs: LogDirs,
        metadata: MetadataCache,
        ports: ReplicationPorts,
        on_disk_failure: OnDiskFailure,
    ) -> None:
        """``on_disk_failure`` is called when the last directory failed: with the reason, and with the
        directory's id if it is suspect.
        """
        self.broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
        """The epoch of the registration; -1 before it."""
        self._broker_id = broker_id
        self._config = config
        self._metadata = metadata
        self._ports = ports
        self.doubted_leaders = DoubtedLeaders(ports.inside.clock)
        new_guard = ports.inside.new_guard
        self.reports = DiskReports(broker_id, self._epoch_now, ports.zookeeper, ports.link.changes)
        self.proposals = IsrProposalSender(
            broker_id,
            self._epoch_now,
            lambda topic_partition: self.parts.table.get(topic_partition),  # noqa: PLW0108 (made below)
            ports.link.changes,
            new_guard(),
        )
        self.parts = ReplicaParts.compose(
            broker_id,
            config,
            log_dirs,
            ports.inside,
            fetchers=Fetchers(
                self._new_fetcher, ports.loops, ports.hang_up, lanes=ports.lanes, guard=new_guard()
            ),
            proposals=self.proposals,
            listeners=DiskListeners(on_disk_failure, self._report_lost, self._report_suspect),
        )

        self.columns = ColumnLoads(self.parts.table.partitions)

    def start(self) -> None:
        """Look for the controller, and begin to propose ISRs and to ask for columns."""
        ports = self._ports
        ports.zookeeper_loops.start(
            "controller-watch", lambda: watch_controller(ports.zookeeper, ports.link.lead_to)
        )
        ports.loops.start("isr-proposals", self.proposals.loop)
        ports.loops.start("topic-columns", self.columns.loop)

    def registered(self, broker_epoch: BrokerEpoch, on_lost: Callable[[str], None]) -> None:
        """The broker has registered. ``on_lost`` is called with the reason if the registration is deleted."""
        ports = self._ports
        self.broker_epoch = self.parts.fence.broker_epoch = broker_epoch
        for directory_uuid in self.parts.failures.suspects():
            self._report_suspect(directory_uuid)
        ports.zookeeper_loops.start(
            "registration-watch",
            lambda: watch_registration(ports.zookeeper, self._broker_id, broker_epoch, on_lost),
        )

    def _epoch_now(self) -> BrokerEpoch:
        return self.broker_epoch

    def _new_fetcher(self, leader: BrokerId, lane: int) -> Fetcher:
        listener = self._config.listeners.inter_broker
        return Fetcher(
            broker_id=self._broker_id,
            broker_epoch=self._epoch_now,
            leader=leader,
            find_node=lambda broker_id: self._metadata.node(broker_id, listener),
            lane=lane,
            config=self._config,
            clock=self._ports.inside.clock,
            guard=self._ports.inside.new_guard(),
            throttle=self.parts.throttles.follower,
            doubts=self.doubted_leaders,
        )

    def _report_suspect(self, directory_uuid: str) -> None:
        """A directory is suspect, and the broker serves on with the others."""
        self._ports.zookeeper_loops.start(
            "suspect-directory",
            lambda: self.reports.suspect(
                directory_uuid, lambda: self.parts.failures.forget_suspect(directory_uuid)
            ),
        )

    def _report_lost(self, lost: LostLogs) -> None:
        """Replicas went offline with their directory."""
        self._ports.loops.start("lost-logs", lambda: self.reports.lost_logs(lost))
