"""What faults do between programs and ZooKeeper."""

from collections.abc import Callable

from simulation.cluster import Cluster
from simulation.plans.faults import Fault, Kind
from simulation.strikes.downtime import Downtime
from simulation.strikes.zombies import at_address


class ZooKeeperStrikes:
    """One method for each kind of trouble; ``by_kind`` names them."""

    def __init__(self, cluster: Cluster, downtime: Downtime) -> None:
        self._cluster = cluster
        self._downtime = downtime
        self.by_kind: dict[Kind, Callable[[Fault], None]] = {
            "cut zookeeper": self._cut_zookeeper,
            "expire session": self._expire_session,
            "lose zookeeper answers": self._lose_zookeeper_answers,
            "delay watches": self._delay_watches,
            "lag zookeeper": self._lag_zookeeper,
        }

    def _expire_session(self, fault: Fault) -> None:
        self._cluster.world.ensemble.expire(at_address(fault, self._cluster).target)

    def _cut_zookeeper(self, fault: Fault) -> None:
        fault = at_address(fault, self._cluster)
        ensemble = self._cluster.world.ensemble
        ensemble.cut(fault.target)
        self._downtime.at_end(fault, lambda: ensemble.reconnect(fault.target))

    def _lose_zookeeper_answers(self, fault: Fault) -> None:
        fault = at_address(fault, self._cluster)
        ensemble = self._cluster.world.ensemble
        ensemble.unknown[fault.target] += fault.amount
        self._downtime.at_end(fault, lambda: ensemble.believe(fault.target, fault.amount))

    def _lag_zookeeper(self, fault: Fault) -> None:
        fault = at_address(fault, self._cluster)
        ensemble = self._cluster.world.ensemble
        ensemble.fall_behind(fault.target)
        self._downtime.at_end(fault, lambda: ensemble.catch_up(fault.target))

    def _delay_watches(self, fault: Fault) -> None:
        ensemble = self._cluster.world.ensemble
        ensemble.late_watches_ms += fault.amount
        self._downtime.at_end(fault, lambda: ensemble.hurry_watches(fault.amount))
