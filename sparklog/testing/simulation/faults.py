"""What goes wrong, as an explicit list drawn from the seed: each fault stands alone and can be left out.

A fault begins at a time, strikes a target, and ends by itself. The list is what a failing run is shrunk by,
so nothing else in a run may depend on how many faults there are.

Destructive faults keep to what replication promises (the *fault atlas*): a power cut strikes only where
min.insync.replicas is 2, one replica at a time, and never the last of an ISR; the next one waits until the
replica is counted again. Where the atlas forbids it, the machine only loses its process. The same holds for a
log that rots. What an fsync should have saved is lost only while another member of the ISR has it. What can
be made again (indexes, snapshots, checkpoints) rots at any time, and writes fail and disks fill whenever they
like.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

Kind = Literal[
    "kill broker",
    "kill broker in a write",
    "stop broker",
    "cut the power",
    "cut all power",
    "pause broker",
    "fail a write",
    "fail an fsync",
    "fail a checkpoint",
    "fill the disk",
    "rot a log",
    "rot what derives",
    "kill controller",
    "pause controller",
    "cut link",
    "cut one way",
    "isolate broker",
    "cut from controllers",
    "lose frames",
    "lose answers",
    "repeat requests",
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


LAST_MS: Final = 300
"""How long after the others have begun the last fault may still be there."""

PLOTS: Final = 3

DRAMAS: Final = 0.15
"""Share of the seeds whose faults follow a plot."""

BROKER_KINDS: Final[tuple[Kind, ...]] = (
    "kill broker",
    "kill broker in a write",
    "stop broker",
    "cut the power",
    "pause broker",
    "isolate broker",
    "cut from controllers",
)
DISK_KINDS: Final[tuple[Kind, ...]] = (
    "fail a write",
    "fail an fsync",
    "fail a checkpoint",
    "fill the disk",
    "rot a log",
    "rot what derives",
)
CONTROLLER_KINDS: Final[tuple[Kind, ...]] = ("kill controller", "pause controller")
LINK_KINDS: Final[tuple[Kind, ...]] = (
    "cut link",
    "cut one way",
    "lose frames",
    "lose answers",
    "repeat requests",
    "delay frames",
)
ZOOKEEPER_KINDS: Final[tuple[Kind, ...]] = (
    "cut zookeeper",
    "expire session",
    "lose zookeeper answers",
    "delay watches",
)
SWARM_KINDS: Final[tuple[Kind, ...]] = (
    *BROKER_KINDS,
    *DISK_KINDS,
    *CONTROLLER_KINDS,
    *LINK_KINDS,
    *ZOOKEEPER_KINDS,
    "jump clock",
)
ALL_KINDS: Final[tuple[Kind, ...]] = (*SWARM_KINDS, "cut all power")


@dataclass(frozen=True, slots=True)
class Hunt:
    """Where a certain bug shows: a plot by number, or nothing but these kinds; with these settings."""

    kinds: tuple[Kind, ...] = ()
    plot: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    is_compacted: bool = False


NO_HUNT: Final = Hunt()


def draw_faults(
    draw: random.Random,
    *,
    begin_ms: int,
    end_ms: int,
    brokers: tuple[str, ...],
    controllers: tuple[str, ...],
    hunt: Hunt = NO_HUNT,
) -> list[Fault]:
    """A swarm: some kinds only, at some rate, between ``begin_ms`` and ``end_ms``; or a drama."""
    if hunt.plot or (not hunt.kinds and draw.random() < DRAMAS):
        plot = hunt.plot or draw.choice((1, 1, 2, 2, 3, 4, 5))
        if plot > PLOTS:
            return _draw_lateness(draw, plot, begin_ms, end_ms, brokers, controllers)
        return _draw_drama(draw, plot, begin_ms, end_ms, brokers)
    share = draw.choice((0.15, 0.5))  # few kinds meet each other more often
    kinds = [kind for kind in SWARM_KINDS if draw.random() < share] or list(SWARM_KINDS)
    kinds = list(hunt.kinds) or kinds
    pause_ms = draw.choice((150.0, 300.0, 600.0, 1_200.0))
    faults: list[Fault] = []
    at_ms = begin_ms + draw.expovariate(1 / pause_ms)
    while at_ms < end_ms:
        fault = _draw_fault(draw, len(faults), int(at_ms), draw.choice(kinds), brokers, controllers)
        faults.append(replace(fault, duration_ms=min(fault.duration_ms, end_ms + LAST_MS - fault.at_ms)))
        at_ms += draw.expovariate(1 / pause_ms)
    return faults


def _draw_drama(
    draw: random.Random, plot: int, begin_ms: int, end_ms: int, brokers: tuple[str, ...]
) -> list[Fault]:
    """One of the plots that a swarm hardly ever plays.

    The first: a follower that is ahead of the next leader hears nothing from the controller, while its leader
    dies, comes back, and leads again. It is what leader epochs in fetches are for. The second: a replica that
    has just caught up loses its log while the proposal to count it does not get through to the controller.
    It is what broker epochs in proposals are for. The third: the power of all brokers is cut, and what was
    not synced is gone wherever it was; it is what comparing the ends of logs is for.
    """
    faults: list[Fault] = []

    def add(at_ms: float, kind: Kind, target: str, other: str, duration_ms: float, amount: float) -> None:
        faults.append(Fault(len(faults), int(at_ms), kind, target, other, int(duration_ms), amount))

    at_ms = float(begin_ms)
    while at_ms < end_ms:
        leader, successor, follower = draw.sample(brokers, 3)
        if plot == 3:
            at_ms += draw.uniform(300, 1_500)
            add(at_ms - draw.uniform(0, 1_200), "kill broker", follower, "", draw.uniform(500, 3_000), 1.0)
            add(at_ms, "cut all power", leader, "", draw.uniform(100, 1_500), 0.0)
            at_ms += 3_500
            continue
        if plot == 2:
            back_ms = at_ms + draw.choice((300, 800)) + draw.uniform(0, 200)
            cut_ms = back_ms + draw.uniform(400, 700)
            add(at_ms, "kill broker", follower, "", back_ms - at_ms, 1.0)
            for other in (leader, successor):
                add(back_ms - 30, "cut from controllers", other, "", 2_830, 0.0)
            add(cut_ms, "cut the power", follower, "", draw.uniform(20, 100), 0.0)
            add(cut_ms, "cut from controllers", follower, "", back_ms + 4_200 - cut_ms, 0.0)
            at_ms = back_ms + 4_600
            continue
        add(at_ms, "delay frames", leader, successor, 700, 200.0)
        add(at_ms + draw.uniform(0, 300), "cut from controllers", follower, "", 4_500, 0.0)
        add(at_ms + draw.uniform(400, 600), "kill broker", leader, "", draw.uniform(50, 300), 1.0)
        add(at_ms + draw.uniform(1_500, 3_000), "kill broker", successor, "", draw.uniform(100, 2_000), 1.0)
        at_ms += 5_500
    return faults


def _draw_lateness(
    draw: random.Random,
    plot: int,
    begin_ms: int,
    end_ms: int,
    brokers: tuple[str, ...],
    controllers: tuple[str, ...],
) -> list[Fault]:
    """Two more plots: elections follow each other, while what controllers write to ZooKeeper may come late,
    or what they tell brokers may come again."""
    faults: list[Fault] = []

    def add(at_ms: float, kind: Kind, target: str, other: str, duration_ms: float, amount: float) -> None:
        faults.append(Fault(len(faults), int(at_ms), kind, target, other, int(duration_ms), amount))

    for controller in controllers:
        if plot == PLOTS + 1:
            add(begin_ms, "lose zookeeper answers", controller, "", end_ms - begin_ms, 0.3)
        else:
            for broker in brokers:
                add(begin_ms, "repeat requests", controller, broker, end_ms - begin_ms, 0.5)
    at_ms = float(begin_ms)
    while at_ms < end_ms:
        at_ms += draw.uniform(150, 700)
        add(at_ms, "kill broker", draw.choice(brokers), "", draw.uniform(30, 500), 1.0)
        if draw.random() < 0.2:
            add(at_ms + draw.uniform(0, 300), "kill controller", draw.choice(controllers), "", 100, 1.0)
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
        case "kill broker in a write" | "fail a write":
            return float(draw.randint(1, 30))
        case "fail an fsync" | "fail a checkpoint":
            return float(draw.randint(1, 4))
        case "lose frames" | "lose answers" | "repeat requests":
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
