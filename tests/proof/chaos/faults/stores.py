"""Faults of the remote store: it dies, hangs, is slow, or is full. Brokers go on and lose nothing."""

import contextlib
import signal
import threading
from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar, Final

from chaos.machines.processes import send
from chaos.nemesis import STORE, STORE_DISK, Cluster, Nemesis

PAUSES: Final = (1.0, 3.0)
"""In session time-outs."""

TURN_S: Final = 0.5
RUNS: Final = (0.05, 0.2)
"""Shares of each turn in which a slow store runs."""


class KillStore(Nemesis):
    """SIGKILL, and it stays away for a while. What it has acknowledged is in its files."""

    kind = "kill-store"
    needs: ClassVar = frozenset({STORE})

    def __init__(self) -> None:
        self._release: Callable[[], None] = lambda: None

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.choice((0.2, 1.0, 3.0)) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        self._release = cluster.release_store
        cluster.hold_store()
        pid = cluster.store_pid()
        send(pid, signal.SIGKILL)
        return f"the store (process {pid})"

    def end(self) -> None:
        self._release()


class PauseStore(Nemesis):
    """SIGSTOP: connections stay open, and nothing is answered."""

    needs: ClassVar = frozenset({STORE})

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.kind = f"pause-store-{factor:g}x"
        self._paused = 0

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return self.factor * cluster.session_timeout_s * rng.uniform(0.9, 1.1)

    def begin(self, cluster: Cluster, rng: Random) -> str:
        self._paused = cluster.store_pid()
        send(self._paused, signal.SIGSTOP)
        return f"the store (process {self._paused})"

    def end(self) -> None:
        if self._paused:
            send(self._paused, signal.SIGCONT)
            self._paused = 0


class StoreSlow(Nemesis):
    """The store runs for a small part of each half second only."""

    kind = "store-slow"
    needs: ClassVar = frozenset({STORE})

    def __init__(self) -> None:
        self._ends = threading.Event()
        self._turns: threading.Thread | None = None

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(1.0, 4.0) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        pid, share = cluster.store_pid(), rng.choice(RUNS)
        self._ends = threading.Event()
        self._turns = threading.Thread(
            target=self._slow, args=(pid, share, self._ends), name="store-slow", daemon=True
        )
        self._turns.start()
        return f"the store (process {pid}) runs {share:.0%} of the time"

    @staticmethod
    def _slow(pid: int, share: float, ends: threading.Event) -> None:
        try:
            while not ends.is_set():
                send(pid, signal.SIGSTOP)
                ends.wait(TURN_S * (1 - share))
                send(pid, signal.SIGCONT)
                ends.wait(TURN_S * share)
        finally:
            send(pid, signal.SIGCONT)

    def end(self) -> None:
        self._ends.set()
        if self._turns is not None:
            self._turns.join()
            self._turns = None


class StoreFull(Nemesis):
    """Not a block is left of the store's disk."""

    kind = "store-full"
    needs: ClassVar = frozenset({STORE, STORE_DISK})

    def __init__(self) -> None:
        self._mend = contextlib.ExitStack()

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.choice((0.5, 1.0, 3.0)) * cluster.session_timeout_s

    def begin(self, cluster: Cluster, rng: Random) -> str:
        self._mend.callback(cluster.free_store)
        cluster.fill_store()
        return "the store's disk"

    def end(self) -> None:
        self._mend.close()


def all_of_stores() -> Sequence[Nemesis]:
    """Every nemesis of this file."""
    return [KillStore(), *(PauseStore(factor) for factor in PAUSES), StoreSlow(), StoreFull()]
