"""An operator at work: brokers are stopped, restarted, drained and filled, while others are killed.

Each strike begins an operation, and often kills a broker, the active controller or the driver of the
application while it is under way. Once every fault of the window is taken away (``settle``) the operation has
to come to its end, whatever end that is, and then the operator has all brokers serve again.
"""

import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final

from chaos.faults.operator_commands import DONE, RUNNING, UNKNOWN, CommandHangs, Operator, Refused
from chaos.machines.processes import send
from chaos.nemesis import APPLICATION, ROOM, Cluster, Nemesis

SETTLE_S: Final = 300.0
"""Each operation has ended by then, once nothing is wrong any more."""
LOOK_S: Final = 15.0
POLL_S: Final = 0.5
ALL: Final = 0.4
"""So many restarts are of all brokers."""
SERVING: Final = "serving"
TROUBLES: Final = ("none", "none", "broker", "broker", "controller", "driver")
TROUBLE_AFTER_S: Final = (0.0, 6.0)


class Operation(Nemesis):
    """One operation on one broker, or on all."""

    needs = frozenset({APPLICATION})
    action: ClassVar[str]

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._brokers: list[int] = []
        self._begun: Mapping[str, Any] | None = None
        self._registered: dict[int, int | None] = {}
        self._counts: Counter[str] = Counter()

    @property
    def operations(self) -> Mapping[str, int]:
        return self._counts

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(2.0, 20.0)

    def begin(self, cluster: Cluster, rng: Random) -> str:
        self._cluster, self._begun = cluster, None
        self._brokers = self._chosen(cluster, rng)
        self._registered = {one: cluster.registration(one) for one in cluster.broker_ids()}
        self._begun = self._operator().begin(self.action, self._brokers)
        told = f"operation {self._begun['id']}: {self.action} {self._brokers or 'all brokers'}"
        return f"{told}; {_trouble(cluster, rng)}"

    def _chosen(self, cluster: Cluster, rng: Random) -> list[int]:
        return [rng.choice(cluster.broker_ids())]

    def _operator(self) -> Operator:
        assert self._cluster is not None
        return Operator(self._cluster.access, self._cluster.folder)

    def end(self) -> None:
        """``settle`` does it, when no other fault is left."""

    def settle(self) -> Sequence[str]:
        if self._cluster is None:
            return ()
        try:
            return [*self._conclude(), *self._everybody_serves()]
        except (Refused, CommandHangs) as error:
            return [f"{self.kind}: {error}"]
        finally:
            self._cluster, self._begun = None, None

    def _conclude(self) -> Sequence[str]:
        """Wait for the operation's end; what is wrong with it."""
        if self._begun is None:
            return ()
        found = self._operator().ended(self._begun["id"], SETTLE_S)
        if found["state"] in (RUNNING, UNKNOWN):
            return [_hanging(found)]
        self._count(found)
        return self._look() if found["state"] == DONE else ()

    def _look(self) -> Sequence[str]:
        """What is wrong after an operation that was done."""
        return ()

    def _everybody_serves(self) -> Sequence[str]:
        """Have all brokers serve; what is wrong in the end."""
        operator = self._operator()
        idle = [number for number, one in operator.brokers(SETTLE_S).items() if one["wish"] != SERVING]
        for action, brokers in (("start", idle), *self._afterwards()):
            if not brokers:
                continue
            found = operator.ended(operator.insist(action, brokers, SETTLE_S)["id"], SETTLE_S)
            if found["state"] in (RUNNING, UNKNOWN):
                return [_hanging(found)]
            self._count(found)
            if found["state"] != DONE:
                return [f"{self.kind}: {_told(found)}"]
        return [_hanging(one) for one in operator.still_running(SETTLE_S)]

    def _afterwards(self) -> Sequence[tuple[str, list[int]]]:
        """Operations that follow once all serve again."""
        return ()

    def _count(self, found: Mapping[str, Any]) -> None:
        reason = found.get("reason")
        self._counts[f"{found['kind']} {found['state']}{f': {reason}' if reason else ''}"] += 1


class OperatorStops(Operation):
    kind = "operator-stop"
    action = "stop"

    def _look(self) -> Sequence[str]:
        cluster = self._cluster
        assert cluster is not None
        gone = _soon(lambda: all(cluster.registration(one) is None for one in self._brokers))
        return (
            [] if gone else [f"{self.kind}: of brokers {self._brokers}, which were stopped, some are there"]
        )


class OperatorRestarts(Operation):
    kind = "operator-restart"
    action = "restart"

    def _chosen(self, cluster: Cluster, rng: Random) -> list[int]:
        return [] if rng.random() < ALL else super()._chosen(cluster, rng)

    def _look(self) -> Sequence[str]:
        cluster = self._cluster
        assert cluster is not None
        some = self._brokers or cluster.broker_ids()
        before = {one: number for one in some if (number := self._registered[one]) is not None}
        same = [one for one, number in before.items() if cluster.registration(one) == number]
        return [f"{self.kind}: brokers {same} were restarted, and never registered anew"] if same else []


class OperatorDrains(OperatorStops):
    """Drained brokers come back empty, and are filled."""

    kind = "operator-drain"
    action = "drain"
    needs = frozenset({APPLICATION, ROOM})

    def _look(self) -> Sequence[str]:
        operator = self._operator()
        is_empty = _soon(lambda: not any(operator.brokers(LOOK_S)[one]["replicas"] for one in self._brokers))
        left = [] if is_empty else [f"{self.kind}: brokers {self._brokers} were drained, and have replicas"]
        return [*super()._look(), *left]

    def _afterwards(self) -> Sequence[tuple[str, list[int]]]:
        return [] if self._begun is None else [("fill", self._brokers)]


def all_of_operators() -> list[Nemesis]:
    return [OperatorStops(), OperatorRestarts(), OperatorDrains()]


def _trouble(cluster: Cluster, rng: Random) -> str:
    """Kill somebody while the operation is under way, or nobody."""
    trouble = rng.choice(TROUBLES)
    if trouble == "none":
        return "nobody is killed"
    time.sleep(rng.uniform(*TROUBLE_AFTER_S))
    if trouble == "broker":
        some = sorted(cluster.brokers().items())
        number, broker = rng.choice(some)
        send(broker.pid, signal.SIGKILL)
        return f"broker {number} (process {broker.pid}) is killed"
    wanted = [
        one for one in cluster.controllers() if (one.hosts_brokers if trouble == "driver" else one.is_active)
    ]
    for one in wanted:
        send(one.pid, signal.SIGKILL)
    return f"the {trouble} is killed (process {', '.join(str(one.pid) for one in wanted) or 'none'})"


def _soon(is_so: Callable[[], bool]) -> bool:
    """Whether it comes to be so: reports and registrations are a moment late."""
    deadline = time.monotonic() + LOOK_S
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _hanging(found: Mapping[str, Any]) -> str:
    if found["state"] == UNKNOWN:
        return f"nobody reports operation {found['id']}"
    waits = "; ".join(found["waiting_for"]) or "nothing that it names"
    return f"{_told(found)} has not ended {SETTLE_S:.0f} s after the last fault; it waits for: {waits}"


def _told(found: Mapping[str, Any]) -> str:
    reason = found.get("reason")
    told = f"operation {found['id']} ({found['kind']} {found['brokers']}, {found['state']})"
    return f"{told}: {reason}" if reason else told
