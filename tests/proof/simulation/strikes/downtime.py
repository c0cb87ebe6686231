"""How faults keep programs down for a while."""

from collections.abc import Callable

from simulation.cluster import Cluster
from simulation.plans.faults import Fault
from simulation.schedule import US_PER_MS


class Downtime:
    """The places where programs run, as faults see them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def take_down(self, fault: Fault, *, is_reported: bool) -> None:
        """Kill the program; it is not launched before the fault has ended."""
        self.hold_down(fault)
        self._cluster.kill(fault.target, is_reported=is_reported)

    def hold_down(self, fault: Fault, *, before: Callable[[], None] = lambda: None) -> None:
        """Whenever it ends, the program is not launched again before the fault has ended, and ``before`` was
        done."""
        seat = self._cluster.seats[fault.target]
        seat.down += 1

        def come_back() -> None:
            before()
            seat.down = max(0, seat.down - 1)
            self._cluster.launch(fault.target)

        self.at_end(fault, come_back)

    def at_end(self, fault: Fault, action: Callable[[], None]) -> None:
        def end() -> None:
            self._cluster.story.tell("fault ends", f"{fault.kind} ({fault.target})")
            action()

        self._cluster.schedule.after(fault.duration_ms * US_PER_MS, None, end)
