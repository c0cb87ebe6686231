"""Operations on brokers do what they promise, however often controllers change.

Each write of an operation or a wish is looked at before it is applied, over what ZooKeeper holds then, and
judged once it has been: a write that is refused does no harm.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulation.invariants.invariant import Violation
from simulation.invariants.presence import CountsWhoIsThere
from simulation.marks import Marks
from simulation.truth import PartitionTruth
from sparklog.controller.candidate import Candidate
from sparklog.core.controller.events.cluster_event import NumberedEvent
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.state.applications import KNOWN_BROKERS, decode_known, known_broker_path
from sparklog.core.controller.state.operations import (
    OPERATIONS,
    Operation,
    OperationState,
    Phase,
    decode_operation,
)
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.state.znodes import broker_path
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, ControllerEpoch, TopicPartition
from sparklog.model.zookeeper import Create, SetData
from sparklog.model.zookeeper import Operation as Write
from sparklog.testing.memory_zookeeper import ZooKeeperTree

PHASES: Final = tuple(Phase)

WATCHED: Final = (f"{OPERATIONS}/", f"{KNOWN_BROKERS}/")
MARKS_OF_ENDS: Final = {
    OperationKind.stop: "a broker was stopped on demand",
    OperationKind.restart: "brokers were restarted on demand",
    OperationKind.drain: "a broker was drained",
    OperationKind.fill: "a broker was filled",
    OperationKind.remove: "a broker was removed",
    OperationKind.reassign: "a plan's throttle ended with its moves",
}


@dataclass(slots=True)
class _Seen:
    """A write that is about to be applied: the nodes, and what would be wrong with it."""

    nodes: dict[str, bytes]
    operations: list[Operation]
    problems: list[tuple[str, str]]


@dataclass(slots=True)
class OperationRules:
    """``truths``: every partition that there is."""

    tree: ZooKeeperTree
    truths: Mapping[TopicPartition, PartitionTruth]
    presence: CountsWhoIsThere
    marks: Marks
    known: dict[int, Operation] = field(default_factory=dict)
    is_silent: bool = False
    """Whether it accuses nobody."""
    _seen: _Seen | None = None
    _events: dict[ControllerEpoch, tuple[NumberedEvent, ...]] = field(default_factory=dict)

    @property
    def running(self) -> list[Operation]:
        return [one for one in self.known.values() if one.is_running]

    @property
    def may_move(self) -> bool:
        """Whether an operation that is under way moves replicas."""
        return any(one.kind in (OperationKind.drain, OperationKind.fill) for one in self.running)

    def wish(self, broker: BrokerId) -> Wish:
        node = self.tree.get(known_broker_path(broker))
        return Wish.serving if node is None else decode_known(broker, node.data, 0).wish

    # -- writes

    def look_at_write(self, writes: Sequence[Write]) -> None:
        """Before it is applied; it may be refused."""
        written = [one for one in writes if isinstance(one, Create | SetData)]
        nodes = {one.path: one.data for one in written if one.path.startswith(WATCHED)}
        if not nodes:
            return
        operations = [
            decode_operation(_number(path), data, 0)
            for path, data in nodes.items()
            if path.startswith(f"{OPERATIONS}/")
        ]
        problems = [problem for one in operations for problem in self._of_operation(one)]
        for path, data in nodes.items():
            if path.startswith(f"{KNOWN_BROKERS}/"):
                broker = BrokerId(_number(path))
                wish = decode_known(broker, data, 0).wish
                if wish is not self.wish(broker):
                    problems += self._of_wish(broker, wish, operations)
        self._seen = _Seen(nodes, operations, problems)

    def look_at_zookeeper(self) -> None:
        """After a transaction. Raises ``Violation`` if it was a write that should not be."""
        seen, self._seen = self._seen, None
        if seen is None or not all(self._holds(path, data) for path, data in seen.nodes.items()):
            return
        if seen.problems and not self.is_silent:
            raise Violation(*seen.problems[0])
        for operation in seen.operations:
            self.known[operation.id] = operation
            self._mark(operation)

    def _holds(self, path: str, data: bytes) -> bool:
        node = self.tree.get(path)
        return node is not None and node.data == data

    def _mark(self, operation: Operation) -> None:
        if operation.state is OperationState.done and operation.kind in MARKS_OF_ENDS:
            self.marks.reach(MARKS_OF_ENDS[operation.kind])
        if operation.state is OperationState.cancelled:
            self.marks.reach("an operation was cancelled")

    # -- rules

    def _of_operation(self, operation: Operation) -> Iterator[tuple[str, str]]:
        before, is_plan = self.known.get(operation.id), operation.kind is OperationKind.reassign
        if before is None:
            if not is_plan and any(one.request == operation.request for one in self.known.values()):
                yield "OperationsBeginOnce", f"{operation} has begun before: {operation.request}"
        elif not before.is_running:
            yield "OperationsEndOnce", f"{operation} is written, and has ended before: {before.state}"
        elif operation.is_running and not is_plan and _step(operation) <= _step(before):
            words = f"{operation} comes from {_step(before)} to {_step(operation)}"
            yield "OperationsBeginOnce", words

    def _of_wish(
        self, broker: BrokerId, wish: Wish, operations: Sequence[Operation]
    ) -> Iterator[tuple[str, str]]:
        if wish is Wish.serving:
            return
        named = [str(truth.topic_partition) for truth, state in self._states() if _names(state, broker)]
        if wish in (Wish.drained, Wish.removed) and named:
            yield "DrainedBrokersAreEmpty", f"broker {broker} is {wish}, and {named} name it"
        if wish is Wish.removed and self.tree.exists(broker_path(broker)) is not None:
            yield "DrainedBrokersAreEmpty", f"broker {broker} is {wish}, and serves"
        if wish is Wish.stopped:
            for operation in operations:
                yield from self._of_stop(broker, operation)

    def _of_stop(self, broker: BrokerId, operation: Operation) -> Iterator[tuple[str, str]]:
        is_alive = self.tree.exists(broker_path(broker)) is not None
        for truth, state in self._states():
            where = truth.topic_partition
            left = [one for one in state.isr if one != broker and self._stays(one)]
            minimum = min(state.min_insync_replicas, len(state.replicas))
            if is_alive and not operation.accepts_unavailable and broker in state.isr and len(left) < minimum:
                words = f"{where} has {left} in sync by the stop of {broker}; the minimum is {minimum}"
                yield "OperationsKeepTheMinimum", words
            ignored = {*state.isr, *state.adding, broker, *operation.away}
            missing = [one for one in state.replicas if one not in ignored and self.wish(one) is Wish.serving]
            if operation.kind is OperationKind.restart and missing and where not in operation.lagging:
                words = f"{where} lacks {missing} in its ISR as {operation} stops broker {broker}"
                yield "RestartsWaitForTheIsr", words

    def _stays(self, broker: BrokerId) -> bool:
        return self.wish(broker) is Wish.serving and self.presence.may_be_there(broker)

    def _states(self) -> Iterator[tuple[PartitionTruth, PartitionState]]:
        return ((truth, truth.state) for truth in self.truths.values() if truth.state is not None)

    # -- events

    def look_at_controller(self, candidate: Candidate | None) -> None:
        """After a step of it: a term's events are numbered one after the other. Raises ``Violation``."""
        if candidate is not None and candidate.term is not None:
            self._look_at_events(candidate.term.epoch, candidate.term._events.kept)

    def _look_at_events(self, term: ControllerEpoch, kept: tuple[NumberedEvent, ...]) -> None:
        if term not in self._events and self.running:
            self.marks.reach("a controller took over with an operation under way")
        before = self._events.get(term, ())
        self._events[term] = kept
        if kept is before:
            return
        last = before[-1].number if before else 0
        new = [one.number for one in kept[-(len(kept) - len(before)) :]] if len(kept) > len(before) else []
        if new != list(range(last + 1, last + 1 + len(new))) or kept[: len(before)] != before:
            raise Violation("EventsAreNumbered", f"in term {term} events {new} follow event {last}")


def _number(path: str) -> int:
    return int(path.rpartition("/")[2])


def _step(operation: Operation) -> tuple[int, int]:
    return operation.position, PHASES.index(operation.phase)


def _names(state: PartitionState, broker: BrokerId) -> bool:
    return broker in {*state.replicas, *state.isr, *state.eligible}
