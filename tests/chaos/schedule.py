"""Which fault comes when: drawn from the run's seed, and without an end, as the clock ends a run.

Kinds are dealt like cards: all of them, each as often as it weighs, come before any comes again; so a short
run too has met many. Some turns are two faults at once, the second striking while the first lasts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

PAIRS = 0.15
"""Share of turns with two faults."""

CALM_S = (0.5, 3.0)
"""Between the end of one fault, with everything whole again, and the next."""


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


def turns(seed: int, weights: Mapping[str, int], pairs: float = PAIRS) -> Iterator[Turn]:
    """The run's faults, one after the other. The same seed and kinds give the same turns."""
    if not weights:
        raise ValueError("no kind of fault is left to run")
    rng = Random(f"chaos/{seed}")
    number = 0
    while True:
        deck = [kind for kind in sorted(weights) for _ in range(weights[kind])]
        rng.shuffle(deck)
        while deck:
            kinds = [deck.pop()]
            others = sorted(set(deck) - set(kinds))
            if others and rng.random() < pairs:
                second = rng.choice(others)
                deck.remove(second)
                kinds.append(second)
            number += 1
            yield Turn(number, tuple(kinds), rng.getrandbits(64), rng.uniform(*CALM_S))
