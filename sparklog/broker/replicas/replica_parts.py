"""The parts of a broker that hold its replicas, put together."""

from dataclasses import dataclass
from typing import Self

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.leadership import LeadershipListeners
from sparklog.broker.partition.answers import DeletionResult
from sparklog.broker.partition.append_results import AppendResult, decided
from sparklog.broker.partition.flusher import Flusher
from sparklog.broker.partition.free_space import FreeSpaces
from sparklog.broker.partition.topic_traffic import TopicTraffic
from sparklog.broker.ports import IsrProposals, Ports
from sparklog.broker.replicas.chores import Chores
from sparklog.broker.replicas.controller_fence import ControllerFence
from sparklog.broker.replicas.directory_failures import DirectoryFailures, DiskListeners
from sparklog.broker.replicas.effects import Effects, Fetchers
from sparklog.broker.replicas.partition_maker import PartitionMaker
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.replicas.refusals import Refusals
from sparklog.broker.replicas.replica_logs import ReplicaLogs
from sparklog.broker.replicas.roles import Roles
from sparklog.broker.throttles import ReplicationThrottles
from sparklog.broker.waiting.fetch_purgatory import FetchPurgatory
from sparklog.broker.waiting.fetch_sessions import FetchSessions
from sparklog.broker.waiting.fetches_in_progress import FetchesInProgress
from sparklog.broker.waiting.joint_wait import JointWaits
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig


def _its_outcome(_waited: DeletionResult, outcome: DeletionResult) -> DeletionResult:
    """Only the replicas together know the low watermark."""
    return outcome


@dataclass(frozen=True, slots=True)
class Waits:
    """Requests that wait, and what is kept between fetches."""

    appends: JointWaits[AppendResult, ErrorCode]
    deletions: JointWaits[DeletionResult, DeletionResult]
    fetches: FetchPurgatory
    fetch_sessions: FetchSessions
    fetches_in_progress: FetchesInProgress

    @classmethod
    def compose(cls, ports: Ports, throttles: ReplicationThrottles) -> Self:
        sessions = FetchSessions(ports)
        return cls(
            JointWaits(ports, decided, timed_out=ErrorCode.request_timed_out),
            JointWaits(ports, _its_outcome, timed_out=DeletionResult(ErrorCode.request_timed_out)),
            FetchPurgatory(ports, throttles.leader, sessions.by_token),
            sessions,
            FetchesInProgress(),
        )


@dataclass(frozen=True, slots=True)
class ReplicaParts:
    """Made together, because each needs some of the others; handed out singly."""

    table: PartitionTable
    logs: ReplicaLogs
    """To be loaded before the first role."""
    roles: Roles
    effects: Effects
    chores: Chores
    refusals: Refusals
    fence: ControllerFence
    failures: DirectoryFailures
    waits: Waits
    settings: CurrentSettings
    throttles: ReplicationThrottles
    leadership: LeadershipListeners
    free_spaces: FreeSpaces
    log_dirs: LogDirs
    traffic: TopicTraffic

    @classmethod
    def compose(
        cls,
        broker_id: BrokerId,
        config: BrokerConfig,
        log_dirs: LogDirs,
        ports: Ports,
        *,
        fetchers: Fetchers,
        proposals: IsrProposals,
        listeners: DiskListeners | None = None,
    ) -> Self:
        settings, throttles = CurrentSettings(config), ReplicationThrottles(ports.clock, ports.new_guard)
        throttles.set_rates(config)
        settings.on_change(throttles.set_rates)
        waits, leadership = Waits.compose(ports, throttles), LeadershipListeners()
        free_spaces = FreeSpaces(settings, log_dirs.home_of, ports.new_guard(), ports.clock)
        table, fence = PartitionTable(), ControllerFence(ports.new_guard())
        failures = DirectoryFailures(table, log_dirs, listeners or DiskListeners())
        effects = Effects(
            table,
            waits.appends,
            waits.deletions,
            waits.fetches,
            Flusher(ports.executor, ports.new_guard),
            proposals,
            fetchers,
            leadership,
            failures,
        )
        traffic = TopicTraffic(ports.new_guard)
        maker = PartitionMaker(broker_id, settings, ports, effects.deliver, free_spaces.why_no_room, traffic)
        logs = ReplicaLogs(table, log_dirs, failures, maker)
        roles = Roles(
            broker_id,
            ports.new_guard(),
            table,
            logs,
            settings,
            throttles,
            fence,
            failures,
            fetchers,
            waits.deletions,
        )
        chores = Chores(table, log_dirs, settings, failures, waits.fetches_in_progress, ports.clock)
        return cls(
            table, logs, roles, effects, chores, Refusals(ports.new_guard()), fence, failures, waits,
            settings, throttles, leadership, free_spaces, log_dirs, traffic,
        )  # fmt: skip
