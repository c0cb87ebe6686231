"""From a run that fails to the shortest list of faults and operations that fails in the same way: ddmin.

They are independent of each other by construction, so any part of the list is a plan of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simulation.mutants import Mutant
from simulation.plans.plan import Plan, Step
from simulation.run import Outcome, simulate


@dataclass(frozen=True, slots=True)
class Shrunk:
    """``plan`` still fails; ``runs`` were needed to find it."""

    plan: Plan
    runs: int


def shrink(failed: Outcome, *, mutant: Mutant | None = None) -> Shrunk:
    """The shortest list of faults and operations, by ddmin, with which the same invariant breaks."""
    assert failed.violation is not None, "a run in which nothing was violated cannot be shrunk"
    invariant = failed.violation.invariant
    runs = 0

    def still_fails(steps: Sequence[Step]) -> bool:
        nonlocal runs
        runs += 1
        outcome = simulate(failed.plan.with_steps(steps), mutant=mutant)
        return outcome.violation is not None and outcome.violation.invariant == invariant

    steps = minimize(list(failed.plan.steps), still_fails)
    return Shrunk(failed.plan.with_steps(steps), runs)


def minimize(items: list[Step], still_fails: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """ddmin: leave out ever smaller parts for as long as what is left still fails."""
    if not items or still_fails([]):
        return []
    parts = 2
    while len(items) >= 2:
        size = max(1, len(items) // parts)
        for begin in range(0, len(items), size):
            rest = items[:begin] + items[begin + size :]
            if still_fails(rest):
                items, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(items), 2 * parts)
    return items
