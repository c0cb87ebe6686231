"""Bugs of elections: who may lead, and when brokers hear of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.state import leader_choice
from sparklog.core.controller.state.candidates import Candidates
from sparklog.core.controller.state.incarnation import Incarnation, LogId
from sparklog.core.controller.state.leader_choice import Rules
from sparklog.core.controller.steps import AddPartitions, CreateTopic, Decision, FinishCreation
from sparklog.model.cluster import PartitionState
from sparklog.model.ids import BrokerId


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


ELECTIONS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "unproven-logs-are-elected",
        "KIP-966",
        "the last ISR member leads without the records that it lost",
        40,
        _unproven_logs_are_elected,
        Hunt(kinds=("cut the power", "kill broker"), settings={"min.insync.replicas": "2"}),
    ),
    Mutant(
        "eligible-while-others-commit",
        "KIP-966",
        "a replica leads without committed records",
        20,
        _eligible_while_others_commit,
        is_quick=True,
    ),
    Mutant(
        "roles-before-elections",
        "bug log B2",
        "a leader that lost its log leads its old epoch again, and followers truncate",
        90,
        _roles_before_elections,
        Hunt(plot=46, settings={"min.insync.replicas": "2"}),
    ),
)
