"""What faults do to programs, links, ZooKeeper and clocks; ``disk_strikes`` does it to disks."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from simulation.atlas import Atlas
from simulation.client_links import links_of
from simulation.cluster import Cluster
from simulation.disk_strikes import DiskStrikes
from simulation.faults import Fault, Kind
from simulation.network import Weather
from simulation.plan import CONTROLLERS
from simulation.roles import Roles
from simulation.schedule import US_PER_MS
from simulation.seats import Seats
from simulation.zombies import Zombies, at_address

BOTH_WAYS: Final = ("cut link", "hang connections", "lose frames", "repeat requests", "delay frames")

LOOK_AGAIN_MS: Final = 500
"""How often, once all is mended, an operator looks for directories that are offline."""


class Strikes:
    """Strikes a cluster with the faults of its plan, until it is calm."""

    def __init__(self, cluster: Cluster) -> None:
        self.struck: Counter[str] = Counter()
        self._cluster = cluster
        self._seats = Seats(cluster)
        self.atlas = atlas = Atlas(
            cluster.plan,
            cluster.witness,
            cluster.world.ensemble.tree,
            cluster.administrator,
            cluster.machines,
        )
        self._roles = Roles(cluster)
        self._disks = DiskStrikes(cluster, self._seats, atlas)
        self._zombies = Zombies(cluster, self._seats, atlas)
        self._by_kind: dict[Kind, Callable[[Fault], None]] = {
            "kill broker": lambda fault: self._seats.take_down(fault, is_reported=bool(fault.amount)),
            "kill controller": lambda fault: self._seats.take_down(fault, is_reported=bool(fault.amount)),
            "stop broker": self._shut_down,
            "pause broker": self._pause,
            "pause controller": self._pause,
            "isolate broker": self._spoil_weather,
            "cut from controllers": self._spoil_weather,
            "cut link": self._spoil_weather,
            "cut one way": self._spoil_weather,
            "hang connections": self._spoil_weather,
            "lose frames": self._spoil_weather,
            "lose answers": self._spoil_weather,
            "repeat requests": self._spoil_weather,
            "flip bits": self._flip_bits,
            "delay frames": self._spoil_weather,
            "delay answers": self._spoil_weather,
            "cut zookeeper": self._cut_zookeeper,
            "expire session": self._expire_session,
            "lose zookeeper answers": self._lose_zookeeper_answers,
            "delay watches": self._delay_watches,
            "lag zookeeper": self._lag_zookeeper,
            "jump clock": self._jump_clock,
            "drift clock": self._drift_clock,
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
        if broker is not None and broker.replicas is not None and broker.replicas.offline_directories():
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

    # ---- programs ------------------------------------------------------------------------------------------

    def _shut_down(self, fault: Fault) -> None:
        if self._cluster.is_up(fault.target):
            self._seats.hold_down(fault)
            self._cluster.brokers[fault.target].shut_down()

    def _pause(self, fault: Fault) -> None:
        process = self._cluster.process(fault.target)
        if process is not None:
            process.pause()
            self._seats.at_end(fault, process.resume)

    # ---- links ---------------------------------------------------------------------------------------------

    def _spoil_weather(self, fault: Fault) -> None:
        fault = at_address(fault, self._cluster)
        network = self._cluster.world.network
        if fault.kind in ("isolate broker", "cut from controllers"):
            brokers = [machine.address for machine in self._cluster.machines.values()]
            around = CONTROLLERS if fault.kind == "cut from controllers" else (*brokers, *CONTROLLERS)
            if fault.kind == "isolate broker" and fault.number % 2:
                around = (*around, *network.callers)  # else its clients reach it still
            hosts = [host for host in around if host != fault.target]
            links = [pair for host in hosts for pair in ((host, fault.target), (fault.target, host))]
        else:
            links = links_of(fault, network.callers)
            if fault.kind in BOTH_WAYS:
                links += [(destination, origin) for origin, destination in links]
        spoilt = [network.weather(origin, destination) for origin, destination in links]

        def spoil(sign: int) -> None:
            for weather in spoilt:
                _spoil(weather, fault, sign)

        spoil(1)
        self._seats.at_end(fault, lambda: spoil(-1))

    def _flip_bits(self, fault: Fault) -> None:
        """Whoever produces to that broker: clients come and go, and have links that nobody knows of yet."""
        network, address = self._cluster.world.network, at_address(fault, self._cluster).target
        network.flip_bits(address, fault.amount)
        self._seats.at_end(fault, lambda: network.flip_bits(address, -fault.amount))

    # ---- ZooKeeper -----------------------------------------------------------------------------------------

    def _expire_session(self, fault: Fault) -> None:
        self._cluster.world.ensemble.expire(at_address(fault, self._cluster).target)

    def _cut_zookeeper(self, fault: Fault) -> None:
        fault = at_address(fault, self._cluster)
        ensemble = self._cluster.world.ensemble
        ensemble.cut(fault.target)
        self._seats.at_end(fault, lambda: ensemble.reconnect(fault.target))

    def _lose_zookeeper_answers(self, fault: Fault) -> None:
        fault = at_address(fault, self._cluster)
        ensemble = self._cluster.world.ensemble
        ensemble.unknown[fault.target] += fault.amount
        self._seats.at_end(fault, lambda: ensemble.believe(fault.target, fault.amount))

    def _lag_zookeeper(self, fault: Fault) -> None:
        fault = at_address(fault, self._cluster)
        ensemble = self._cluster.world.ensemble
        ensemble.fall_behind(fault.target)
        self._seats.at_end(fault, lambda: ensemble.catch_up(fault.target))

    def _delay_watches(self, fault: Fault) -> None:
        ensemble = self._cluster.world.ensemble
        ensemble.late_watches_ms += fault.amount
        self._seats.at_end(fault, lambda: ensemble.hurry_watches(fault.amount))

    # ---- clocks --------------------------------------------------------------------------------------------

    def _jump_clock(self, fault: Fault) -> None:
        process = self._cluster.process(fault.target)
        if process is not None:
            process.skew_ms += int(fault.amount)

    def _drift_clock(self, fault: Fault) -> None:
        process = self._cluster.process(fault.target)
        if process is not None:
            process.drift(fault.amount)


def _spoil(weather: Weather, fault: Fault, sign: int) -> None:
    match fault.kind:
        case "hang connections":
            weather.is_cut += sign
            weather.is_silent += sign
        case "lose frames":
            weather.loss += sign * fault.amount
        case "lose answers":
            weather.answer_loss = max(0.0, weather.answer_loss + sign * fault.amount)
        case "repeat requests":
            weather.repeat = max(0.0, weather.repeat + sign * fault.amount)
        case "delay frames":
            weather.extra_ms += sign * fault.amount
        case "delay answers":
            weather.answer_extra_ms += sign * fault.amount
        case _:
            weather.is_cut += sign
