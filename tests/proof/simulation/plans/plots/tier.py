"""Plots around a remote store: replicas whose disks begin at different offsets, and elections that lose."""

from typing import Final

from simulation.plans.faults import STORE
from simulation.plans.plots.plot import Plot, Script


def _history_that_is_cut_twice(script: Script) -> None:
    """A replica is away while the others go on, and give up on their disks what the store has. They die, it
    leads at a loss, and cuts the history; then it dies, and one of them leads at a loss: what it had given up
    is nowhere. It is what passing over a hole in a history, and asking where a leader's disk begins, are for.
    (Somebody must allow unclean elections.)"""
    draw, at_ms = script.draw, float(script.begin_ms)
    early, late, third = draw.sample(script.brokers, 3)
    while at_ms < script.end_ms:
        away_ms, leads_ms = draw.uniform(900, 2_000), draw.uniform(700, 1_800)
        apart_ms = at_ms + away_ms - draw.uniform(20, 80)
        gone_ms = apart_ms + leads_ms
        script.add(at_ms, "kill broker", early, "", away_ms, 1.0)
        for broker in (late, third):
            script.add(apart_ms, "kill broker", broker, "", leads_ms + draw.uniform(100, 400), 1.0)
        script.add(gone_ms, "kill broker", early, "", draw.uniform(400, 1_500), 1.0)
        script.add(gone_ms + 80, "lose the store", STORE, "", draw.uniform(100, 1_500), 0.0)
        at_ms = gone_ms + draw.uniform(1_500, 2_500)


PLOTS_OF_TIER: Final[dict[int, Plot]] = {91: _history_that_is_cut_twice}
"""Played by hunts only, because few seeds have a store."""
