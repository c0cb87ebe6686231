"""What faults do to programs and to their clocks."""

from collections.abc import Callable

from simulation.cluster import Cluster
from simulation.plans.faults import Fault, Kind
from simulation.strikes.downtime import Downtime


class ProgramStrikes:
    """One method for each kind of trouble; ``by_kind`` names them."""

    def __init__(self, cluster: Cluster, downtime: Downtime) -> None:
        self._cluster = cluster
        self._downtime = downtime
        self.by_kind: dict[Kind, Callable[[Fault], None]] = {
            "kill broker": self._kill,
            "kill controller": self._kill,
            "stop broker": self._shut_down,
            "pause broker": self._pause,
            "pause controller": self._pause,
            "jump clock": self._jump_clock,
            "drift clock": self._drift_clock,
        }

    def _kill(self, fault: Fault) -> None:
        self._downtime.take_down(fault, is_reported=bool(fault.amount))

    def _shut_down(self, fault: Fault) -> None:
        if self._cluster.is_up(fault.target):
            self._downtime.hold_down(fault)
            self._cluster.brokers[fault.target].shut_down()

    def _pause(self, fault: Fault) -> None:
        process = self._cluster.process(fault.target)
        if process is not None:
            process.pause()
            self._downtime.at_end(fault, process.resume)

    def _jump_clock(self, fault: Fault) -> None:
        process = self._cluster.process(fault.target)
        if process is not None:
            process.skew_ms += int(fault.amount)

    def _drift_clock(self, fault: Fault) -> None:
        process = self._cluster.process(fault.target)
        if process is not None:
            process.drift(fault.amount)
