"""Blocks of producer ids: each is handed to one broker, once, by a compare-and-set."""

from sparklog.core.controller.commands.broker_commands import AllocateProducerIdsResult
from sparklog.core.controller.state.image import ClusterImage, ProducerIdsAllocated
from sparklog.core.controller.state.znodes import (
    PRODUCER_ID_BLOCK,
    PRODUCER_ID_BLOCK_SIZE,
    PRODUCER_ID_MAX,
    ProducerIdBlock,
    encode_producer_id_block,
)
from sparklog.core.controller.steps import AllocateIds, Decision
from sparklog.model.errors import ErrorCode
from sparklog.model.zookeeper import Create, Operation, SetData


def decide_block(image: ClusterImage, step: AllocateIds) -> Decision | AllocateProducerIdsResult:
    """The next block, or the refusal. A block whose write was lost is skipped, never given twice."""
    request = step.request
    if not image.is_current(request.broker, request.broker_epoch):
        return AllocateProducerIdsResult(ErrorCode.stale_broker_epoch)
    first = 0 if image.producer_block is None else image.producer_block.last + 1
    last = first + PRODUCER_ID_BLOCK_SIZE - 1
    if last > PRODUCER_ID_MAX:
        return AllocateProducerIdsResult(ErrorCode.unknown_server_error)
    block = ProducerIdBlock(request.broker, first, last)
    data = encode_producer_id_block(block)
    write: Operation = SetData(PRODUCER_ID_BLOCK, data, image.producer_block_version)
    version = image.producer_block_version + 1
    if image.producer_block is None:
        write, version = Create(PRODUCER_ID_BLOCK, data), 0
    result = AllocateProducerIdsResult(ErrorCode.none, first, PRODUCER_ID_BLOCK_SIZE)
    return Decision(step, (write,), (ProducerIdsAllocated(block, version),), result)
