"""What goes wrong, as an explicit list drawn from the seed: each fault stands alone and can be left out.

A fault begins at a time, strikes a target, and ends by itself. The list is what a failing run is shrunk by,
so nothing else in a run may depend on how many faults there are.

Destructive faults keep to what replication promises (the *fault atlas*): a power cut strikes only where
min.insync.replicas is 2, one replica at a time, and never the last of an ISR; the next one waits until the
replica is counted again. Where the atlas forbids it, the machine only loses its process. The same holds for a
log that rots. What an fsync should have saved is lost only while another member of the ISR has it. What can
be made again (indexes, snapshots, checkpoints) rots at any time, and writes fail and disks fill whenever they
like.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from simulation.plans.client_mix import NO_MIX, ClientMix
from simulation.plans.operations import OperationKind

Kind = Literal[
    "kill broker",
    "kill broker in a write",
    "stop broker",
    "cut the power",
    "cut all power",
    "pause broker",
    "fail a write",
    "fail an fsync",
    "fail a checkpoint",
    "fill the disk",
    "rot a log",
    "rot what derives",
    "rot a batch",
    "slow the disk",
    "wipe the disk",
    "empty a disk",
    "reboot",
    "replace broker",
    "launch twice",
    "kill controller",
    "pause controller",
    "cut link",
    "cut one way",
    "isolate broker",
    "cut from controllers",
    "hang connections",
    "lose frames",
    "lose answers",
    "repeat requests",
    "flip bits",
    "delay frames",
    "delay answers",
    "cut zookeeper",
    "expire session",
    "lose zookeeper answers",
    "delay watches",
    "lag zookeeper",
    "jump clock",
    "drift clock",
    "lose the store",
    "slow the store",
    "fail calls of the store",
    "list the store late",
]


LEADER: Final = "the leader"
FIRST_FOLLOWER: Final = "the first follower"
LAST_FOLLOWER: Final = "the last follower"
"""Targets that plots name by what they do for the first partition when the fault strikes."""

THAT_LEADER: Final = "that leader"
"""Whom the last fault struck that was meant for the leader."""

COORDINATOR: Final = "the coordinator"
"""Who leads the first partition of ``__consumer_offsets`` when the fault strikes."""

TRANSACTION_COORDINATOR: Final = "the coordinator of transactions"
"""Who leads the first partition of ``__transaction_state`` when the fault strikes."""

THAT_COORDINATOR: Final = "that coordinator"
"""Whom the last fault struck that was meant for a coordinator."""

CONTROLLER: Final = "the controller"

STORE: Final = "the store"

EVERY_CLIENT: Final = "every client"
"""One end of a link, for all that have called somebody by then."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``amount`` means what the kind makes of it: a probability, milliseconds, a number of writes."""

    number: int
    at_ms: int
    kind: Kind
    target: str
    other: str
    duration_ms: int
    amount: float

    def __str__(self) -> str:
        other = f" and {self.other}" if self.other else ""
        where = f"{self.target}{other}"
        return f"at {self.at_ms} ms for {self.duration_ms} ms: {self.kind} ({where}, {self.amount:g})"


DESTRUCTIVE_KINDS: Final[frozenset[Kind]] = frozenset(
    {"cut the power", "reboot", "wipe the disk", "rot a log", "rot a batch", "replace broker"}
)
"""Those that take what one replica has, where others have it: see ``Plan.may_lose_one``."""

BROKER_KINDS: Final[tuple[Kind, ...]] = (
    "kill broker",
    "kill broker in a write",
    "stop broker",
    "cut the power",
    "reboot",
    "replace broker",
    "launch twice",
    "pause broker",
    "isolate broker",
    "cut from controllers",
)
DISK_KINDS: Final[tuple[Kind, ...]] = (
    "fail a write",
    "fail an fsync",
    "fail a checkpoint",
    "fill the disk",
    "rot a log",
    "rot what derives",
    "rot a batch",
    "slow the disk",
    "wipe the disk",
)
CONTROLLER_KINDS: Final[tuple[Kind, ...]] = ("kill controller", "pause controller")
LINK_KINDS: Final[tuple[Kind, ...]] = (
    "cut link",
    "cut one way",
    "hang connections",
    "lose frames",
    "lose answers",
    "repeat requests",
    "delay frames",
    "delay answers",
)
ZOOKEEPER_KINDS: Final[tuple[Kind, ...]] = (
    "cut zookeeper",
    "expire session",
    "lose zookeeper answers",
    "delay watches",
    "lag zookeeper",
)
STORE_KINDS: Final[tuple[Kind, ...]] = (
    "lose the store",
    "slow the store",
    "fail calls of the store",
    "list the store late",
)
SWARM_KINDS: Final[tuple[Kind, ...]] = (
    *BROKER_KINDS,
    *DISK_KINDS,
    *CONTROLLER_KINDS,
    *LINK_KINDS,
    *ZOOKEEPER_KINDS,
    "jump clock",
    "drift clock",
)
ALL_KINDS: Final[tuple[Kind, ...]] = (
    *SWARM_KINDS,
    *STORE_KINDS,
    "flip bits",
    "cut all power",
    "empty a disk",
)
"""Those beside the swarm are drawn by themselves: one kind more in the swarm would make other runs of all
seeds."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """Where a certain bug shows: a plot by number, or nothing but these kinds; with these settings, a main
    topic of these configs, these clients, and administrators that do nothing but this.
    """

    kinds: tuple[Kind, ...] = ()
    plot: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    is_compacted: bool = False
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    operations: tuple[OperationKind, ...] = ()
    clients: ClientMix = NO_MIX
    groups: float = 0.0
    """Share of the seeds that have groups."""
    transactions: float = 0.0
    """Share of the seeds that have transactional producers."""
    producers: Mapping[str, Any] = field(default_factory=dict)
    """What all transactional producers have in common: fields of ``TransactionPlan``, by name."""
    writes: float = 0.0
    """Share of the seeds that have apps with atomic writes."""
    tier: float = 0.0
    """Share of the seeds whose main topic has a remote store."""
    wishes: float = 0.0
    """Share of the seeds that have operators."""
    throttles: float = 0.0
    """Share of those whose operators also move partitions with a throttle."""
    typed: float = 0.0
    """Share of the seeds that have a typed topic."""
    conditions: float = 0.0
    """Share of those with readers of columns that have readers with a condition, too."""
    principals: float = 0.0
    """Share of the seeds that have principals and access rules."""
    names: float = 0.0
    """Share of these in which teams use names of atomic writes."""


NO_HUNT: Final = Hunt()
