"""What faults do to the links between programs."""

from collections.abc import Callable
from typing import Final

from simulation.cluster import Cluster
from simulation.machines.network import Weather
from simulation.plans.client_links import links_of
from simulation.plans.faults import Fault, Kind
from simulation.plans.plan import CONTROLLERS
from simulation.strikes.downtime import Downtime
from simulation.strikes.zombies import at_address

BOTH_WAYS: Final = ("cut link", "hang connections", "lose frames", "repeat requests", "delay frames")


class LinkStrikes:
    """One method for each kind of trouble; ``by_kind`` names them."""

    def __init__(self, cluster: Cluster, downtime: Downtime) -> None:
        self._cluster = cluster
        self._downtime = downtime
        self.by_kind: dict[Kind, Callable[[Fault], None]] = {
            "isolate broker": self._spoil_weather,
            "cut from controllers": self._spoil_weather,
            "cut link": self._spoil_weather,
            "cut one way": self._spoil_weather,
            "hang connections": self._spoil_weather,
            "lose frames": self._spoil_weather,
            "lose answers": self._spoil_weather,
            "repeat requests": self._spoil_weather,
            "delay frames": self._spoil_weather,
            "delay answers": self._spoil_weather,
            "flip bits": self._flip_bits,
        }

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
        self._downtime.at_end(fault, lambda: spoil(-1))

    def _flip_bits(self, fault: Fault) -> None:
        """Whoever produces to that broker: clients come and go, and have links that nobody knows of yet."""
        network, address = self._cluster.world.network, at_address(fault, self._cluster).target
        network.flip_bits(address, fault.amount)
        self._downtime.at_end(fault, lambda: network.flip_bits(address, -fault.amount))


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
