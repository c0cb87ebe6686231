"""The throttles of operations: brokers are sent what follows from ZooKeeper, and nothing of it stays.

Each message of the controller in office is looked at when it is made. It has no write under way then, so that
what it knows of operations and moves is what ZooKeeper holds.

    the rate        the lowest of the broker's stored one and of those of the operations that are under way
    the replicas    those of moves of such operations: who fetches is being added, all others send
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from simulation.invariants.invariant import Violation
from simulation.invariants.operations.operation_rules import OperationRules
from simulation.marks import Marks
from simulation.truth import PartitionTruth
from sparklog.core.controller.actions import Send, SendUpdateMetadata
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.state.operations import Operation
from sparklog.core.controller.state.znodes import (
    CONTROLLER_EPOCH,
    broker_config_path,
    decode_configs,
    decode_controller_epoch,
)
from sparklog.model.ids import BrokerId, ControllerEpoch, TopicPartition
from sparklog.testing.memory_zookeeper import ZooKeeperTree

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
SENDERS: Final = "leader.replication.throttled.replicas"
FETCHERS: Final = "follower.replication.throttled.replicas"
UNLIMITED: Final = 2**63 - 1
ENDS_WITHIN_MS: Final = 10_000
"""How long after its last move an operation may be under way, in a cluster without faults."""


@dataclass(slots=True)
class ThrottleRules:
    """``truths``: every partition that there is."""

    tree: ZooKeeperTree
    truths: Mapping[TopicPartition, PartitionTruth]
    operations: OperationRules
    marks: Marks
    _idle_since_ms: dict[int, int] = field(default_factory=dict)
    """When a plan's operation was first seen without a move, by its id."""

    # -- what ZooKeeper holds

    def rate(self, broker: BrokerId, name: str) -> int:
        """What the broker is to send or fetch at most."""
        return min([self._stored(broker, name), *(one.throttle for one in self._throttled())])

    def _stored(self, broker: BrokerId, name: str) -> int:
        path = broker_config_path(str(broker))
        node = self.tree.get(path)
        return UNLIMITED if node is None else int(decode_configs(path, node.data).get(name, UNLIMITED))

    def _throttled(self) -> list[Operation]:
        return [one for one in self.operations.running if one.throttle]

    def _plans(self) -> list[Operation]:
        return [one for one in self.operations.running if one.kind is OperationKind.reassign]

    def _moves(self, operation: Operation) -> Iterator[PartitionTruth]:
        """Its moves that are under way."""
        for partition, truth in self.truths.items():
            adding, removing = truth.assignment.adding, truth.assignment.removing
            match operation.kind:
                case OperationKind.reassign:
                    is_own = partition in operation.partitions and bool(adding or removing)
                case OperationKind.drain:
                    is_own = not set(operation.brokers).isdisjoint(removing)
                case OperationKind.fill:
                    is_own = not set(operation.brokers).isdisjoint(adding)
                case _:
                    is_own = False
            if is_own:
                yield truth

    def _replicas(self, topic: str) -> tuple[set[str], set[str]]:
        """Who sends and who fetches in throttled moves of a topic; nobody where nobody fetches."""
        senders, fetchers = set(), set()
        for truth in (one for operation in self._throttled() for one in self._moves(operation)):
            name, number = truth.topic_partition
            if name == topic:
                adding = truth.assignment.adding
                fetchers |= {f"{number}:{one}" for one in adding}
                senders |= {f"{number}:{one}" for one in truth.assignment.replicas if one not in adding}
        return (senders, fetchers) if fetchers else (set(), set())

    # -- rules

    def look_at_push(self, epoch: ControllerEpoch, send: Send) -> None:
        """A controller makes a message. Raises ``Violation`` if other throttles follow, or if two plans limit
        one move.
        """
        if not isinstance(send, SendUpdateMetadata) or self.operations.is_silent or not self._holds(epoch):
            return
        self._check_plans()
        for name in RATES:
            sent, wanted = int(send.dynamic_configs.get(name, UNLIMITED)), self.rate(send.broker, name)
            if sent != wanted:
                words = f"broker {send.broker} is sent the {name} {sent}, and {wanted} follows"
                raise Violation("ThrottlesFollowOperations", f"{words} from {_named(self._throttled())}")
        if len({one.throttle for one in self._throttled()}) > 1:
            self.marks.reach("a broker was sent the lower of two throttles")
        known = {partition.topic for partition in self.truths}
        for topic in (one for one in send.topics if one.name in known):
            sent_lists = _listed(topic.configs, SENDERS), _listed(topic.configs, FETCHERS)
            if sent_lists != self._replicas(topic.name):
                words = f"{topic.name} is sent with the throttled replicas {sent_lists}"
                raise Violation("ThrottlesFollowOperations", f"{words}, not {self._replicas(topic.name)}")

    def _holds(self, epoch: ControllerEpoch) -> bool:
        """Whether no later controller has the office."""
        node = self.tree.get(CONTROLLER_EPOCH)
        return node is not None and decode_controller_epoch(node.data) == epoch

    def _check_plans(self) -> None:
        plans = self._plans()
        named = [partition for one in plans for partition in one.partitions]
        if len(named) > len(set(named)):
            raise Violation("PlansShareNoMove", f"{_named(plans)} limit the same of {sorted(named)}")

    def look_at_rest(self, now_ms: int) -> None:
        """Once faults are over, again and again. Raises ``Violation`` if a plan outlives its moves."""
        idle = [one for one in self._plans() if not any(self._moves(one))]
        self._idle_since_ms = {one.id: self._idle_since_ms.get(one.id, now_ms) for one in idle}
        for one in idle:
            since_ms = now_ms - self._idle_since_ms[one.id]
            if since_ms > ENDS_WITHIN_MS and not self.operations.is_silent:
                raise Violation("ThrottlesEndWithTheirMoves", f"{one} has had no move for {since_ms} ms")


def _listed(configs: Mapping[str, str], name: str) -> set[str]:
    return {one for one in configs.get(name, "").split(",") if one}


def _named(operations: Iterable[Operation]) -> str:
    return ", ".join(f"{one} with {one.throttle} bytes a second" for one in operations) or "no operation"
