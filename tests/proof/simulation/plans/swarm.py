"""Draws the faults of a seed: a swarm of some kinds, or one of the plots."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from simulation.plans.faults import (
    CONTROLLER_KINDS,
    LINK_KINDS,
    NO_HUNT,
    STORE,
    STORE_KINDS,
    SWARM_KINDS,
    ZOOKEEPER_KINDS,
    Fault,
    Hunt,
    Kind,
)
from simulation.plans.plots.control import PLOTS_OF_CONTROL
from simulation.plans.plots.coordinators import PLOTS_OF_COORDINATORS
from simulation.plans.plots.lost_disks import ALL_DISKS_GO, ISR_LOSES_ITS_DISKS, PLOTS_OF_LOST_DISKS
from simulation.plans.plots.plot import PLOTS, Script
from simulation.plans.plots.replication import PLOTS_OF_REPLICATION
from simulation.plans.plots.tier import PLOTS_OF_TIER
from simulation.plans.plots.troubles import TROUBLES

STORE_AMOUNTS: Final[Mapping[Kind, tuple[float, ...]]] = {
    "slow the store": (20.0, 100.0, 400.0),
    "fail calls of the store": (0.1, 0.3, 0.6),
    "list the store late": (300.0, 2_000.0),
}

LAST_MS: Final = 300
"""How long after the others have begun the last fault may still be there."""

DRAWN_PLOTS: Final = {**PLOTS, **PLOTS_OF_REPLICATION, **PLOTS_OF_CONTROL, **TROUBLES}
assert len(DRAWN_PLOTS) == len(PLOTS) + len(PLOTS_OF_REPLICATION) + len(PLOTS_OF_CONTROL) + len(TROUBLES)
HUNTED_PLOTS: Final = {**PLOTS_OF_COORDINATORS, **PLOTS_OF_TIER, **PLOTS_OF_LOST_DISKS}
assert len(HUNTED_PLOTS) == len(PLOTS_OF_COORDINATORS) + len(PLOTS_OF_TIER) + len(PLOTS_OF_LOST_DISKS)
ALL_PLOTS: Final = {**DRAWN_PLOTS, **HUNTED_PLOTS}
assert len(ALL_PLOTS) == len(DRAWN_PLOTS) + len(HUNTED_PLOTS)

BLACKOUTS: Final = 3
DRAWN: Final = (*DRAWN_PLOTS, *[BLACKOUTS] * 4)
"""What seeds without a hunt choose from: nothing but blackouts leaves some situations behind."""

PAUSES: Final = ("pause broker", "pause controller", "cut zookeeper", "replace broker")
AROUND_A_SESSION: Final = (0.5, 1.0, 3.0)
"""How long half of these faults last, in session time-outs."""

LONG: Final = ("cut from controllers", "flip bits")

DRAMAS: Final = 0.15
"""Share of the seeds whose faults follow a plot."""

FLIPPED: Final = 0.15
"""Share of the seeds in which bits flip, whatever else goes wrong there."""
FLIPS_MAX: Final = 3

BLACKED_OUT: Final = 0.5
"""Share of the seeds with ``log.flush.acks=fsync`` in which the power of all machines is cut as well."""
BLACKOUTS_MAX: Final = 2

ISR_WITHOUT_DISKS: Final = 0.08
"""Share of the seeds in which all that is in an ISR loses its disk."""

NO_DISK_LEFT: Final = 0.025
NO_DISK_LEFT_WITH_STORE: Final = 0.25
"""Shares of the seeds without and with a store in which all disks go: about as many seeds of each."""

STORE_AWAY: Final = 0.4
"""Share of these in which the store is away when brokers return."""


def draw_faults(
    draw: random.Random,
    *,
    begin_ms: int,
    end_ms: int,
    brokers: tuple[str, ...],
    controllers: tuple[str, ...],
    session_timeout_ms: int = 2_000,
    hunt: Hunt = NO_HUNT,
) -> list[Fault]:
    """A swarm: some kinds only, at some rate, between ``begin_ms`` and ``end_ms``; or a plot."""
    if hunt.plot or (not hunt.kinds and draw.random() < DRAMAS):
        number = hunt.plot or draw.choice(DRAWN)
        script = Script(draw, begin_ms, end_ms, brokers, controllers)
        ALL_PLOTS[number](script)
        return script.faults
    share = draw.choice((0.15, 0.5))  # few kinds meet each other more often
    kinds = [kind for kind in SWARM_KINDS if draw.random() < share] or list(SWARM_KINDS)
    kinds = list(hunt.kinds) or kinds
    pause_ms = draw.choice((150.0, 300.0, 600.0, 1_200.0))
    faults: list[Fault] = []
    at_ms = begin_ms + draw.expovariate(1 / pause_ms)
    while at_ms < end_ms:
        fault = _draw_fault(draw, len(faults), int(at_ms), draw.choice(kinds), brokers, controllers)
        if fault.kind in PAUSES and draw.random() < 0.5:
            around_ms = int(draw.choice(AROUND_A_SESSION) * session_timeout_ms)
            fault = replace(fault, duration_ms=around_ms)
        faults.append(in_time(fault, end_ms))
        at_ms += draw.expovariate(1 / pause_ms)
    return faults


def add_flips(
    draw: random.Random, faults: list[Fault], *, begin_ms: int, end_ms: int, brokers: tuple[str, ...]
) -> list[Fault]:
    """The faults of a seed, in some seeds with flips among them. ``draw`` serves nothing else, so that the
    others are what they would be without."""
    if draw.random() >= FLIPPED:
        return faults
    flips = [
        _draw_fault(draw, number, draw.randrange(begin_ms, end_ms), "flip bits", brokers, ())
        for number in range(len(faults), len(faults) + draw.randint(1, FLIPS_MAX))
    ]
    return sorted((*faults, *(in_time(flip, end_ms) for flip in flips)), key=lambda fault: fault.at_ms)


def add_blackouts(
    draw: random.Random, faults: list[Fault], *, begin_ms: int, end_ms: int, brokers: tuple[str, ...]
) -> list[Fault]:
    """The faults of a seed in which nothing that is committed may go with the power of all machines; in some
    of these it goes, by dice of its own."""
    if draw.random() >= BLACKED_OUT:
        return faults
    cuts = [
        _draw_fault(draw, number, draw.randrange(begin_ms, end_ms), "cut all power", brokers, ())
        for number in range(len(faults), len(faults) + draw.randint(1, BLACKOUTS_MAX))
    ]
    return sorted((*faults, *(in_time(cut, end_ms) for cut in cuts)), key=lambda fault: fault.at_ms)


def add_lost_disks(
    draw: random.Random,
    faults: list[Fault],
    *,
    begin_ms: int,
    end_ms: int,
    brokers: tuple[str, ...],
    has_store: bool,
) -> list[Fault]:
    """The faults of a seed; in some seeds a whole ISR loses its disks once, in others all brokers do."""
    all_go = NO_DISK_LEFT_WITH_STORE if has_store else NO_DISK_LEFT
    chance = draw.random()
    if chance >= ISR_WITHOUT_DISKS + all_go:
        return faults
    at_ms = draw.randrange(begin_ms, (begin_ms + end_ms) // 2)
    plot = ALL_PLOTS[ISR_LOSES_ITS_DISKS if chance < ISR_WITHOUT_DISKS else ALL_DISKS_GO]
    script = Script(draw, at_ms, end_ms, brokers, ())
    plot(script)
    once = script.faults[: len(brokers)]
    if has_store and draw.random() < STORE_AWAY:
        away_ms = max(fault.at_ms for fault in once) + draw.randrange(300)
        once.append(Fault(len(once), away_ms, "lose the store", STORE, "", draw.randint(200, 2_500), 0.0))
    first = 1 + max((fault.number for fault in faults), default=-1)
    added = (replace(in_time(fault, end_ms), number=first + fault.number) for fault in once)
    return sorted((*faults, *added), key=lambda fault: fault.at_ms)


def in_time(fault: Fault, end_ms: int) -> Fault:
    """The fault, over soon after the others have begun."""
    return replace(fault, duration_ms=min(fault.duration_ms, end_ms + LAST_MS - fault.at_ms))


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
    elif kind in STORE_KINDS:
        target = STORE
    mean_ms = 2_500 if kind in LONG else 900
    duration_ms = int(min(draw.expovariate(1 / mean_ms), 6_000)) + 20
    return Fault(number, at_ms, kind, target, other, duration_ms, amount_of(draw, kind))


def amount_of(draw: random.Random, kind: Kind) -> float:
    """How much of it; 0 for a kind that has no more and less."""
    match kind:
        case "kill broker" | "kill controller":
            return float(draw.random() < 0.7)
        case "reboot" | "wipe the disk" | "rot a batch":
            return float(draw.random() < 0.5)
        case "replace broker":
            return float(draw.randrange(3))
        case "launch twice":
            return float(draw.randrange(2))
        case "slow the disk":
            return draw.choice((10.0, 60.0, 400.0))
        case "kill broker in a write" | "fail a write":
            return float(draw.randint(1, 30))
        case "fail an fsync" | "fail a checkpoint":
            return float(draw.randint(1, 4))
        case "lose frames" | "lose answers" | "repeat requests" | "flip bits":
            return draw.choice((0.05, 0.2, 0.5))
        case "delay answers":
            return draw.choice((100.0, 500.0, 1_500.0))
        case "delay frames":
            return draw.choice((20.0, 100.0, 1_500.0))
        case "lose zookeeper answers":
            return draw.choice((0.1, 0.4))
        case "delay watches":
            return draw.choice((100.0, 1_000.0))
        case "drift clock":
            return draw.choice((-0.05, -0.01, 0.01, 0.05))
        case "jump clock":
            return float(draw.choice((-3_600_000, -5_000, 5_000, 3_600_000)))
        case _:
            return draw.choice(STORE_AMOUNTS[kind]) if kind in STORE_AMOUNTS else 0.0
