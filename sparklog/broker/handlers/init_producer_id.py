"""InitProducerId: a fresh producer id for an idempotent producer.

A producer that lost track of its sequences sends its old id, and gets that id with the next epoch (KIP-360),
or a new id if no epoch is left.
"""

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

PRODUCER_EPOCH_MAX = 32_767


def handle(call: Call, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        call.reply(InitProducerIdResponse(error_code=ErrorCode.coordinator_not_available))
        return
    if request.producer_id >= 0 and 0 <= request.producer_epoch < PRODUCER_EPOCH_MAX - 1:
        bumped = request.producer_epoch + 1
        call.reply(InitProducerIdResponse(producer_id=request.producer_id, producer_epoch=bumped))
        return
    try:
        producer_id = call.broker.producer_ids.take(call.broker.replicas.broker_epoch)
    except (OSError, KafkaError):
        # Clients retry after this error. The controller is being elected, or ZooKeeper is away.
        call.reply(InitProducerIdResponse(error_code=ErrorCode.coordinator_load_in_progress))
        return
    call.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))
