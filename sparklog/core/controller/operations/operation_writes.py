"""The writes of an operation: its own node, and the wishes of brokers. Each node's version is checked."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.core.controller.state.applications import KnownBroker, encode_known, known_broker_path
from sparklog.core.controller.state.image import BrokerNoted, Change, ClusterImage
from sparklog.core.controller.state.operations import (
    ENDED_KEPT_MAX,
    Operation,
    OperationForgotten,
    OperationWritten,
    Phase,
    encode_operation,
    operation_path,
)
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.steps import AdvanceOperation, Decision
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import Create, Delete, SetData
from sparklog.model.zookeeper import Operation as ZooKeeperOperation

FOREGOING_MAX: Final = 20
"""How many nodes of ended operations one write deletes."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What an operation waits for, in words, and the topics that these name."""

    words: str
    topics: tuple[str, ...] = ()


Advance = Decision | tuple[Wait, ...]
"""The next write of an operation, or what it waits for; nothing while something moves."""


@dataclass(slots=True)
class OperationWrites:
    """What becomes one ZooKeeper write, and the changes of the image that follow it."""

    image: ClusterImage
    operations: list[ZooKeeperOperation] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def put(self, operation: Operation) -> None:
        path, data = operation_path(operation.id), encode_operation(operation)
        is_new = operation.version < 0
        self.operations.append(Create(path, data) if is_new else SetData(path, data, operation.version))
        self.changes.append(OperationWritten(replace(operation, version=operation.version + 1)))

    def forget_ended(self) -> None:
        """Those that ended before the last hundred, some of them with each new operation."""
        ended = sorted(one.id for one in self.image.operations.values() if not one.is_running)
        for old in ended[: max(0, len(ended) - ENDED_KEPT_MAX)][:FOREGOING_MAX]:
            self.operations.append(Delete(operation_path(old)))
            self.changes.append(OperationForgotten(old))

    def wish(self, broker: BrokerId, wish: Wish) -> None:
        """A wish to serve also asks for a start, now."""
        before = self.image.known.get(broker, KnownBroker())
        starts = before.starts + (wish is Wish.serving)
        after = replace(before, wish=wish, starts=starts)
        path, data = known_broker_path(broker), encode_known(after)
        self.operations.append(
            Create(path, data) if before.version < 0 else SetData(path, data, before.version)
        )
        self.changes.append(BrokerNoted(broker, replace(after, version=before.version + 1)))

    def decision(self, operation: Operation, checks: Iterable[ZooKeeperOperation] = ()) -> Decision:
        step = AdvanceOperation(operation.id)
        return Decision(step, (*checks, *self.operations), tuple(self.changes))


def put(image: ClusterImage, operation: Operation) -> Decision:
    """The write of the operation's node alone."""
    writes = OperationWrites(image)
    writes.put(operation)
    return writes.decision(operation)


def next_broker(image: ClusterImage, operation: Operation) -> Decision:
    """Its present broker is done."""
    return put(image, replace(operation, position=operation.position + 1, phase=Phase.begun))
