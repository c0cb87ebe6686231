"""Bugs around the replicas in sync: by whom a leader commits, who joins, and what the minimum is for."""

from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.core.replication import leader as leader_module
from sparklog.core.replication.actions import Action
from sparklog.core.replication.isr import (
    ExpandingIsr,
    IsrState,
    ShrinkingIsr,
    committed_isr,
    effective_isr,
)
from sparklog.core.replication.leader import Leader
from sparklog.model.ids import BrokerId
from sparklog.model.time import MonotonicMs


def _commits_without_who_joins(switch: Switch) -> None:
    """While a proposal to add a follower is on its way, the leader commits by the ISR without it."""

    def smaller(isr: IsrState) -> frozenset[BrokerId]:
        return committed_isr(isr).members if isinstance(isr, ExpandingIsr) else effective_isr(isr)

    switch.instead(leader_module, "effective_isr", smaller)


def _commits_without_who_leaves(switch: Switch) -> None:
    """While a proposal to remove a follower is on its way, the leader commits by the ISR without it."""

    def smaller(isr: IsrState) -> frozenset[BrokerId]:
        return isr.committed.members - isr.leaving if isinstance(isr, ShrinkingIsr) else effective_isr(isr)

    switch.instead(leader_module, "effective_isr", smaller)


def _joins_at_the_high_watermark(switch: Switch) -> None:
    """A follower joins once it has reached the leader's high watermark, where that is left behind, too."""
    switch.instead(Leader, "_joining_from", property(lambda self: self.marks.high_watermark))


def _minimum_is_not_heeded(switch: Switch) -> None:
    """Leaders take and commit acks=all writes whatever the size of their ISR."""

    def take_over(original: Any) -> Any:
        def mutated(*state: Any, **facts: Any) -> Leader:
            leader: Leader = original(*state, **facts)
            leader.min_isr = 1
            return leader

        return mutated

    switch.method(Leader, "take_over", take_over)


def _commits_below_the_minimum(switch: Switch) -> None:
    """Writes with acks=all are refused below the minimum, others are appended, and committed."""

    def advance(original: Any) -> Any:
        def mutated(self: Leader, *now: Any) -> list[Action]:
            minimum, self.min_isr = self.min_isr, 0
            try:
                actions: list[Action] = original(self, *now)
            finally:
                self.min_isr = minimum
            return actions

        return mutated

    switch.method(Leader, "_advance_high_watermark", advance)


def _shrink_frees_nobody(switch: Switch) -> None:
    """When the ISR has shrunk, nobody looks whether the one who left was all that others waited for; nor does
    the leader look again as time passes."""
    is_tick: list[bool] = []

    def on_isr_changed(self: Leader, now_ms: MonotonicMs) -> list[Action]:
        return self._fail_short_writes()

    def on_tick(original: Any) -> Any:
        def mutated(self: Leader, *now: Any) -> list[Action]:
            is_tick.append(True)
            try:
                actions: list[Action] = original(self, *now)
            finally:
                is_tick.pop()
            return actions

        return mutated

    def advance(original: Any) -> Any:
        def mutated(self: Leader, now_ms: MonotonicMs) -> list[Action]:
            actions: list[Action] = [] if is_tick else original(self, now_ms)
            return actions

        return mutated

    switch.instead(Leader, "_on_isr_changed", on_isr_changed)
    switch.method(Leader, "on_tick", on_tick)
    switch.method(Leader, "_advance_high_watermark", advance)


ISR: Final[tuple[Mutant, ...]] = (
    Mutant(
        "high-watermark-ignores-who-joins",
        "KIP-497 without its maximal ISR",
        "a replica in sync lacks records that were committed during its proposal",
        20,
        _commits_without_who_joins,
        Hunt(plot=25, settings={"replica.lag.time.max.ms": "600"}),
        is_quick=True,
    ),
    Mutant(
        "shrink-before-it-is-confirmed",
        "KIP-497: the ISR changed in memory first",
        "a replica in ZooKeeper's ISR lacks committed records",
        90,
        _commits_without_who_leaves,
    ),
    Mutant(
        "joins-at-the-high-watermark",
        "KAFKA-7128",
        "a replica joins without an earlier leader's committed records",
        20,
        _joins_at_the_high_watermark,
        Hunt(
            plot=26,
            settings={
                "min.insync.replicas": "2",
                "replica.fetch.max.bytes": "100",
                "replica.fetch.wait.max.ms": "500",
            },
        ),
        brings_back=("K6",),
    ),
    Mutant(
        "minimum-is-not-heeded",
        "min.insync.replicas without effect",
        "records that a leader acknowledged alone are lost with it",
        30,
        _minimum_is_not_heeded,
        is_quick=True,
    ),
    Mutant(
        "commits-below-the-minimum",
        "KAFKA-15583, KIP-966",
        "consumers read records that an elected eligible replica lacks",
        30,
        _commits_below_the_minimum,
        brings_back=("K34",),
    ),
    Mutant(
        "shrink-frees-nobody",
        "KAFKA-13091",
        "writes wait for a replica that left the ISR, until they time out",
        50,
        _shrink_frees_nobody,
        Hunt(plot=22, settings={"replica.lag.time.max.ms": "600", "min.insync.replicas": "1"}),
        brings_back=("K21",),
    ),
)
