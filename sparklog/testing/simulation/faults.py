"""What goes wrong, as an explicit list drawn from the seed: each fault stands alone and can be left out.

A fault begins at a time, strikes a target, and ends by itself. The list is what a failing run is shrunk by,
so nothing else in a run may depend on how many faults there are.

Destructive faults keep to what replication promises (the *fault atlas*): a power cut strikes only where
min.insync.replicas is 2, one replica at a time, and never the last of an ISR; the next one waits until the
replica is counted again. Where the atlas forbids it, the machine only loses its process.
"""

import random
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal[
    "kill broker",
    "kill broker in a write",
    "cut the power",
    "pause broker",
    "kill controller",
    "pause controller",
    "cut link",
    "cut one way",
    "isolate broker",
    "cut from controllers",
    "lose frames",
    "delay frames",
    "cut zookeeper",
    "expire session",
    "lose zookeeper answers",
    "delay watches",
    "jump clock",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """``amount`` means what the kind makes of it: a probability, milliseconds, a number of writes."""

    number: int
    at_ms: int
    kind: Kind
    target: str
    other: str
    duration_ms: int
    amount: float

    def __str__(self) -> str:
        other = f" and {self.other}" if self.other else ""
        where = f"{self.target}{other}"
        return f"at {self.at_ms} ms for {self.duration_ms} ms: {self.kind} ({where}, {self.amount:g})"


DRAMAS: Final = 0.15
"""Share of the seeds whose faults follow a plot."""

BROKER_KINDS: Final[tuple[Kind, ...]] = (
    "kill broker",
    "kill broker in a write",
    "cut the power",
    "pause broker",
    "isolate broker",
    "cut from controllers",
)
CONTROLLER_KINDS: Final[tuple[Kind, ...]] = ("kill controller", "pause controller")
LINK_KINDS: Final[tuple[Kind, ...]] = ("cut link", "cut one way", "lose frames", "delay frames")
ZOOKEEPER_KINDS: Final[tuple[Kind, ...]] = (
    "cut zookeeper",
    "expire session",
    "lose zookeeper answers",
    "delay watches",
)
ALL_KINDS: Final[tuple[Kind, ...]] = (
    *BROKER_KINDS,
    *CONTROLLER_KINDS,
    *LINK_KINDS,
    *ZOOKEEPER_KINDS,
    "jump clock",
)


def draw_faults(
    draw: random.Random, *, begin_ms: int, end_ms: int, brokers: tuple[str, ...], controllers: tuple[str, ...]
) -> list[Fault]:
    """A swarm: some kinds only, at some rate, between ``begin_ms`` and ``end_ms``; or a drama."""
    if draw.random() < DRAMAS:
        return _draw_drama(draw, begin_ms, end_ms, brokers)
    kinds = [kind for kind in ALL_KINDS if draw.random() < 0.5] or list(ALL_KINDS)
    pause_ms = draw.choice((150.0, 300.0, 600.0, 1_200.0))
    faults: list[Fault] = []
    at_ms = begin_ms + draw.expovariate(1 / pause_ms)
    while at_ms < end_ms:
        faults.append(_draw_fault(draw, len(faults), int(at_ms), draw.choice(kinds), brokers, controllers))
        at_ms += draw.expovariate(1 / pause_ms)
    return faults


def _draw_drama(draw: random.Random, begin_ms: int, end_ms: int, brokers: tuple[str, ...]) -> list[Fault]:
    """A follower that is ahead of the next leader hears nothing from the controller, while its leader dies,
    comes back, and leads again: what leader epochs in fetches are for, and what a swarm hardly ever plays."""
    faults: list[Fault] = []

    def add(at_ms: float, kind: Kind, target: str, other: str, duration_ms: float, amount: float) -> None:
        faults.append(Fault(len(faults), int(at_ms), kind, target, other, int(duration_ms), amount))

    at_ms = float(begin_ms)
    while at_ms < end_ms:
        leader, successor, follower = draw.sample(brokers, 3)
        add(at_ms, "delay frames", leader, successor, 700, 200.0)
        add(at_ms + draw.uniform(0, 300), "cut from controllers", follower, "", 4_500, 0.0)
        add(at_ms + draw.uniform(400, 600), "kill broker", leader, "", draw.uniform(50, 300), 1.0)
        add(at_ms + draw.uniform(1_500, 3_000), "kill broker", successor, "", draw.uniform(100, 2_000), 1.0)
        at_ms += 5_500
    return faults


def _draw_fault(
    draw: random.Random,
    number: int,
    at_ms: int,
    kind: Kind,
    brokers: tuple[str, ...],
    controllers: tuple[str, ...],
) -> Fault:
    target, other = draw.choice(brokers), ""
    if kind in CONTROLLER_KINDS:
        target = draw.choice(controllers)
    elif kind in LINK_KINDS:
        target, other = draw.sample((*brokers, *controllers), 2)
    elif kind in ZOOKEEPER_KINDS:
        target = draw.choice((*brokers, *controllers))
    mean_ms = 2_500 if kind == "cut from controllers" else 900
    duration_ms = int(min(draw.expovariate(1 / mean_ms), 6_000)) + 20
    return Fault(number, at_ms, kind, target, other, duration_ms, _amount(draw, kind))


def _amount(draw: random.Random, kind: Kind) -> float:
    match kind:
        case "kill broker" | "kill controller":
            return float(draw.random() < 0.7)
        case "kill broker in a write":
            return float(draw.randint(1, 30))
        case "lose frames":
            return draw.choice((0.05, 0.2, 0.5))
        case "delay frames":
            return draw.choice((20.0, 100.0, 1_500.0))
        case "lose zookeeper answers":
            return draw.choice((0.1, 0.4))
        case "delay watches":
            return draw.choice((100.0, 1_000.0))
        case "jump clock":
            return float(draw.choice((-3_600_000, -5_000, 5_000, 3_600_000)))
        case _:
            return 0.0
