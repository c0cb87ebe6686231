"""Faults that need nothing but signals: kills, pauses, stops, empty disks, zombies."""

import os
import shutil
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import ClassVar

from chaos.machines.processes import is_alive, kill_and_wait, send
from chaos.nemesis import APPLICATION, EXECUTORS, SPARES, Broker, Cluster, Nemesis

RELAUNCH_TIMEOUT_S = 60.0
PAUSES = (0.5, 1.0, 3.0)
"""In session timeouts."""


def led_by(cluster: Cluster, broker_id: int) -> list[str]:
    return [
        f"{topic}/{number}"
        for (topic, number), leader in sorted(cluster.leaders().items())
        if leader == broker_id
    ]


def pick_leader(cluster: Cluster, rng: Random) -> Broker:
    """The leader of some partition; any broker if none has one."""
    leaders = cluster.leaders()
    brokers = cluster.brokers()
    if leaders:
        return brokers[leaders[rng.choice(sorted(leaders))]]
    return brokers[rng.choice(sorted(brokers))]


def pick_follower(cluster: Cluster, rng: Random) -> Broker:
    """A broker that follows in some partition: whoever leads least, chance deciding among equals."""
    brokers = cluster.brokers()
    order = sorted(brokers)
    rng.shuffle(order)
    return brokers[min(order, key=lambda broker_id: len(led_by(cluster, broker_id)))]


Pick = Callable[[Cluster, Random], Broker]


def told(cluster: Cluster, broker: Broker) -> str:
    led = led_by(cluster, broker.id)
    return f"broker {broker.id} (process {broker.pid}), leader of {', '.join(led) or 'nothing'}"


class _AtOnce(Nemesis):
    """Over as soon as it has struck."""

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return 0.0

    def end(self) -> None:
        """The cluster mends it by itself."""


class KillLeader(_AtOnce):
    kind = "kill-leader"
    weight = 2

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        send(broker.pid, signal.SIGKILL)
        return text


class KillFollower(_AtOnce):
    kind = "kill-follower"

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_follower(cluster, rng)
        text = told(cluster, broker)
        send(broker.pid, signal.SIGKILL)
        return text


class KillAgainAndAgain(_AtOnce):
    """The same broker, each time as soon as it is back."""

    kind = "kill-repeatedly"

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        times = rng.randrange(2, 5)
        text = f"{times} times: {told(cluster, broker)}"
        for _ in range(times):
            pid = cluster.brokers()[broker.id].pid
            send(pid, signal.SIGKILL)
            cluster.wait_replaced(broker.id, pid, RELAUNCH_TIMEOUT_S)
            time.sleep(rng.uniform(0.0, 2.0))
        return text


class KillAll(_AtOnce):
    """All brokers at once, and again while they come back."""

    kind = "kill-all"

    def begin(self, cluster: Cluster, rng: Random) -> str:
        times = rng.randrange(1, 4)
        for number in range(times):
            if number:
                time.sleep(rng.uniform(0.5, 6.0))
            for broker in cluster.brokers().values():
                send(broker.pid, signal.SIGKILL)
        return f"{times} times: all brokers"


class StopBroker(_AtOnce):
    """SIGTERM: the broker hands over and ends; the supervisor launches it again."""

    kind = "stop-broker"

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        send(broker.pid, signal.SIGTERM)
        return text


class KillExecutor(_AtOnce):
    """The JVM over the broker: Spark's own way of losing one."""

    kind = "kill-executor"
    needs: ClassVar = frozenset({EXECUTORS})

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        jvm = cluster.executor_pid(broker.id)
        text = f"executor (process {jvm}) of {told(cluster, broker)}"
        send(jvm, signal.SIGKILL)
        return text


class KillController(_AtOnce):
    """SIGKILL for the active controller; where that is the driver, it is made to give the office up first."""

    kind = "kill-controller"

    def begin(self, cluster: Cluster, rng: Random) -> str:
        active = next((one for one in cluster.controllers() if one.is_active), None)
        if active is None:
            return "nobody, as there was no controller"
        if not active.hosts_brokers:
            send(active.pid, signal.SIGKILL)
            return f"controller (process {active.pid})"
        send(active.pid, signal.SIGSTOP)
        try:
            time.sleep(1.5 * cluster.session_timeout_s)
            others = [one for one in cluster.controllers() if one.is_active and not one.hosts_brokers]
        finally:
            send(active.pid, signal.SIGCONT)
        for one in others:
            send(one.pid, signal.SIGKILL)
        return (
            f"driver (process {active.pid}) paused, then its successor {[one.pid for one in others]} killed"
        )


class KillDriver(_AtOnce):
    """The whole application: its controller candidate, its supervisor, its executors, all brokers."""

    kind = "kill-driver"
    needs: ClassVar = frozenset({APPLICATION})

    def begin(self, cluster: Cluster, rng: Random) -> str:
        driver = next(one for one in cluster.controllers() if one.hosts_brokers)
        send(driver.pid, signal.SIGKILL)
        role = "the controller too" if driver.is_active else "not the controller"
        return f"driver (process {driver.pid}), {role}"


class KillZooKeeper(Nemesis):
    """SIGKILL, and it stays away for a while."""

    kind = "kill-zookeeper"

    def __init__(self) -> None:
        self._release: Callable[[], None] = lambda: None

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.choice((0.2, 0.5, 2.0)) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        self._release = cluster.release_zookeeper
        cluster.hold_zookeeper()
        pid = cluster.zookeeper_pid()
        send(pid, signal.SIGKILL)
        return f"ZooKeeper (process {pid})"

    def end(self) -> None:
        self._release()


class _Pause(Nemesis):
    """SIGSTOP, and SIGCONT after a multiple of the session timeout."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.kind = f"{self.what}-{factor:g}x"
        self._paused: list[int] = []

    what: ClassVar[str]

    @abstractmethod
    def whom(self, cluster: Cluster, rng: Random) -> tuple[list[int], str]: ...

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return self.factor * cluster.session_timeout_s * rng.uniform(0.9, 1.1)

    def begin(self, cluster: Cluster, rng: Random) -> str:
        pids, text = self.whom(cluster, rng)
        for pid in pids:
            self._paused.append(pid)
            send(pid, signal.SIGSTOP)
        return text

    def end(self) -> None:
        while self._paused:
            send(self._paused.pop(), signal.SIGCONT)


class PauseLeader(_Pause):
    what = "pause-leader"

    def whom(self, cluster: Cluster, rng: Random) -> tuple[list[int], str]:
        broker = pick_leader(cluster, rng)
        return [broker.pid], told(cluster, broker)


class PauseFollower(_Pause):
    what = "pause-follower"

    def whom(self, cluster: Cluster, rng: Random) -> tuple[list[int], str]:
        broker = pick_follower(cluster, rng)
        return [broker.pid], told(cluster, broker)


class PauseAll(_Pause):
    what = "pause-all"

    def whom(self, cluster: Cluster, rng: Random) -> tuple[list[int], str]:
        return [broker.pid for broker in cluster.brokers().values()], "all brokers"


class PauseInTurns(_Pause):
    """All brokers but one, until that one has led alone for a while; then they go on, and it is paused.

    What a leader acknowledged alone, though topics ask for two in sync, is lost so: one of the others is
    elected, as it had left the ISR below the minimum, when nothing could be committed any more.
    """

    what = "pause-in-turns"
    alone: ClassVar[float] = 2.0
    """In session timeouts: one until the others' sessions expire, one of leading."""

    def whom(self, cluster: Cluster, rng: Random) -> tuple[list[int], str]:
        last = pick_leader(cluster, rng)
        others = [broker for broker in cluster.brokers().values() if broker.id != last.id]
        try:
            for broker in others:
                send(broker.pid, signal.SIGSTOP)
            time.sleep(self.alone * cluster.session_timeout_s)
            text = f"{told(cluster, last)}, after brokers {sorted(broker.id for broker in others)}"
            send(last.pid, signal.SIGSTOP)
        finally:
            for broker in others:
                send(broker.pid, signal.SIGCONT)
        return [last.pid], text


class PauseController(_Pause):
    what = "pause-controller"

    def whom(self, cluster: Cluster, rng: Random) -> tuple[list[int], str]:
        active = [one for one in cluster.controllers() if one.is_active]
        return [one.pid for one in active], f"controller (process {[one.pid for one in active]})"


class PauseZooKeeper(_Pause):
    what = "pause-zookeeper"

    def whom(self, cluster: Cluster, rng: Random) -> tuple[list[int], str]:
        pid = cluster.zookeeper_pid()
        return [pid], f"ZooKeeper (process {pid})"


class PauseExecutor(_Pause):
    what = "pause-executor"
    needs: ClassVar = frozenset({EXECUTORS})

    def whom(self, cluster: Cluster, rng: Random) -> tuple[list[int], str]:
        broker = pick_leader(cluster, rng)
        jvm = cluster.executor_pid(broker.id)
        return [jvm], f"executor (process {jvm}) of {told(cluster, broker)}"


class EmptyDisk(_AtOnce):
    """SIGKILL, and when it is launched again its log directories are empty."""

    kind = "empty-disk"

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        text = f"log directories of {told(cluster, broker)}"
        kill_and_wait([broker.pid])
        for log_dir in broker.log_dirs:
            empty(log_dir)
        return text


def empty(log_dir: Path) -> None:
    """Empty a directory before anybody opens it again: renamed first, as deleting takes its time.

    A mount point stays: one of another mount namespace could be renamed and removed, and its disk be gone.
    """
    if not os.path.ismount(log_dir):
        aside = log_dir.with_name(f"{log_dir.name}.gone-{time.monotonic_ns()}")
        os.rename(log_dir, aside)
        shutil.rmtree(aside)
        return
    for entry in list(log_dir.iterdir()):
        if entry.name != "lost+found":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


class ZombieBehindLock(Nemesis):
    """A broker is paused and its executor's JVM killed, so that another process is launched in its place.
    Then it goes on beside its replacement, which waits for the log directory's lock: the zombie holds it.
    """

    kind = "zombie"
    needs: ClassVar = frozenset({EXECUTORS})

    def __init__(self) -> None:
        self._zombie = 0

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(1.5, 4.0) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        jvm = cluster.executor_pid(broker.id)
        text = f"{told(cluster, broker)}, with its executor (process {jvm}) killed"
        self._zombie = broker.pid
        send(broker.pid, signal.SIGSTOP)
        send(jvm, signal.SIGKILL)
        return text

    def end(self) -> None:
        if self._zombie and is_alive(self._zombie):
            send(self._zombie, signal.SIGCONT)
        self._zombie = 0


class ZombieElsewhere(Nemesis):
    """A broker is paused, and another process is launched under its id with an empty disk, as if on another
    host. Then the first one goes on, with its disk and all that it believes, until it is killed.
    """

    kind = "zombie-elsewhere"
    weight = 3  # few clusters have spares
    needs: ClassVar = frozenset({SPARES})

    def __init__(self) -> None:
        self._zombie = 0
        self._haunts_s = 0.0

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(0.2, 4.0) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        self._haunts_s = rng.uniform(0.5, 2.0 * cluster.session_timeout_s)
        send(broker.pid, signal.SIGSTOP)
        self._zombie = broker.pid
        cluster.launch_elsewhere(broker.id)
        return f"{text}; goes on for {self._haunts_s:.1f} s beside its replacement"

    def end(self) -> None:
        if self._zombie:
            send(self._zombie, signal.SIGCONT)
            time.sleep(self._haunts_s)
            kill_and_wait([self._zombie])
        self._zombie = 0


def all_signals() -> Sequence[Nemesis]:
    """Every nemesis of this file."""
    return [
        KillLeader(),
        KillFollower(),
        KillAgainAndAgain(),
        KillAll(),
        StopBroker(),
        KillExecutor(),
        KillController(),
        KillDriver(),
        KillZooKeeper(),
        EmptyDisk(),
        ZombieBehindLock(),
        ZombieElsewhere(),
        *(
            pause(factor)
            for factor in PAUSES
            for pause in (PauseLeader, PauseFollower, PauseAll, PauseController, PauseZooKeeper)
        ),
        PauseInTurns(3.0),
        PauseExecutor(3.0),
    ]
