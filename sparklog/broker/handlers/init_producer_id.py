"""InitProducerId: a producer id and epoch for an idempotent or transactional producer.

A producer without a transactional id gets a fresh id with epoch 0 at each request. The id and epoch that it
names are ignored, as in Kafka: a broker cannot know the owner of an id. If the named id were given again, two
producers would share it, and batches of one would be taken for retries of the other's: acknowledged, and
lost.

A producer with a transactional id is served by that id's coordinator, which is asked again with a fresh id if
it needs one. The coordinator knows the owner, so there a named identity counts (KIP-360).
"""

from dataclasses import replace

from sparklog.broker.call import Call
from sparklog.broker.handlers.transactions.transaction_calls import ask, error_of_version, is_too_long
from sparklog.core.transaction_coordinator.requests import InitProducerId, ProducerIdentity
from sparklog.core.transaction_coordinator.responses import InitializedProducer
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(call: Call, request: InitProducerIdRequest) -> None:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        call.reply(InitProducerIdResponse(error_code=ErrorCode.invalid_request))
        return
    if request.transactional_id is not None:
        _initialise_transactions(call, request, request.transactional_id)
        return
    call.reply(answer_without_transactional_id(call, request))


def answer_without_transactional_id(call: Call, _request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A fresh id, whatever identity the request names."""
    producer_id = fresh_id(call)
    if isinstance(producer_id, ErrorCode):
        return InitProducerIdResponse(error_code=producer_id)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def fresh_id(call: Call) -> int | ErrorCode:
    """A new id; waits for the controller if this broker has none left."""
    try:
        return call.broker.producer_ids.take(call.broker.fence.broker_epoch)
    except (OSError, KafkaError):
        # Clients retry after this error. The controller is being elected, or ZooKeeper is away.
        return ErrorCode.coordinator_load_in_progress


def _initialise_transactions(call: Call, request: InitProducerIdRequest, transactional_id: str) -> None:
    if is_too_long(transactional_id):
        call.reply(InitProducerIdResponse(error_code=ErrorCode.invalid_request))
        return
    has_identity = request.producer_id != NO_PRODUCER_ID
    expected = ProducerIdentity(request.producer_id, request.producer_epoch) if has_identity else None
    asked = InitProducerId(transactional_id, request.transaction_timeout_ms, expected)

    def answered(response: InitializedProducer) -> None:
        if response.needs_producer_id:
            call.broker.waiting_room.submit(lambda: call.carefully(lambda: _ask_with_id(call, asked)))
        else:
            call.carefully(lambda: call.reply(_response(call, response)))

    call.broker.coordinators.submit(TRANSACTION_STATE_TOPIC, asked, answered)


def _ask_with_id(call: Call, asked: InitProducerId) -> None:
    """On a thread that may wait for the controller."""
    fresh = fresh_id(call)
    if isinstance(fresh, ErrorCode):
        call.reply(InitProducerIdResponse(error_code=fresh))
    else:
        ask(call, replace(asked, fresh_producer_id=fresh), lambda response: _response(call, response))


def _response(call: Call, response: InitializedProducer) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error_of_version(call, response.error),
        producer_id=response.producer_id,
        producer_epoch=response.producer_epoch,
    )
