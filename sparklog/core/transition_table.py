"""Tables of transitions: the states of a machine, and what leads from one to the next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

S = TypeVar("S", bound=Enum)


@dataclass(frozen=True, slots=True)
class Transition(Generic[S]):
    """``cause`` is for people."""

    before: S
    cause: str
    after: S


def states_before(transitions: Iterable[Transition[S]]) -> Mapping[S, frozenset[S]]:
    """The states from which each state is entered. A state that is never entered has no entry."""
    before: dict[S, frozenset[S]] = {}
    for one in transitions:
        before[one.after] = before.get(one.after, frozenset()) | {one.before}
    return before
