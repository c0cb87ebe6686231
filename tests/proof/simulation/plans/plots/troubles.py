"""Plots of troubles that need company to be met, and of what restarts find: see ``plots``."""

from typing import Final

from simulation.plans.faults import LAST_FOLLOWER, LEADER, Kind
from simulation.plans.plots.plot import Plot, Script

KINDS_OF_STOPS: Final[tuple[Kind, ...]] = ("stop broker", "kill broker")
PRODUCERS: Final = (1, 2, 3)
"""Numbers of those that every run has at most."""


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


def _first_back_after_a_power_cut(script: Script) -> None:
    """Every broker has been stopped cleanly once, and started again. Then all go down at once, and the first
    to be back lost power. It is what taking the mark of a clean stop away is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    for broker in script.brokers:
        script.add(at_ms, "stop broker", broker, "", 30, 0.0)
        at_ms += 250
    at_ms += 900
    while at_ms < script.end_ms:
        _all_down(script, "cut the power", at_ms)
        at_ms += draw.uniform(2_500, 3_500)


def _first_back_with_another_disk(script: Script) -> None:
    """All go down at once, and the first to be back has an empty disk. It is what a directory's id is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        _all_down(script, "wipe the disk", at_ms)
        at_ms += draw.uniform(2_500, 3_500)


def _first_back_with_a_rotten_log(script: Script) -> None:
    """All go down at once, and the first to be back has a bit wrong in its last segment. It is what telling
    damage from a torn tail is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        _all_down(script, "rot a log", at_ms)
        at_ms += draw.uniform(2_500, 3_500)


def _all_down(script: Script, kind: Kind, at_ms: float) -> None:
    """The last of them by this fault, and it is back first, its session over; the others by SIGKILL."""
    draw = script.draw
    first, *others = draw.sample(script.brokers, len(script.brokers))
    back_ms = draw.uniform(60, 200)
    for other in others:
        script.add(at_ms, "kill broker", other, "", back_ms + draw.uniform(700, 1_500), 1.0)
    script.add(at_ms + 1, kind, first, "", back_ms, 0.0)
    script.add(at_ms + 40, "expire session", first, "", 0, 0.0)


def _cut_and_killed_at_once(script: Script) -> None:
    """A leader reaches nobody, writes, and has on disk what it wrote. It dies, comes back, has that cut by
    its successor, and dies again before it has written anything else. It is what lowering checkpoints before
    a cut is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader = draw.choice(script.brokers)
        alone_ms, away_ms = draw.uniform(500, 1_000), draw.uniform(50, 200)
        for other in script.brokers:
            if other != leader:
                script.add(at_ms, "cut link", leader, other, alone_ms + 30, 0.0)
        script.add(at_ms + alone_ms, "kill broker", leader, "", away_ms, 1.0)
        back_ms = at_ms + alone_ms + away_ms
        writes = float(draw.randint(5, 40))
        script.add(back_ms + 1, "kill broker in a write", leader, "", draw.uniform(20, 100), writes)
        at_ms = back_ms + draw.uniform(600, 900)


def _old_words_to_a_new_life(script: Script) -> None:
    """What controllers tell brokers is long on its way. An election is, when a leader loses its disk and is
    back before it has heard of it: so it is told that it leads, and its followers, who hear of the next
    leader as late, go on asking it. It is what broker epochs in the controller's requests are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        for controller in script.controllers:
            for broker in script.brokers:
                script.add(at_ms, "delay frames", controller, broker, 1_200, 250.0)
                script.add(at_ms, "repeat requests", controller, broker, 1_200, 0.9)
        script.add(at_ms + 20, "kill broker", LAST_FOLLOWER, "", draw.uniform(300, 600), 1.0)
        script.add(at_ms + 20 + draw.uniform(100, 450), "wipe the disk", LEADER, "", draw.uniform(2, 20), 0.0)
        at_ms += draw.uniform(1_600, 2_000)


def _answers_that_never_come(script: Script) -> None:
    """Producers are answered late, so that much of what they sent is there and will be sent again; then all
    brokers are killed at once. It is what remembering several batches of each producer is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    for broker in script.brokers:
        for number in PRODUCERS:
            script.add(at_ms, "delay answers", broker, f"producer-{number}", script.end_ms - at_ms, 1_400.0)
    while at_ms < script.end_ms:
        at_ms += draw.uniform(500, 1_200)
        for broker in script.brokers:
            script.add(at_ms, "kill broker", broker, "", draw.uniform(20, 200), 1.0)


def _stopped_with_a_tail(script: Script) -> None:
    """Leader after leader reaches nobody, writes, and stops cleanly or not; what it wrote is cut when it is
    back, and some of them are cut again. It is what removing snapshots before a cut is for. (Somebody must
    demand preferred elections.)"""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, *others = draw.sample(script.brokers, len(script.brokers))
        alone_ms = draw.uniform(150, 500)
        for other in others:
            script.add(at_ms, "cut link", leader, other, alone_ms + 50, 0.0)
        kind = draw.choice(KINDS_OF_STOPS)
        script.add(at_ms + alone_ms, kind, leader, "", draw.uniform(30, 150), 1.0)
        at_ms += alone_ms + draw.uniform(350, 700)


TROUBLES: Final[dict[int, Plot]] = {
    61: _rot_that_a_follower_finds,
    62: _first_back_after_a_power_cut,
    63: _cut_and_killed_at_once,
    64: _old_words_to_a_new_life,
    65: _first_back_with_another_disk,
    66: _answers_that_never_come,
    67: _stopped_with_a_tail,
    68: _first_back_with_a_rotten_log,
}
