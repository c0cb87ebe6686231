"""Jumps of a broker's wall clock, while its monotonic clock goes on."""

from random import Random
from typing import ClassVar, Final

from chaos.faults.signals import pick_leader, told
from chaos.machines.walls import WalledPlaces, probe
from chaos.nemesis import CLOCKS, Cluster, Nemesis

JUMPS_S: Final = (-86_400.0, -3_600.0, -5.0, 5.0, 3_600.0, 86_400.0)


class _OfClock(Nemesis):
    needs: ClassVar = frozenset({CLOCKS})

    def __init__(self, places: WalledPlaces) -> None:
        self._places = places

    def probe(self) -> str | None:
        return probe()

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(1.0, 3.0) * cluster.session_timeout_s

    def end(self) -> None:
        """All clocks are right again: the second jump."""
        for machine in self._places.machines().values():
            machine.controls.set_wall_clock(0.0)


class ClockJump(_OfClock):
    """One broker's clock, there and, at the end, back."""

    kind = "clock-jump"
    weight = 2

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        jump_s = rng.choice(JUMPS_S)
        self._places.machine(broker.id).controls.set_wall_clock(jump_s)
        return f"{jump_s:+g} s at {text}"


class ClocksApart(_OfClock):
    """Every broker's clock jumps to somewhere else."""

    kind = "clocks-apart"

    def begin(self, cluster: Cluster, rng: Random) -> str:
        told_all = []
        for broker_id in cluster.broker_ids():
            jump_s = rng.choice(JUMPS_S)
            self._places.machine(broker_id).controls.set_wall_clock(jump_s)
            told_all.append(f"{jump_s:+g} s at broker {broker_id}")
        return ", ".join(told_all)


def all_of_clocks(places: WalledPlaces) -> list[Nemesis]:
    """Every nemesis of this file."""
    return [ClockJump(places), ClocksApart(places)]
