"""What ZooKeeper holds of partitions is possible, came there as it must, and is what controllers believe.

The shipped code says itself what holds for every state, for two that follow each other, and for a controller
between two facts; nobody else asks it. How a write must look is said here: whoever is no controller any
more changes nothing, and nobody writes over a state that it has not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from simulation.invariants.invariant import Invariant, Violation
from simulation.truth import PartitionTruth
from sparklog.controller.candidate import Candidate
from sparklog.core.controller.state.applications import KNOWN_BROKERS
from sparklog.core.controller.state.operations import OPERATIONS
from sparklog.core.controller.state.partition_rules import check_partition, follows
from sparklog.core.controller.state.znodes import CONTROLLER_EPOCH, DELETE_TOPICS, TOPIC_CONFIGS, TOPICS
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.zookeeper import ANY_VERSION, Check, Operation, SetData

OF_CONTROLLERS: Final = (
    f"{TOPICS}/",
    f"{TOPIC_CONFIGS}/",
    f"{DELETE_TOPICS}/",
    f"{OPERATIONS}/",
    f"{KNOWN_BROKERS}/",
)
"""Nodes below these are written by controllers only."""


class StatesAreSound(Invariant):
    """A partition's state is possible: its ISR has members, each of them assigned and counted once, the
    leader among them or none, and eligible replicas beside it only while it is too small. It follows from the
    one before: one version later, in no lower epoch, and within an epoch with the same leader, replicas and
    minimum. A topic's assignments change together with the states.
    """

    def on_state(self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState) -> None:
        try:
            check_partition(truth.topic_partition, state)
        except AssertionError as error:
            raise self.broken(truth, str(error)) from error
        if before is not state and not follows(before, state):
            raise self.broken(truth, f"{before} was followed by {state}")


def check_write(operations: Sequence[Operation]) -> None:
    """Raises ``Violation`` ``StateWritesAreGuarded``: whatever is written of topics, operations and wishes is
    written together with a check of the controller's epoch, and a partition's state over the version that was
    read.
    """
    touched = [
        one for one in operations if not isinstance(one, Check) and one.path.startswith(OF_CONTROLLERS)
    ]
    if not touched:
        return
    if not any(_guards(one) for one in operations):
        raise Violation("StateWritesAreGuarded", f"whoever is controller may write {touched[0]}")
    for one in touched:
        is_state = one.path.startswith(TOPICS) and one.path.endswith("/state")
        if is_state and isinstance(one, SetData) and one.version == ANY_VERSION:
            raise Violation("StateWritesAreGuarded", f"{one.path} is written over whatever is there")


def _guards(one: Operation) -> bool:
    return isinstance(one, Check) and one.path == CONTROLLER_EPOCH and one.version != ANY_VERSION


@dataclass(slots=True)
class ControllersAreSane:
    """A controller's machine holds to its own assertions between two facts."""

    _seen: dict[str, str] = field(default_factory=dict)
    """By host the last line of the machine's story: without another one it was told nothing new."""

    def look_at(self, host: str, candidate: Candidate | None) -> None:
        """Raises ``Violation``."""
        term = None if candidate is None else candidate.term
        if term is None:
            return
        machine = term._machine
        last = machine.events.lines[-1] if machine.events.lines else ""
        if last is self._seen.get(host):
            return
        self._seen[host] = last
        try:
            machine.check_invariants()
        except AssertionError as error:
            raise Violation(type(self).__name__, f"{host}: {error}") from error
