"""Plots: faults that follow a script, because a swarm would hardly ever play it.

Each is written for one mechanism of replication; a mutant that takes the mechanism away is hunted with it
(``Hunt.plot``), and some seeds without any mutant follow one as well.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from simulation.plans.faults import Fault, Kind


@dataclass(slots=True)
class Script:
    """What a plot is given, and the faults that it writes down."""

    draw: random.Random
    begin_ms: int
    end_ms: int
    brokers: tuple[str, ...]
    controllers: tuple[str, ...]
    faults: list[Fault] = field(default_factory=list)

    def add(
        self, at_ms: float, kind: Kind, target: str, other: str, duration_ms: float, amount: float
    ) -> None:
        self.faults.append(Fault(len(self.faults), int(at_ms), kind, target, other, int(duration_ms), amount))


Plot = Callable[[Script], None]


def _leader_that_comes_back(script: Script) -> None:
    """A follower that is ahead of the next leader hears nothing from the controller, while its leader dies,
    comes back, and leads again. It is what leader epochs in fetches are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, successor, follower = draw.sample(script.brokers, 3)
        script.add(at_ms, "delay frames", leader, successor, 700, 200.0)
        script.add(at_ms + draw.uniform(0, 300), "cut from controllers", follower, "", 4_500, 0.0)
        script.add(at_ms + draw.uniform(400, 600), "kill broker", leader, "", draw.uniform(50, 300), 1.0)
        script.add(
            at_ms + draw.uniform(1_500, 3_000), "kill broker", successor, "", draw.uniform(100, 2_000), 1.0
        )
        at_ms += 5_500


def _log_lost_before_it_is_counted(script: Script) -> None:
    """A replica that has just caught up loses its log while the proposal to count it does not get through to
    the controller. It is what broker epochs in proposals are for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, successor, follower = draw.sample(script.brokers, 3)
        back_ms = at_ms + draw.choice((300, 800)) + draw.uniform(0, 200)
        cut_ms = back_ms + draw.uniform(400, 700)
        script.add(at_ms, "kill broker", follower, "", back_ms - at_ms, 1.0)
        for other in (leader, successor):
            script.add(back_ms - 30, "cut from controllers", other, "", 2_830, 0.0)
        script.add(cut_ms, "cut the power", follower, "", draw.uniform(20, 100), 0.0)
        script.add(cut_ms, "cut from controllers", follower, "", back_ms + 4_200 - cut_ms, 0.0)
        at_ms = back_ms + 4_600


def _blackouts(script: Script) -> None:
    """The power of all brokers is cut, and what was not synced is gone wherever it was. It is what comparing
    the ends of logs is for."""
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        leader, _, follower = draw.sample(script.brokers, 3)
        at_ms += draw.uniform(300, 1_500)
        script.add(at_ms - draw.uniform(0, 1_200), "kill broker", follower, "", draw.uniform(500, 3_000), 1.0)
        script.add(at_ms, "cut all power", leader, "", draw.uniform(100, 1_500), 0.0)
        at_ms += 3_500


def _late_writes_to_zookeeper(script: Script) -> None:
    """Elections follow each other, while what controllers write to ZooKeeper may come late."""
    for controller in script.controllers:
        script.add(
            script.begin_ms, "lose zookeeper answers", controller, "", script.end_ms - script.begin_ms, 0.3
        )
    _elections(script)


def _roles_told_again(script: Script) -> None:
    """Elections follow each other, while what controllers tell brokers may come again."""
    for controller in script.controllers:
        for broker in script.brokers:
            script.add(
                script.begin_ms, "repeat requests", controller, broker, script.end_ms - script.begin_ms, 0.5
            )
    _elections(script)


def _elections(script: Script) -> None:
    draw, at_ms = script.draw, float(script.begin_ms)
    while at_ms < script.end_ms:
        at_ms += draw.uniform(150, 700)
        script.add(at_ms, "kill broker", draw.choice(script.brokers), "", draw.uniform(30, 500), 1.0)
        if draw.random() < 0.2:
            when_ms, controller = at_ms + draw.uniform(0, 300), draw.choice(script.controllers)
            script.add(when_ms, "kill controller", controller, "", 100, 1.0)


PLOTS: Final[dict[int, Plot]] = {
    1: _leader_that_comes_back,
    2: _log_lost_before_it_is_counted,
    3: _blackouts,
    4: _late_writes_to_zookeeper,
    5: _roles_told_again,
}
"""``Hunt.plot`` names one by its number."""
