"""Operations on brokers, as ``/operations/ID`` holds them: what was asked for, and how far it is.

A node is written when the operation begins, with each step that must not be done twice, and at the end. What
follows from the rest of the cluster's state is not in it, such as which replicas must still move: a new
controller works it out again. The nodes of operations under way are kept, and those of the last
``ENDED_KEPT_MAX`` that ended.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.state.node_json import bad_node, decode_node, encode_node
from sparklog.model.ids import BrokerId, TopicPartition

OPERATIONS: Final = "/operations"
ENDED_KEPT_MAX: Final = 100


class OperationState(StrEnum):
    running = "running"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"


class Phase(StrEnum):
    """How far an operation is with the broker at its ``position``."""

    begun = "begun"
    """Nothing is written yet."""
    stopping = "stopping"
    """The wish says that it stops."""
    starting = "starting"
    """The wish says that it serves, again."""


@dataclass(frozen=True, slots=True)
class Operation:
    """``brokers`` are worked on in this order; those before ``position`` are done."""

    id: int
    kind: OperationKind
    brokers: tuple[BrokerId, ...] = ()
    request: str = ""
    """Drawn by the requester: a request that is sent again begins nothing."""
    requested_by: str = ""
    since_ms: int = 0
    """When it was asked for, in milliseconds since 1970."""
    accepts_unavailable: bool = False
    throttle: int = 0
    """What a broker sends or fetches at most for its moves, in bytes a second; 0: no limit."""
    state: OperationState = OperationState.running
    position: int = 0
    phase: Phase = Phase.begun
    reason: str = ""
    """Why it failed."""
    total: int = 0
    """How much there was to do when it began: brokers, or replicas to move."""
    done: int = 0
    """How much of that was done when it ended."""
    away: tuple[BrokerId, ...] = ()
    """Brokers that were not there when it began: a restart does not wait for their replicas."""
    lagging: tuple[TopicPartition, ...] = ()
    """Partitions that had another replica out of sync when it began: a restart does not wait for them."""
    partitions: tuple[TopicPartition, ...] = ()
    """The partitions of a plan that it limits; other operations find theirs in the image."""
    version: int = -1
    """That of its node; -1 before it is written."""

    @property
    def is_running(self) -> bool:
        return self.state is OperationState.running

    @property
    def broker(self) -> BrokerId | None:
        """The one that is worked on; None when all are done."""
        return self.brokers[self.position] if self.position < len(self.brokers) else None

    def __str__(self) -> str:
        if self.kind is OperationKind.reassign:
            subject = "of 1 partition" if self.total == 1 else f"of {self.total} partitions"
        else:
            subject = ", ".join(map(str, self.brokers))
        return f"operation {self.id} ({self.kind} {subject})"


@dataclass(frozen=True, slots=True)
class OperationWritten:
    """A change of the cluster's image: the node of this operation exists, and holds it."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class OperationForgotten:
    """A change of the cluster's image: the node of this operation, which had ended, is deleted."""

    operation: int


def operation_path(operation: int) -> str:
    return f"{OPERATIONS}/{operation}"


def encode_operation(operation: Operation) -> bytes:
    return encode_node(
        {
            "version": 1,
            "kind": operation.kind.value,
            "brokers": list(operation.brokers),
            "request": operation.request,
            "requested_by": operation.requested_by,
            "since_ms": operation.since_ms,
            "accepts_unavailable": operation.accepts_unavailable,
            "throttle": operation.throttle,
            "state": operation.state.value,
            "position": operation.position,
            "phase": operation.phase.value,
            "reason": operation.reason,
            "total": operation.total,
            "done": operation.done,
            "away": list(operation.away),
            "lagging": _by_topic(operation.lagging),
            "partitions": _by_topic(operation.partitions),
        }
    )


def decode_operation(operation: int, data: bytes, version: int) -> Operation:
    """``version`` is that of the node."""
    path = operation_path(operation)
    document = decode_node(path, data)
    try:
        return Operation(
            id=operation,
            kind=OperationKind(document["kind"]),
            brokers=_ids(document["brokers"]),
            request=str(document["request"]),
            requested_by=str(document["requested_by"]),
            since_ms=int(document["since_ms"]),
            accepts_unavailable=bool(document["accepts_unavailable"]),
            throttle=int(document["throttle"]),
            state=OperationState(document["state"]),
            position=int(document["position"]),
            phase=Phase(document["phase"]),
            reason=str(document["reason"]),
            total=int(document["total"]),
            done=int(document["done"]),
            away=_ids(document["away"]),
            lagging=_partitions(document["lagging"]),
            partitions=_partitions(document.get("partitions", {})),
            version=version,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad_node(path, data, error) from None


def _ids(values: Iterable[Any]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(int(value)) for value in values)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics


def _partitions(topics: Mapping[str, Iterable[int]]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(str(topic), int(number)) for topic, numbers in topics.items() for number in numbers
    )
