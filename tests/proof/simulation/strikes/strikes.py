"""Strikes a cluster with the faults of its plan, and mends it at the end; other modules have the kinds."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from simulation.cluster import Cluster
from simulation.plans.faults import Fault, Kind
from simulation.schedule import US_PER_MS
from simulation.strikes.atlas import Atlas
from simulation.strikes.disks import DiskStrikes
from simulation.strikes.downtime import Downtime
from simulation.strikes.links import LinkStrikes
from simulation.strikes.programs import ProgramStrikes
from simulation.strikes.roles import Roles
from simulation.strikes.stores import StoreStrikes
from simulation.strikes.zombies import Zombies
from simulation.strikes.zookeeper import ZooKeeperStrikes

LOOK_AGAIN_MS: Final = 500
"""How often, once all is mended, an operator looks for directories that are offline."""


class Strikes:
    """Strikes a cluster with the faults of its plan, until it is calm."""

    def __init__(self, cluster: Cluster) -> None:
        self.struck: Counter[str] = Counter()
        self._cluster = cluster
        self._downtime = Downtime(cluster)
        self.atlas = atlas = Atlas(
            cluster.plan,
            cluster.witness,
            cluster.world.ensemble.tree,
            cluster.administrator,
            cluster.machines,
        )
        self._roles = Roles(cluster)
        self._disks = DiskStrikes(cluster, self._downtime, atlas)
        self._zombies = Zombies(cluster, self._downtime, atlas)
        self._by_kind: dict[Kind, Callable[[Fault], None]] = {
            **ProgramStrikes(cluster, self._downtime).by_kind,
            **LinkStrikes(cluster, self._downtime).by_kind,
            **ZooKeeperStrikes(cluster, self._downtime).by_kind,
            **StoreStrikes(cluster, self._downtime).by_kind,
            **self._disks.by_kind,
            **self._zombies.by_kind,
        }
        cluster.world.network.reach = cluster.world.ensemble.reach = cluster.witness.marks.reach
        cluster.world.network.story = cluster.story.tell
        cluster.before_launch = self._disks.settle_doomed

    def schedule_all(self) -> None:
        schedule = self._cluster.schedule
        for fault in self._cluster.plan.faults:
            schedule.at(fault.at_ms * US_PER_MS, None, partial(self._strike, fault))

    def mend(self) -> None:
        """Nothing goes wrong any more, and every program runs."""
        self._disks.mend()
        self._zombies.mend()
        for host, seat in self._cluster.seats.items():
            seat.down = 0
            self._restart_with_all_directories(host)
            self._cluster.launch(host)
        self._look_again_later()

    def _look_again_later(self) -> None:
        """What the device failed may be told after all was mended: a second process met the error, and the
        one that serves hears of it when it syncs next."""
        self._cluster.schedule.after(LOOK_AGAIN_MS * US_PER_MS, None, self._look_again)

    def _look_again(self) -> None:
        for host, machine in self._cluster.machines.items():
            if machine.disk.failed:
                self._restart_with_all_directories(host)
                self._cluster.launch(host)
        self._look_again_later()

    def _restart_with_all_directories(self, host: str) -> None:
        """A directory that failed is out until its broker starts again: an operator does that."""
        broker = self._cluster.brokers.get(host)
        if broker is not None and broker.body is not None and broker.body.context.log_dirs.offline:
            self._cluster.witness.marks.reach("a log directory failed, and its broker served on")
            self._cluster.kill(host, is_reported=True)

    def end(self) -> None:
        """The run is over, wherever: whoever tidies up waits for nothing."""
        self._disks.mend()
        self._zombies.end()

    @property
    def unrest(self) -> str | None:
        """What faults have left that must be gone before there is rest."""
        zombies = self._zombies.alive()
        return f"{zombies[0]} does not know that it was replaced" if zombies else None

    def _strike(self, fault: Fault) -> None:
        if self._cluster.is_calm:
            return
        target, other = self._roles.find(fault.target), self._roles.find(fault.other)
        if target is None or other is None:
            return
        fault = replace(fault, target=target, other=other)
        self._cluster.story.tell("FAULT", str(fault))
        self.struck[fault.kind] += 1
        self._by_kind[fault.kind](fault)
