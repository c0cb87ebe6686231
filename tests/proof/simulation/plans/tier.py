"""Which seeds have a remote store, and what is wrong with it when.

Stores have dice of their own: a seed without one is the run that it would be if there were none.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from simulation.plans.faults import STORE, STORE_KINDS, Fault
from simulation.plans.operations import Operation
from simulation.plans.swarm import amount_of, in_time
from simulation.schedule import dice

WITH_TIER: Final = 0.12
"""Share of the seeds whose main topic has a remote store, unless it is compacted."""

URL: Final = "file:///history"

RAW: Final = 0.2
"""Share of the topics with a store whose segments are there as they are, without a file for people."""

TROUBLED: Final = 0.7
"""Share of these seeds in which something is wrong with the store."""

TROUBLES_MAX: Final = 4
MEAN_MS: Final = 900
LONGEST_MS: Final = 4_000

STORE_GIVEN_UP: Final = 0.8
"""Share of the seeds whose store is away when brokers return without disks: there an operator gives it up."""


@dataclass(frozen=True, slots=True)
class TierPlan:
    """``delay_ms``: of a call, there and back. ``tail_max``: segments in a head. ``run_bytes``: what a reader
    takes of the store at a time. ``grace_ms``: how long garbage stays.
    """

    delay_ms: tuple[float, float]
    tail_max: int
    run_bytes: int
    grace_ms: int


def draw_tier(seed: int, *, share: float = WITH_TIER) -> TierPlan | None:
    draw = dice(seed, "tier")
    if draw.random() >= share:
        return None
    low = draw.choice((0.2, 2.0, 10.0))
    return TierPlan(
        delay_ms=(low, low * draw.choice((1.5, 5.0))),
        tail_max=draw.choice((2, 4, 32)),
        run_bytes=draw.choice((300, 2_000, 4_194_304)),
        grace_ms=draw.choice((2_000, 4_000)),
    )


def settings_for_tier(seed: int, delay_ms: tuple[float, float]) -> dict[str, str]:
    """``delay_ms`` of frames. A round asks ZooKeeper some ten times, and a simulated broker stands still
    meanwhile, as no real one does: where ZooKeeper is slow, rounds are rare.
    """
    draw = dice(seed, "tier settings")
    interval_ms = max(draw.choice((50, 300)), round(30 * delay_ms[1]))
    return {
        "remote.log.storage.url": URL,
        "remote.log.manager.task.interval.ms": str(interval_ms),
        "remote.fetch.max.wait.ms": draw.choice(("20", "100", "500")),
        # Less would not keep what comes after a fetch is over, and a slow store would never be read.
        "remote.log.reader.cache.bytes": draw.choice(("20000", "1000000")),
        "remote.log.reader.max.pending.tasks": draw.choice(("2", "100")),
    }


def with_tier(seed: int, topic_configs: Mapping[str, str]) -> dict[str, str]:
    """The settings of a topic whose disks keep a few segments, and whose history may have an end as well."""
    draw = dice(seed, "tier of the topic")
    configs = {"segment.bytes": "500", **topic_configs, "remote.storage.enable": "true"}
    if "retention.bytes" in configs:
        configs["retention.bytes"] = draw.choice(("1500", "4000"))
    configs["local.retention.bytes"] = draw.choice(("1", "600", "1200"))
    if dice(seed, "layout of the tier").random() < RAW:
        configs["remote.log.layout"] = "raw"
    return configs


def tiered_side_topic(seed: int) -> dict[str, str]:
    """The settings of a topic that comes and goes: in half of the seeds it has the store, too."""
    return with_tier(seed, {}) if dice(seed, "tier of the side").random() < 0.5 else {}


def tiered_typed_topic(seed: int) -> dict[str, str]:
    """The settings of the topic with columns: in half of the seeds it has the store, too."""
    return with_tier(seed, {}) if dice(seed, "tier of the columns").random() < 0.5 else {}


def add_store_troubles(seed: int, faults: list[Fault], *, begin_ms: int, end_ms: int) -> list[Fault]:
    """The faults of a seed with a store by time, mostly with some of the store's among them.

    None rots what is derived: what a log remembers of before its disk begins is in no batch on that disk, and
    is not read from the store yet.
    """
    faults = [fault for fault in faults if fault.kind != "rot what derives"]
    draw = dice(seed, "troubles of the store")
    if draw.random() >= TROUBLED:
        return faults
    first = 1 + max((fault.number for fault in faults), default=-1)
    numbers = range(first, first + draw.randint(1, TROUBLES_MAX))
    troubles = [in_time(_draw_trouble(draw, number, begin_ms, end_ms), end_ms) for number in numbers]
    return sorted((*faults, *troubles), key=lambda fault: fault.at_ms)


def _draw_trouble(draw: random.Random, number: int, begin_ms: int, end_ms: int) -> Fault:
    kind, at_ms = draw.choice(STORE_KINDS), draw.randrange(begin_ms, end_ms)
    duration_ms = int(min(draw.expovariate(1 / MEAN_MS), LONGEST_MS)) + 20
    return Fault(number, at_ms, kind, STORE, "", duration_ms, amount_of(draw, kind))


def give_up_store(
    draw: random.Random, operations: tuple[Operation, ...], faults: Sequence[Fault]
) -> tuple[Operation, ...]:
    """The operations of a seed; where the store is away after disks went, mostly with an operator among them
    that waits no longer, and demands elections without the store.
    """
    emptied_ms = min((fault.at_ms for fault in faults if fault.kind == "empty a disk"), default=None)
    away = [fault for fault in faults if fault.kind == "lose the store"]
    away = [fault for fault in away if emptied_ms is not None and fault.at_ms >= emptied_ms]
    if not away or draw.random() >= STORE_GIVEN_UP:
        return operations
    first = 1 + max((one.number for one in operations), default=-1)
    added = (
        Operation(first + nth, fault.at_ms + draw.randrange(fault.duration_ms), "elect without store", 0.0)
        for nth, fault in enumerate(away)
    )
    return tuple(sorted((*operations, *added), key=lambda operation: operation.at_ms))
