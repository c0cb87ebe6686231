"""A broker ends at one call that changes a file: the n-th of a kind that it comes to, wherever that is.

The call's kind is dealt like cards, so that rare ones are met as often as writes: a broker renames a file for
every few hundred writes, and its bugs are there. Where the call is one of the first after a start, that is in
the middle of a recovery. The process gets SIGKILL; or it stands still at the call, the disk loses its power,
and the process is killed then, so that it cannot tell anybody of a disk that fails under it.

A point that nobody came to in time is told as such, and no strike.
"""

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import ClassVar, Final

from chaos.faults.disks import cut_power
from chaos.faults.signals import pick_follower, pick_leader, told
from chaos.machines import shim
from chaos.machines.loop_disk import Unsynced
from chaos.machines.processes import is_alive
from chaos.machines.shim import CALLS, Controlled, Controls, Reached
from chaos.machines.walls import WalledPlaces
from chaos.nemesis import APPLICATION, CRASH_POINTS, DISKS, SYNCED, Broker, Cluster, Nemesis
from chaos.report import CrashPoint

NUMBERS: Final[Mapping[str, int]] = {
    "write": 80, "create": 20, "rename": 20, "remove": 10, "make directory": 2, "remove directory": 2,
    "sync": 40,
}  # fmt: skip
"""Up to which call of a kind the crash may wait. Brokers that run cut nothing; those that have started do."""

IN_START: Final[Mapping[str, int]] = {
    "write": 8, "create": 4, "rename": 4, "remove": 2, "truncate": 3, "sync": 6,
}  # fmt: skip
"""The same from a broker's start on. It makes no directories then."""

CATCHING_UP_S: Final = 4.0
"""How long after its registration the point of a start still counts: then logs are cut to their leaders'."""

UNSYNCED: Final = (Unsynced.LOST, Unsynced.LOST, Unsynced.NAMED, Unsynced.KEPT)
"""What becomes of what was not synced, as often as it is named."""

OF_ALL: Final = 0.25
"""How often all machines lose their power together, where that may lose nothing."""

REACHED_TIMEOUT_S: Final = 25.0
END_TIMEOUT_S: Final = 10.0
START_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.005


class NotReached(Exception):  # noqa: N818 (says what is the case)
    """No process came to the crash point in time, so nothing was struck."""


class Deck:
    """Kinds of calls: all of them come before any comes again."""

    def __init__(self, calls: Mapping[str, int]) -> None:
        self._calls = calls
        self._left: list[str] = []

    def draw(self, rng: Random) -> tuple[str, int]:
        """A kind, and how many calls of it until the crash."""
        if not self._left:
            self._left = rng.sample(sorted(self._calls), len(self._calls))
        call = self._left.pop()
        return call, rng.randint(1, self._calls[call])


class _AtPoint(Nemesis):
    """Arms a point, waits until it is reached, and counts what came of it."""

    needs: ClassVar = frozenset({CRASH_POINTS})
    weight = 2

    def __init__(self, places: Controlled) -> None:
        self._points: list[CrashPoint] = []
        self._places = places
        self._deck = Deck(NUMBERS)
        self._armed: Controls | None = None
        self._where = ""

    @property
    def points(self) -> Sequence[CrashPoint]:
        return self._points

    def probe(self) -> str | None:
        return shim.probe()

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return 0.0

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = rng.choice((pick_leader, pick_leader, pick_follower))(cluster, rng)
        text = told(cluster, broker)
        return f"{self.strike(cluster, broker, rng)}: {text}"

    @abstractmethod
    def strike(self, cluster: Cluster, broker: Broker, rng: Random) -> str:
        """What was struck, in words; NotReached if nothing was."""

    def end(self) -> None:
        if self._armed is not None:
            self._armed.clear_crash_point()
            self._armed = None

    def arm(
        self, broker: Broker, call: str, number: int, rng: Random, *, power_cut: bool, tears: bool = False
    ) -> None:
        self._armed = self._places.controls(broker.id)
        tears = tears or (call == "write" and rng.random() < 0.5)
        self._where = f"{'in the middle of' if tears else 'before'} {call} {number}"
        self._armed.set_crash_point([call], number, is_stopped=power_cut, tears=tears)

    def wait_reached(self, timeout_s: float, is_over: Callable[[], bool] = lambda: False) -> Reached | None:
        """Who came to the point; None after the time, or once ``is_over``."""
        assert self._armed is not None, "no point was set"
        deadline = time.monotonic() + timeout_s
        while (reached := self._armed.reached()) is None:
            if time.monotonic() > deadline or is_over():
                self._armed.clear_crash_point()
                return self._armed.reached()
            time.sleep(_POLL_S)
        return reached

    def first(
        self,
        cluster: Cluster,
        broker: Broker,
        rng: Random,
        *,
        power_cut: bool,
        may_be_all: bool = True,
        tears: bool = False,
    ) -> str:
        """The crash of a broker that runs; in the middle of a write if it ``tears``."""
        call, number = ("write", rng.randint(1, NUMBERS["write"])) if tears else self._deck.draw(rng)
        self.arm(broker, call, number, rng, power_cut=power_cut, tears=tears)
        reached = self.wait_reached(REACHED_TIMEOUT_S)
        how = "power cut" if power_cut else "SIGKILL"
        if reached is None:
            self._points.append(CrashPoint(call, how, "running", False))
            raise NotReached(f"no {call} number {number} of broker {broker.id} in {REACHED_TIMEOUT_S:g} s")
        of_all = may_be_all and SYNCED in cluster.features and rng.random() < OF_ALL
        more = self.finish(cluster, broker, reached, rng, power_cut=power_cut, of_all=of_all)
        self._points.append(CrashPoint(call, how, "running", True, reached.path))
        return f"{how}{more} {self._where}, of {reached.path}"

    def finish(
        self,
        cluster: Cluster,
        broker: Broker,
        reached: Reached,
        rng: Random,
        *,
        power_cut: bool,
        of_all: bool = False,
    ) -> str:
        """See the process ended; how, if there is more to tell."""
        more = ""
        if power_cut:
            assert isinstance(self._places, WalledPlaces), "power is a machine's"
            own = self._places.machine(broker.id)
            machines = list(self._places.machines().values()) if of_all else [own]
            unsynced = rng.choice(UNSYNCED)
            # Without Spark nothing but brokers runs there, and one that has just been started has no file of
            # the disk open yet. Not off for long: a start on a disk without power is no recovery.
            everything = APPLICATION not in cluster.features
            cut_power(machines, 0.0, with_spark=everything, unsynced=unsynced)
            more = f"{' of all machines' if of_all else ''}, unsynced {unsynced.name.lower()},"
        deadline = time.monotonic() + END_TIMEOUT_S
        while is_alive(reached.pid):
            if time.monotonic() > deadline:
                raise RuntimeError(f"process {reached.pid} lives on after its crash point {reached.call}")
            time.sleep(_POLL_S)
        return more


class CrashPointKill(_AtPoint):
    """SIGKILL of the broker by itself."""

    kind = "crash-point"

    def strike(self, cluster: Cluster, broker: Broker, rng: Random) -> str:
        return self.first(cluster, broker, rng, power_cut=False)


class CrashPointPowerCut(_AtPoint):
    """The broker's machine loses its power, or all do."""

    kind = "crash-point-power-cut"
    needs: ClassVar = frozenset({CRASH_POINTS, DISKS})

    def strike(self, cluster: Cluster, broker: Broker, rng: Random) -> str:
        return self.first(cluster, broker, rng, power_cut=True)


class CrashPointInStart(_AtPoint):
    """A broker that crashed at a call crashes at another in its recovery, or while it cuts its logs to their
    leaders' and catches up.
    """

    kind = "crash-point-in-start"

    def __init__(self, places: Controlled) -> None:
        super().__init__(places)
        self._starts = Deck(IN_START)

    def strike(self, cluster: Cluster, broker: Broker, rng: Random) -> str:
        has_power = DISKS in cluster.features
        before = cluster.registration(broker.id)
        call, number = self._starts.draw(rng)
        # A start has something to cut where half a batch was written. Its first cut is of the lock's file.
        tears = call == "truncate"
        number = max(number, 2) if tears else number
        # Of one machine only: the others are to lead on, and what is armed here is armed for one.
        first_by_power = has_power and not tears and rng.random() < 0.5
        text = self.first(cluster, broker, rng, power_cut=first_by_power, may_be_all=False, tears=tears)
        power_cut = has_power and rng.random() < 0.5
        self.arm(broker, call, number, rng, power_cut=power_cut)
        counts = self._places.controls(broker.id).counts()

        caught_up_at = math.inf

        def has_registered() -> bool:
            return cluster.registration(broker.id) not in (None, before)

        def is_over() -> bool:
            nonlocal caught_up_at
            if caught_up_at == math.inf and has_registered():
                caught_up_at = time.monotonic() + CATCHING_UP_S
            return time.monotonic() > caught_up_at

        reached = self.wait_reached(START_TIMEOUT_S, is_over)
        how = "power cut" if power_cut else "SIGKILL"
        if reached is None:
            self._points.append(CrashPoint(call, how, "starting", False))
            since = self._places.controls(broker.id).counts()
            made = ", ".join(f"{since[kind] - counts[kind]} {kind}" for kind in CALLS)
            return f"{text}; its start had no {call} number {number} ({made})"
        phase = "starting" if caught_up_at == math.inf else "catching up"
        more = self.finish(cluster, broker, reached, rng, power_cut=power_cut)
        self._points.append(CrashPoint(call, how, phase, True, reached.path))
        return f"{text}; then {phase} {how}{more} {self._where}, of {reached.path}"


def all_of_crash_points(places: Controlled) -> Sequence[Nemesis]:
    """Every nemesis of this file."""
    return [CrashPointKill(places), CrashPointPowerCut(places), CrashPointInStart(places)]


assert {*NUMBERS, *IN_START} == set(CALLS)
