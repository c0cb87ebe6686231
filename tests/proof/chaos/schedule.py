"""Which fault comes when: drawn from the run's seed, and without an end, as the clock ends a run.

Kinds are dealt like cards: all of them, each as often as it weighs, come before any comes again; so a short
run too has met many. Some turns are two faults at once, the second striking while the first lasts. Before
that a run may have kinds come in a given order, each until it has struck.
"""

import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

PAIRS = 0.15
"""Share of turns with two faults."""

CALM_S = (0.5, 3.0)
"""Between the end of one fault, with everything whole again, and the next."""

CALM_IN_ORDER_S = (0.3, 1.0)
"""The same where kinds come in order, which is for short runs."""

TRIES = 3
"""How often a kind that is to come in order may miss its aim."""


@dataclass(frozen=True)
class Turn:
    """One window: its kinds, a seed for everything that they draw, and the calm before it."""

    number: int
    kinds: tuple[str, ...]
    seed: int
    calm_s: float

    @property
    def name(self) -> str:
        return " + ".join(self.kinds)


def in_order(seed: int, kinds: Sequence[str], struck: Container[str]) -> Iterator[Turn]:
    """Each of these kinds in its turn; those that are not in ``struck`` after that come again."""
    rng = Random(f"chaos/{seed}/in order")
    numbers = itertools.count(1)
    for _ in range(TRIES):
        for kind in kinds:
            if kind not in struck:
                yield Turn(next(numbers), (kind,), rng.getrandbits(64), rng.uniform(*CALM_IN_ORDER_S))


def turns(
    seed: int,
    weights: Mapping[str, int],
    pairs: float = PAIRS,
    after: int = 0,
    alone: Container[str] = frozenset(),
) -> Iterator[Turn]:
    """The run's faults, one after the other, when ``after`` many have been; those that are to be ``alone``
    are of no pair. The same seed and kinds give the same turns.
    """
    if not weights:
        raise ValueError("no kind of fault is left to run")
    rng = Random(f"chaos/{seed}")
    number = after
    while True:
        deck = [kind for kind in sorted(weights) for _ in range(weights[kind])]
        rng.shuffle(deck)
        while deck:
            kinds = [deck.pop()]
            others = [kind for kind in sorted(set(deck) - set(kinds)) if kind not in alone]
            if others and kinds[0] not in alone and rng.random() < pairs:
                second = rng.choice(others)
                deck.remove(second)
                kinds.append(second)
            number += 1
            yield Turn(number, tuple(kinds), rng.getrandbits(64), rng.uniform(*CALM_S))
