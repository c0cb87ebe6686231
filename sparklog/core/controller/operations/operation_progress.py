"""How far an operation is, in numbers: brokers that are done, for drains and fills replicas, for a
plan partitions.
"""

from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.moves import moves_of
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import Operation, Phase

_BY_REPLICAS = (OperationKind.drain, OperationKind.fill)


def total_of(image: ClusterImage, operation: Operation) -> int:
    """What there is to do when it begins."""
    if operation.kind is OperationKind.drain:
        return sum(image.counts.replicas[broker] for broker in operation.brokers)
    if operation.kind is OperationKind.fill:
        return _lacking(image, operation)
    return len(operation.brokers)


def done_of(image: ClusterImage, operation: Operation) -> int:
    """What is done of that now; topics that come or go meanwhile change it."""
    if operation.kind is OperationKind.reassign:
        return operation.total - len(moves_of(image, operation))
    if operation.kind not in _BY_REPLICAS:
        return _restarted(image, operation) if operation.kind is OperationKind.restart else operation.position
    if operation.kind is OperationKind.drain:
        left = sum(image.counts.replicas[broker] for broker in operation.brokers)
    else:
        left = _lacking(image, operation) + len(moves_of(image, operation))
    return max(0, operation.total - left)


def _restarted(image: ClusterImage, operation: Operation) -> int:
    """A broker is done when it is in sync again: until then the next one, or the end, waits for it."""
    if not operation.position or operation.phase is not Phase.begun:
        return operation.position
    last, counts = operation.brokers[operation.position - 1], image.counts
    return operation.position - (counts.in_sync[last] < counts.replicas[last])


def _lacking(image: ClusterImage, operation: Operation) -> int:
    """How many replicas the operation's brokers have less than their share."""
    brokers = [one for one in image.brokers if image.takes_replicas(one)]
    share = sum(image.counts.replicas[one] for one in brokers) // max(1, len(brokers))
    return sum(max(0, share - image.counts.replicas[one]) for one in operation.brokers)
