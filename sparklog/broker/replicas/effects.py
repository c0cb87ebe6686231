"""Outward effects of partitions: each goes to the waits, the fetchers, or the controller's proposals."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from sparklog.broker.leadership import LeadershipListeners
from sparklog.broker.partition.answers import DeletionResult
from sparklog.broker.partition.append_results import AppendResult
from sparklog.broker.partition.flusher import Flusher
from sparklog.broker.partition.partition import Partition
from sparklog.broker.ports import IsrProposals
from sparklog.broker.replicas.directory_failures import DirectoryFailures
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.waiting.fetch_purgatory import FetchPurgatory
from sparklog.broker.waiting.joint_wait import JointWaits
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
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId


class Fetchers(Protocol):
    """The fetchers of the partitions that follow a leader."""

    def start(self, partition: Partition, leader: BrokerId) -> None: ...

    def stop(self, partition: Partition) -> None: ...

    def together(self) -> AbstractContextManager[None]:
        """A context for many ``start`` calls: a poll in progress is ended once at its exit, not once a
        call."""

    def ask_leader_offsets(self, partition: Partition) -> None: ...

    def back_off(self, partition: Partition, error: ErrorCode) -> None: ...


@dataclass(frozen=True, slots=True)
class Effects:
    """Carries out the outward effects of all partitions. It takes no guard of its own."""

    table: PartitionTable
    appends: JointWaits[AppendResult, ErrorCode]
    deletions: JointWaits[DeletionResult, DeletionResult]
    fetches: FetchPurgatory
    flusher: Flusher
    proposals: IsrProposals
    fetchers: Fetchers
    leadership: LeadershipListeners
    failures: DirectoryFailures

    def deliver(self, partition: Partition, effect: OutwardEffect) -> None:
        """Carry out an outward effect; called in order, outside all locks of partitions and roles."""
        match effect:
            case CompleteProduce(token, error):
                self.appends.complete(token, error)
            case FlushLog():
                self.flusher.request(partition.log_guard)
            case CompleteDeletion(token, error, low_watermark):
                self.deletions.complete(token, DeletionResult(error, low_watermark))
            case WakeFetch(token):
                self.fetches.wake(token)
            case ProposeIsr():
                self.proposals.propose(partition.topic_partition, effect)
            case StartFetching(leader):
                if self.table.get(partition.topic_partition) is partition:  # not deleted since
                    self.fetchers.start(partition, leader)
            case StopFetching():
                self.fetchers.stop(partition)
            case BeganLeading() | CeasedLeading():
                self._announce(partition, effect)
            case AskLeaderOffsets():
                self.fetchers.ask_leader_offsets(partition)
            case BackOff(error):
                self.fetchers.back_off(partition, error)
            case ReportLogFailure(reason, is_suspect):
                self.failures.on_log_failed(partition, reason, is_suspect=is_suspect)
            case CheckLog(offset):
                partition.check_log(offset)
            case HandOver():
                self.failures.report_replicas([partition])

    def _announce(self, partition: Partition, effect: BeganLeading | CeasedLeading) -> None:
        name = partition.topic_partition
        if isinstance(effect, BeganLeading) and self.table.get(name) is not partition:
            return  # deleted since; another topic's partition of that name may lead
        self.leadership.announce(name, effect)
