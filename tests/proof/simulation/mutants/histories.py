"""Bugs of histories that count as replicas: after all disks are lost, or the last ones in sync."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from simulation.plans.plots.lost_disks import ALL_DISKS_GO
from sparklog.broker.partition.append_results import Refused
from sparklog.broker.partition.leader_append import AWAITS_HISTORY, LeaderAppend
from sparklog.broker.remote_log.copying import history_questions
from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.remote_log.lineage import Lineage
from sparklog.core.replication.epoch_fence import check_leader_epoch
from sparklog.core.replication.epoch_history import EarlierHistory, EpochHistory
from sparklog.core.replication.leader import Beginning, Leader
from sparklog.model.errors import ErrorCode


def _shorter_logs_cut_the_history(switch: Switch) -> None:
    """A leader whose log ends before its history takes it for the log of a lost election."""

    def may_be_cut_by(original: Any) -> Any:
        def mutated(self: Lineage, own: EpochHistory, log_end_offset: int, given_up: int = -1) -> bool:
            return True

        return mutated

    switch.method(Lineage, "may_be_cut_by", may_be_cut_by)


def _appends_before_the_answer(switch: Switch) -> None:
    """A leader that has not compared its log with its history takes records."""

    def leader_in(original: Any) -> Any:
        def mutated(self: LeaderAppend, leader_epoch: int | None) -> Leader | Refused:
            found: Leader | Refused = original(self, leader_epoch)
            waits = isinstance(found, Refused) and found.message == AWAITS_HISTORY
            leader = self._replica.leader
            return leader if waits and leader is not None else found

        return mutated

    switch.method(LeaderAppend, "_leader_in", leader_in)


def _fetches_before_the_answer(switch: Switch) -> None:
    """A leader that has not compared its log with its history serves it to followers and consumers."""

    def check_epoch(original: Any) -> Any:
        def mutated(self: Leader, current_leader_epoch: int) -> ErrorCode:
            return check_leader_epoch(current_leader_epoch, self.leader_epoch)

        return mutated

    switch.method(Leader, "check_epoch", check_epoch)


def _begins_anew(switch: Switch, change: Callable[[Beginning], Beginning]) -> None:
    def begin_anew(original: Any) -> Any:
        def mutated(*facts: Any) -> Beginning:
            return change(original(*facts))

        return mutated

    switch.method(history_questions, "begin_anew", begin_anew)


def _without_epochs(switch: Switch) -> None:
    _begins_anew(switch, lambda one: replace(one, history=EarlierHistory(one.history.log_start_offset)))


def _without_producers(switch: Switch) -> None:
    _begins_anew(switch, lambda one: replace(one, producers=ProducerStates()))


NO_DISK_LEFT: Final = Hunt(plot=ALL_DISKS_GO, tier=1.0)

HISTORIES: Final[tuple[Mutant, ...]] = (
    Mutant(
        "shorter-logs-cut-the-history",
        "B85",
        "what the store has is lost after the disks",
        20,
        _shorter_logs_cut_the_history,
        NO_DISK_LEFT,
        is_quick=True,
        brings_back=("B85",),
    ),
    Mutant(
        "appends-before-the-answer",
        "B85, half of its fix",
        "acknowledged records are given up where the log begins anew, or the history is cut",
        40,
        _appends_before_the_answer,
        NO_DISK_LEFT,
        brings_back=("B85",),
    ),
    Mutant(
        "fetches-before-the-answer",
        "B85, half of its fix",
        "followers are cut, and consumers sent back, by a log that begins anew a moment later",
        40,
        _fetches_before_the_answer,
        NO_DISK_LEFT,
        brings_back=("B85",),
    ),
    Mutant(
        "begins-anew-without-epochs",
        "KIP-405: epochs below the local start",
        "followers and readers cannot tell whose the history is",
        40,
        _without_epochs,
        NO_DISK_LEFT,
    ),
    Mutant(
        "begins-anew-without-producers",
        "KIP-405: producer snapshots below the local start",
        "a batch that the store has is written a second time",
        60,
        _without_producers,
        NO_DISK_LEFT,
    ),
)
