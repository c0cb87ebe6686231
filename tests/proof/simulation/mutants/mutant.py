"""A bug that can be switched on for the length of one run.

A mutant replaces methods of the shipped classes; shipped code has no switches for it. Each names where the
bug was known and what it damages, and within how many seeds it must be caught.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from simulation.machines.zookeeper import Ensemble
from simulation.plans.faults import Hunt


@dataclass(slots=True)
class Switch:
    """What a mutant may change; ``undo`` puts everything back."""

    ensemble: Ensemble
    _undo: list[Callable[[], None]]

    def method(self, owner: type | ModuleType, name: str, make: Callable[[Any], Any]) -> None:
        """Put ``make(original)`` in the place of a method, or of a module's function."""
        self.instead(owner, name, make(getattr(owner, name)))

    def instead(self, owner: type | ModuleType, name: str, other: Any) -> None:
        """Put ``other`` in the place of a method, property or function that it has no use for."""
        original, is_own = inspect.getattr_static(owner, name), name in vars(owner)
        setattr(owner, name, other)
        self._undo.append(lambda: setattr(owner, name, original) if is_own else delattr(owner, name))

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug. ``seeds_max`` is the budget within which it must be caught, from seed 1 on.

    With ``hunt`` its seeds have plans that are made for it: it would take hundreds of others to meet it.
    """

    name: str
    origin: str
    damage: str
    seeds_max: int
    switch_on: Callable[[Switch], None]
    hunt: Hunt | None = None
    is_quick: bool = False
    """Whether it is caught so soon that every run of the test suite may catch it."""
    brings_back: tuple[str, ...] = ()
    """Numbers of bugs, as ``python -m proof_index`` prints them."""


@contextmanager
def applied(mutant: Mutant | None, ensemble: Ensemble) -> Iterator[None]:
    """The shipped code with this bug in it, until the end of the block."""
    switch = Switch(ensemble, [])
    try:
        if mutant is not None:
            mutant.switch_on(switch)
        yield
    finally:
        switch.undo()
