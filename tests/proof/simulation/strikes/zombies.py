"""Two processes under one broker id: one that was taken for dead, and its replacement.

Spark makes them. An executor that is cut off or stands still is declared lost, and its broker is launched
again while the old process goes on. A replacement on another machine has an empty disk, and the old process
must learn that it was replaced. A replacement on the same machine is kept out by the lock of the directory.

A zombie keeps its address: programs that know this address go on talking to it.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from simulation.cluster import REPORT_MS, Cluster
from simulation.machines.broker import RELAUNCH_MS, Machine, SimulatedBroker
from simulation.plans.faults import Fault, Kind
from simulation.schedule import US_PER_MS, Process
from simulation.strikes.atlas import Atlas
from simulation.strikes.downtime import Downtime
from simulation.truth import ZOMBIES_FROM

REPORT_AGAIN_MS: Final = 500
"""Once nothing goes wrong any more, a supervisor repeats that a broker is lost until it is."""


SECOND_LOOK_US: Final = 200
"""Less than a start takes."""


class Zombies:
    """What becomes of brokers that were replaced while they live."""

    def __init__(self, cluster: Cluster, downtime: Downtime, atlas: Atlas) -> None:
        self._cluster = cluster
        self._downtime = downtime
        self._atlas = atlas
        self._replaced: list[SimulatedBroker] = []
        self.by_kind: dict[Kind, Callable[[Fault], None]] = {
            "replace broker": self._replace,
            "launch twice": self._launch_twice,
        }

    def alive(self) -> list[Process]:
        """Those that have not learnt yet what they are."""
        return [broker.process for broker in self._replaced if broker.process.is_alive]

    def mend(self) -> None:
        for broker in self._replaced:
            self._report_until_dead(broker)

    def end(self) -> None:
        for broker in self._replaced:
            broker.machine.disk.slow_ms = 0.0
            broker.abandon()

    # ---- on another machine --------------------------------------------------------------------------------

    def _replace(self, fault: Fault) -> None:
        """The supervisor lost touch with a broker (``amount``: and so did everybody, or it stands still)."""
        cluster, host = self._cluster, fault.target
        machine = cluster.machines[host]
        moved = sum(one.generation > 0 for one in cluster.machines.values())
        is_known = (
            cluster.is_up(host) and cluster.brokers[host].is_registered and not cluster.seats[host].down
        )
        if not is_known or machine.generation or moved >= len(cluster.machines) - 2:
            return  # clients know their first brokers by address
        if not self._atlas.may_lose(machine.broker_id):
            self._atlas.spare(fault)
            return
        self._atlas.lose_disk(machine.broker_id)
        cluster.story.tell(host, "is taken for lost: another takes its place, with an empty disk")
        cluster.witness.marks.reach("a broker was replaced while it lived")
        zombie = cluster.brokers.pop(host)
        self._replaced.append(zombie)
        self._look_at(zombie)
        self._keep_away(fault, zombie.process, machine.address)
        self._report(zombie)
        cluster.machines[host] = Machine(machine.broker_id, generation=machine.generation + 1)
        cluster.launch(host)

    def _look_at(self, zombie: SimulatedBroker) -> None:
        """It is looked at like everybody, under a name that no partition knows."""
        schedule, witness = self._cluster.schedule, self._cluster.witness
        look = schedule.on_step
        number = witness.rename(zombie.machine.broker_id, ZOMBIES_FROM + zombie.machine.broker_id)

        def look_also(process: Process | None) -> None:
            look(process)
            if process is zombie.process and zombie.body is not None and process.is_alive:
                witness.look_at(number, zombie.body.replicas, zombie.body.context.log_dirs)

        schedule.on_step = look_also

    def _report(self, zombie: SimulatedBroker) -> None:
        for controller in self._cluster.controllers.values():
            if controller.process.is_alive and controller.candidate is not None:
                delay_us = REPORT_MS * US_PER_MS
                report = partial(controller.broker_died, zombie.machine.broker_id, zombie.epoch)
                self._cluster.schedule.after(delay_us, controller.process, report)

    def _report_until_dead(self, zombie: SimulatedBroker) -> None:
        if zombie.process.is_alive:
            self._report(zombie)
            delay_us = REPORT_AGAIN_MS * US_PER_MS
            self._cluster.schedule.after(delay_us, None, lambda: self._report_until_dead(zombie))

    # ---- on the same machine -------------------------------------------------------------------------------

    def _launch_twice(self, fault: Fault) -> None:
        cluster, host = self._cluster, fault.target
        process = cluster.process(host)
        if process is None or not process.is_alive:
            return
        self._keep_away(fault, process, cluster.machines[host].address)
        for at_ms in range(0, fault.duration_ms, RELAUNCH_MS):
            cluster.schedule.after(at_ms * US_PER_MS, None, lambda: self._launch_beside(host, process))

    def _launch_beside(self, host: str, process: Process) -> None:
        """Only beside one that has its directories: of two that still wait for ZooKeeper either may be the
        first to have them, and then nobody would look at the one that serves."""
        cluster, machine = self._cluster, self._cluster.machines[host]
        if cluster.process(host) is not process or not _holds_a_lock(process, machine):
            return
        seat = cluster.seats[host]
        seat.launches += 1

        def stopped(broker: SimulatedBroker, why: str) -> None:
            cluster.story.tell(host, f"has stopped, the second: {why}")
            if "is in use by" in why:
                cluster.witness.marks.reach("a second process was refused a directory's lock")

        second = SimulatedBroker(
            cluster.world, machine, seat.launches, stopped, lambda broker, tp, stage: None
        )
        second.launch()
        self._end_with(process, second)

    def _end_with(self, process: Process, second: SimulatedBroker) -> None:
        """The second process is there only to be refused: if the first dies, or lets its directories go, it
        must not take over. Nobody would look at it."""
        if not _holds_a_lock(process, second.machine):
            second.die()
        elif second.process.is_alive:
            self._cluster.schedule.after(SECOND_LOOK_US, None, lambda: self._end_with(process, second))

    def _keep_away(self, fault: Fault, process: Process, address: str) -> None:
        ensemble = self._cluster.world.ensemble
        match int(fault.amount):
            case 0:
                process.pause()
                self._downtime.at_end(fault, process.resume)
            case 1:
                ensemble.cut(address)
                self._downtime.at_end(fault, lambda: ensemble.reconnect(address))
            case _:
                self._cluster.story.tell(address, "hears of nothing wrong")


def _holds_a_lock(process: Process, machine: Machine) -> bool:
    """Whether it lives, and has opened a log directory. A start asks ZooKeeper before that, which may take
    long."""
    return process.is_alive and process in machine.disk.lock_holders.values()


def at_address(fault: Fault, cluster: Cluster) -> Fault:
    """The fault with addresses for names of brokers: who was moved is elsewhere now."""

    def address(name: str) -> str:
        machine = cluster.machines.get(name)
        return name if machine is None else machine.address

    return replace(fault, target=address(fault.target), other=address(fault.other))
