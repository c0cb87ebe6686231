"""Trouble between clients and brokers: what a real client spends its retries on.

An answer that is lost, a request that arrives long after its sender gave up, a broker that one client cannot
reach while all others do. The links are those that brokers have, with the same kinds of fault, and drawn by
dice of their own, so that the other faults of a seed are what they would be without.

Only an administrator's requests come twice by themselves (``repeat requests``): whatever else comes twice
over TCP was sent twice by its client, in order, and producers do that here by their own rules.
"""

import random
from collections.abc import Sequence
from typing import Final

from simulation.plans.faults import EVERY_CLIENT, Fault, Kind
from simulation.plans.swarm import amount_of, in_time

TROUBLED: Final = 0.35
"""Share of the seeds that have some."""

TROUBLES_MAX: Final = 4
MEAN_MS: Final = 900
LONGEST_MS: Final = 4_000

KINDS: Final[tuple[Kind, ...]] = (
    "cut link",
    "cut one way",
    "hang connections",
    "lose frames",
    "lose answers",
    "delay frames",
    "delay answers",
)
OF_ADMINISTRATORS: Final[tuple[Kind, ...]] = (*KINDS, "repeat requests")
OF_ANSWERS: Final = ("lose answers", "delay answers")
ADMINISTRATOR: Final = "administrator"


def add_client_troubles(
    draw: random.Random,
    faults: list[Fault],
    *,
    begin_ms: int,
    end_ms: int,
    brokers: tuple[str, ...],
    controllers: tuple[str, ...],
    clients: Sequence[str],
) -> list[Fault]:
    """The faults of a seed by time, in some seeds with trouble on links of ``clients`` among them.

    ``EVERY_CLIENT`` may be one of them. An administrator talks to controllers, too.
    """
    if draw.random() >= TROUBLED:
        return faults
    numbers = range(len(faults), len(faults) + draw.randint(1, TROUBLES_MAX))
    troubles = []
    for number in numbers:
        at_ms, client = draw.randrange(begin_ms, end_ms), draw.choice(clients)
        servers = (*controllers, *brokers) if client == ADMINISTRATOR else brokers
        troubles.append(in_time(_draw_trouble(draw, number, at_ms, client, draw.choice(servers)), end_ms))
    return sorted((*faults, *troubles), key=lambda fault: fault.at_ms)


def _draw_trouble(draw: random.Random, number: int, at_ms: int, client: str, server: str) -> Fault:
    kind = draw.choice(OF_ADMINISTRATORS if client == ADMINISTRATOR else KINDS)
    is_to_client = kind in OF_ANSWERS or (kind != "repeat requests" and draw.random() < 0.5)
    origin, destination = (server, client) if is_to_client else (client, server)
    duration_ms = int(min(draw.expovariate(1 / MEAN_MS), LONGEST_MS)) + 20
    return Fault(number, at_ms, kind, origin, destination, duration_ms, amount_of(draw, kind))


def links_of(fault: Fault, callers: Sequence[str]) -> list[tuple[str, str]]:
    """The links, each one way, that a fault between two names means; ``callers`` are all clients."""
    origins = callers if fault.target == EVERY_CLIENT else (fault.target,)
    destinations = callers if fault.other == EVERY_CLIENT else (fault.other,)
    return [(origin, destination) for origin in origins for destination in destinations]
