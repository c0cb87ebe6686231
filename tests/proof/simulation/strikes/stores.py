"""What faults do to the remote store."""

from collections.abc import Callable

from simulation.cluster import Cluster
from simulation.plans.faults import Fault, Kind
from simulation.strikes.downtime import Downtime


class StoreStrikes:
    """One method for each kind of trouble; ``by_kind`` names them."""

    def __init__(self, cluster: Cluster, downtime: Downtime) -> None:
        self._cluster = cluster
        self._downtime = downtime
        self.by_kind: dict[Kind, Callable[[Fault], None]] = {
            "lose the store": self._spoil,
            "slow the store": self._spoil,
            "fail calls of the store": self._spoil,
            "list the store late": self._spoil,
        }

    def _spoil(self, fault: Fault) -> None:
        store = self._cluster.world.store
        if store is None:
            return

        def spoil(sign: int) -> None:
            trouble = store.trouble
            match fault.kind:
                case "lose the store":
                    trouble.away += sign
                case "slow the store":
                    trouble.extra_ms = max(0.0, trouble.extra_ms + sign * fault.amount)
                case "fail calls of the store":
                    trouble.failing = max(0.0, trouble.failing + sign * fault.amount)
                case _:
                    trouble.stale_ms = max(0.0, trouble.stale_ms + sign * fault.amount)

        spoil(1)
        self._downtime.at_end(fault, lambda: spoil(-1))
