"""A hole of security that can be switched on, and the check of shipped code that must find it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from simulation.machines.zookeeper import Ensemble
from simulation.mutants.mutant import Switch
from simulation.schedule import Schedule


@dataclass(frozen=True, slots=True)
class CheckedMutant:
    """``check`` raises AssertionError while the hole is there, and returns without it."""

    name: str
    origin: str
    damage: str
    switch_on: Callable[[Switch], None]
    check: Callable[[], None]


@contextmanager
def switched_on(mutant: CheckedMutant) -> Iterator[None]:
    """The shipped code with this hole in it, until the end of the block."""
    switch = Switch(Ensemble(Schedule(), 1, (0.1, 0.2), 1_000), [])
    try:
        mutant.switch_on(switch)
        yield
    finally:
        switch.undo()
