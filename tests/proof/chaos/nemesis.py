"""What a fault is to the run, and what a fault may know of the cluster under it.

A nemesis is asked once whether this machine allows it (``probe``), and then strikes any number of times:
``begin`` strikes and says in words whom and how, ``end`` takes the fault away. Between the two the run waits
for ``seconds``; after ``end`` it waits until every partition is led and every ISR is full, and only then the
next comes. Whatever ``begin`` draws it draws from ``rng``, so that a seed repeats the choices; who leads a
partition at that moment is the cluster's affair.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar, Protocol

from chaos.access import Access
from chaos.report import CrashPoint

APPLICATION = "application"
"""The driver of a Spark application, with its supervisor, launches the brokers."""

EXECUTORS = "executors"
"""Each broker has an executor, with a JVM of its own, that can be killed without the others."""

NAMESPACES = "namespaces"
"""Each broker's worker is in a network namespace of its own."""

DISKS = "disks"
"""Each broker's data is on a file system of its own."""

CLOCKS = "clocks"
"""Each broker's wall clock can be set without the others'."""

SYNCED = "synced acknowledgements"
"""What is acknowledged is on disks (``log.flush.acks=fsync``): all of them may lose their power at once."""

SPARES = "spares"
"""A broker can be launched a second time, with a disk of its own, while its first process lives."""

INJECTION = "injection"
"""Each broker's calls to the disk can be made to fail."""

CRASH_POINTS = "crash points"
"""Each broker's calls to the disk are counted, and can be its last."""


LOGINS = "logins"
"""Clients log in, and rules say what each may do."""

ROOM = "more brokers than replicas"
"""A broker can be drained: there are others for its replicas."""

STORE = "remote store"
"""Some topics have their history in a remote store, a process of its own."""

STORE_DISK = "disk of the store"
"""That store's objects are on a file system of its own."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker and the process that serves it now."""

    id: int
    pid: int
    host: str
    port: int
    log_dirs: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Controller:
    """A process that is the controller or would be."""

    pid: int
    is_active: bool
    hosts_brokers: bool
    """Whether it is also the driver of the Spark application whose executors the brokers are in."""


class Cluster(Protocol):
    """The running cluster, as a nemesis sees it."""

    @property
    def features(self) -> frozenset[str]:
        """What this cluster offers to faults: EXECUTORS, NAMESPACES, ..."""

    @property
    def folder(self) -> Path:
        """The run's folder; everything a nemesis writes goes below it."""

    @property
    def session_timeout_s(self) -> float:
        """After how long ZooKeeper takes a silent broker for dead."""

    @property
    def access(self) -> Access:
        """How clients reach it."""

    @property
    def zookeeper(self) -> str:
        """ZooKeeper's connect string."""

    def broker_ids(self) -> list[int]:
        """All of them, dead ones included."""

    def brokers(self) -> Mapping[int, Broker]:
        """Who serves, as the supervisor last heard."""

    def executor_pid(self, broker_id: int) -> int:
        """The JVM of the executor that the broker is in; needs EXECUTORS."""

    def controllers(self) -> list[Controller]: ...

    def zookeeper_pid(self) -> int: ...

    def hold_zookeeper(self) -> None:
        """Do not start it again when it dies, until ``release_zookeeper``."""

    def release_zookeeper(self) -> None: ...

    def store_pid(self) -> int:
        """The remote store; needs STORE."""

    def hold_store(self) -> None:
        """Do not start it again when it dies, until ``release_store``; needs STORE."""

    def release_store(self) -> None: ...

    def fill_store(self) -> None:
        """Take all room of the store's disk, until ``free_store``; needs STORE_DISK."""

    def free_store(self) -> None: ...

    @property
    def security(self) -> "Security":
        """What an administrator can change of it; needs LOGINS."""

    def leaders(self) -> Mapping[tuple[str, int], int]:
        """Who leads each partition of the topics that clients use; one without a leader is left out."""

    def registration(self, broker_id: int) -> int | None:
        """A number of the broker's registration, another one after each start; None if there is none, or
        nobody who knows.
        """

    def launch_elsewhere(self, broker_id: int) -> int:
        """Launch the broker anew with an empty disk and let go of the process that it has; needs SPARES.
        That process goes on, or does not; its id.
        """

    def wait_replaced(self, broker_id: int, old_pid: int, timeout_s: float) -> bool:
        """Wait until another process than ``old_pid`` serves the broker."""


class Security(Protocol):
    """Changes that an administrator makes while clients are at work. What should follow and does not is noted
    by itself, as a finding.
    """

    def renew(self) -> str:
        """Give brokers and administrator other certificates; what of."""

    def check_renewed(self, cluster: Cluster) -> None:
        """Every broker that is there must show the new one."""

    def begin_rotation(self, team: str) -> str:
        """Give the team another password beside the old one, and have its clients log in by that."""

    def end_rotation(self) -> None:
        """Delete the old one: nobody may log in by it any more."""

    def call_in_loan(self, cluster: Cluster) -> str:
        """Take the guest's rule away: every broker must know it soon."""

    def lend(self, cluster: Cluster) -> None:
        """Give it back, if it is taken: every broker must know it soon."""


class Nemesis(ABC):
    """One kind of fault. An instance strikes one at a time: ``begin``, then ``end``, then perhaps again."""

    kind: str
    """Its name in schedules, histories and tables, such as ``kill-leader``."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Features without which the run counts it as not run."""

    is_alone: ClassVar[bool] = False
    """Whether no other may strike while it lasts, since the answer that it waits for would be unknown."""

    weight: ClassVar[int] = 1
    """How often it is drawn, compared with the others."""

    def probe(self) -> str | None:
        """Why this machine does not allow it, in words; None if it does. Leaves nothing behind."""
        return None

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        """How long it lasts; 0 for what is over at once, as a kill is."""
        return rng.uniform(1.0, 6.0)

    @property
    def points(self) -> Sequence[CrashPoint]:
        """The crash points that it set so far; most kinds have none."""
        return ()

    @property
    def operations(self) -> Mapping[str, int]:
        """How the operations ended that it began, and how often; most kinds begin none."""
        return {}

    def settle(self) -> Sequence[str]:
        """Bring to its end what it began, once no fault of the window is left; what is wrong then."""
        return ()

    @abstractmethod
    def begin(self, cluster: Cluster, rng: Random) -> str:
        """Strike. The answer says whom and how: ``broker 2 (process 4711), which leads a/0, b/3``."""

    @abstractmethod
    def end(self) -> None:
        """Take the fault away. Called after every ``begin``, one that failed included; twice does no harm."""
