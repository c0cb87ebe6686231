"""Bugs of elections: who may lead, and when brokers hear of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from simulation.plans.plots.lost_disks import EMPTY_LOG_THAT_LED, ISR_LOSES_ITS_DISKS
from sparklog.broker.partition.partition import Partition
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.state import leader_choice
from sparklog.core.controller.state.candidates import Candidates
from sparklog.core.controller.state.incarnation import Incarnation, LogId
from sparklog.core.controller.state.leader_choice import Rules
from sparklog.core.controller.steps import AddPartitions, CreateTopic, Decision, FinishCreation
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId
from sparklog.storage.log import Log
from sparklog.storage.small_files.checkpoints import read_epochs, write_epochs

NOTE: Final = "noted-epoch"
"""In a log's directory."""


def _unproven_logs_are_elected(switch: Switch) -> None:
    """Whoever is listed in the ISR may lead, however its broker restarted."""

    def proves(original: Any) -> Any:
        def mutated(self: Incarnation, counted_at: int, log: LogId | None = None) -> bool:
            return True

        return mutated

    switch.method(Incarnation, "proves", proves)


def _eligible_while_others_commit(switch: Switch) -> None:
    """Who leaves an ISR stays eligible, although what is left of it goes on committing."""

    def eligible_after(original: Any) -> Any:
        def mutated(
            state: PartitionState, isr: Sequence[BrokerId], candidates: Candidates, rules: Rules
        ) -> tuple[BrokerId, ...]:
            everybody = replace(rules, min_insync_replicas=len(state.replicas))
            eligible: tuple[BrokerId, ...] = original(state, isr, candidates, everybody)
            return eligible

        return mutated

    switch.method(leader_choice, "_eligible_after", eligible_after)


def _roles_before_elections(switch: Switch) -> None:
    """A broker that is told everything hears it at once, also of partitions that need an election."""

    def must_hold_pushes(original: Any) -> Any:
        def mutated(self: PendingWork, decision: Decision) -> bool:
            return any(isinstance(step, CreateTopic | AddPartitions | FinishCreation) for step in self.steps)

        return mutated

    switch.method(PendingWork, "must_hold_pushes", must_hold_pushes)


def _only_the_isr_is_compared(switch: Switch) -> None:
    """Where nobody is proven, logs of the last ISR and of eligible replicas are compared, and no others."""

    def unproven_leader(original: Any) -> Any:
        def mutated(
            state: PartitionState, candidates: Candidates, *, allows_unclean: bool
        ) -> tuple[BrokerId, str] | None:
            counted = tuple(one for one in state.replicas if one in (*state.isr, *state.eligible))
            found: tuple[BrokerId, str] | None = original(
                replace(state, replicas=counted), candidates, allows_unclean=allows_unclean
            )
            return found

        return mutated

    switch.method(leader_choice, "unproven_leader", unproven_leader)


def _an_epoch_without_a_record_counts(switch: Switch) -> None:
    """Logs are compared by the last epoch that a leader noted in them, with a record or without. Starts keep
    the note, in a file of its own: shipped ones forget what begins at a log's end.
    """

    def assign_epoch(original: Any) -> Any:
        def mutated(self: Log, epoch: int, start_offset: int) -> None:
            original(self, epoch, start_offset)
            path = f"{self.directory}/{NOTE}"
            write_epochs(self._disk, path, EpochHistory.of([(epoch, start_offset)]))
            self._disk.sync_file(path)
            self._disk.sync_directory(self.directory)

        return mutated

    def end_without_leader(original: Any) -> Any:
        def mutated(self: Partition, leader_epoch: int) -> tuple[int, int]:
            last_epoch, end = original(self, leader_epoch)
            noted = read_epochs(self.log._disk, f"{self.log.directory}/{NOTE}")
            return (max(last_epoch, noted.latest_epoch) if noted and end >= 0 else last_epoch), end

        return mutated

    switch.method(Log, "assign_epoch", assign_epoch)
    switch.method(Partition, "end_without_leader", end_without_leader)


def _lost_disks_do_not_wait(switch: Switch) -> None:
    """Where each counted replica lost its disk, the greatest of their empty logs leads at once."""

    def has_lost_disk(self: Candidates, member: BrokerId, state: PartitionState) -> bool:
        return False

    switch.instead(Candidates, "has_lost_disk", has_lost_disk)


ELECTIONS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "unproven-logs-are-elected",
        "KIP-966",
        "the last ISR member leads without the records that it lost",
        40,
        _unproven_logs_are_elected,
        Hunt(kinds=("cut the power", "kill broker"), settings={"min.insync.replicas": "2"}),
        brings_back=("K24",),
    ),
    Mutant(
        "eligible-while-others-commit",
        "KIP-966",
        "a replica leads without committed records",
        20,
        _eligible_while_others_commit,
        is_quick=True,
        brings_back=("K24",),
    ),
    Mutant(
        "roles-before-elections",
        "B2",
        "a leader that lost its log leads its old epoch again, and followers truncate",
        90,
        _roles_before_elections,
        Hunt(plot=46, settings={"min.insync.replicas": "2"}),
        brings_back=("B2",),
    ),
    Mutant(
        "only-the-isr-is-compared",
        "KIP-966, whose elections trust the ISR and eligible replicas",
        "an emptied disk leads, and the others are truncated to nothing",
        20,
        _only_the_isr_is_compared,
        Hunt(plot=ISR_LOSES_ITS_DISKS, settings={"min.insync.replicas": "1"}),
    ),
    Mutant(
        "an-epoch-without-a-record-counts",
        "KAFKA-7415, in the comparison of logs",
        "an empty log that once led leads before full ones",
        20,
        _an_epoch_without_a_record_counts,
        Hunt(
            plot=EMPTY_LOG_THAT_LED,
            settings={"min.insync.replicas": "2", "log.flush.acks": "fsync"},
            topic_configs={"unclean.leader.election.enable": "true"},
        ),
    ),
    Mutant(
        "lost-disks-do-not-wait",
        "KIP-966 without knowledge of lost disks",
        "the first emptied disk to return leads, and the others are truncated to nothing",
        20,
        _lost_disks_do_not_wait,
        Hunt(plot=ISR_LOSES_ITS_DISKS, settings={"min.insync.replicas": "1"}),
    ),
)
