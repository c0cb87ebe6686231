"""Plots of troubles that need company to be met: see ``plots``."""

from typing import Final

from sparklog.testing.simulation.plots import Plot, Script


def _rot_that_a_follower_finds(script: Script) -> None:
    """A follower is away while its leader appends; before it is back, what it lacks rots at the leader. It is
    what followers' checksums, and the hand-over of a leader with a damaged log, are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, follower = draw.sample(script.brokers, 2)
        away_ms = draw.uniform(400, 1_500)
        script.add(at_ms, "kill broker", follower, "", away_ms, 1.0)
        script.add(at_ms + draw.uniform(0.3, 1) * away_ms, "rot a batch", leader, "", 0, 1.0)
        script.add(at_ms + away_ms + draw.uniform(1_000, 2_000), "kill broker", leader, "", 100, 1.0)
        at_ms += away_ms + 2_500


TROUBLES: Final[dict[int, Plot]] = {
    41: _rot_that_a_follower_finds,
}
