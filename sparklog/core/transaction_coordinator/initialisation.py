"""InitProducerId of a transactional id: who gets which producer id and epoch.

A producer that begins gets the id's producer id with the next epoch, so that every earlier producer of the
transactional id is fenced. One that only wants a new epoch says what it has (KIP-360): it gets the next epoch
if that is the latest, the same answer again if it asks twice, and is fenced otherwise. When the epochs of a
producer id are used up, the transactional id gets another one. So it does where the log may have lost a later
epoch: partitions would take the batches of a producer with that epoch for its predecessor's, sent again.
"""

from dataclasses import replace
from typing import Final

from sparklog.core.transaction_coordinator.records import NO_START_MS, TransactionValue
from sparklog.core.transaction_coordinator.requests import InitProducerId, ProducerIdentity
from sparklog.core.transaction_coordinator.responses import InitializedProducer
from sparklog.core.transaction_coordinator.states import ENDING, TransactionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_PRODUCER_EPOCH

LAST_EPOCH: Final = 32_766
"""The last epoch that a producer gets. The one above fences its transaction, and nobody gets it."""

_NEEDS_ID: Final = InitializedProducer(ErrorCode.none, needs_producer_id=True)


def initialised(
    value: TransactionValue | None, request: InitProducerId, now_ms: int, *, is_used_up: bool = False
) -> TransactionValue | InitializedProducer:
    """The id's new state, which is Empty; PREPARE_ABORT, if a transaction must be aborted first; or the
    answer, if nothing changes. ``now_ms`` by the wall clock; ``is_used_up``: no further epoch of the producer
    id may be given, though its number is free.
    """
    if value is None:
        if request.fresh_producer_id is None:
            return _NEEDS_ID
        return TransactionValue(
            request.fresh_producer_id, 0, request.timeout_ms, TransactionState.EMPTY, (), now_ms
        )
    if not _may_be(value, request.expected):
        return InitializedProducer(ErrorCode.producer_fenced)
    if value.state in ENDING:
        return InitializedProducer(ErrorCode.concurrent_transactions)
    if value.state is TransactionState.ONGOING:
        is_late = request.expected is not None and request.expected.producer_epoch != value.producer_epoch
        return InitializedProducer(ErrorCode.producer_fenced) if is_late else fenced(value, now_ms)
    return _with_next_epoch(value, request, now_ms, is_used_up=is_used_up)


def fenced(value: TransactionValue, now_ms: int) -> TransactionValue:
    """The open transaction is to be aborted, in an epoch that no producer has."""
    return replace(
        value,
        producer_epoch=value.producer_epoch + 1,
        last_producer_epoch=NO_PRODUCER_EPOCH,
        state=TransactionState.PREPARE_ABORT,
        last_update_ms=now_ms,
    )


def _may_be(value: TransactionValue, expected: ProducerIdentity | None) -> bool:
    """Whether the producer's id is the present one, or the one before, with its last epoch."""
    if expected is None or expected.producer_id == value.producer_id:
        return True
    has_just_changed = value.producer_epoch == 0 and expected.producer_epoch == value.last_producer_epoch
    is_last = expected.producer_epoch >= LAST_EPOCH or has_just_changed
    return is_last and expected.producer_id == value.previous_producer_id


def _with_next_epoch(
    value: TransactionValue, request: InitProducerId, now_ms: int, *, is_used_up: bool
) -> TransactionValue | InitializedProducer:
    expected = request.expected
    empty = replace(
        value,
        timeout_ms=request.timeout_ms,
        state=TransactionState.EMPTY,
        topics=(),
        start_ms=NO_START_MS,
        last_update_ms=now_ms,
    )
    if expected is not None and expected != ProducerIdentity(value.producer_id, value.producer_epoch):
        # Asked again by the producer that asked last: the answer was lost.
        is_repeated = expected.producer_epoch == value.last_producer_epoch
        return empty if is_repeated else InitializedProducer(ErrorCode.producer_fenced)
    last_epoch = NO_PRODUCER_EPOCH if expected is None else expected.producer_epoch
    if value.producer_epoch < LAST_EPOCH and not is_used_up:
        return replace(empty, producer_epoch=value.producer_epoch + 1, last_producer_epoch=last_epoch)
    if request.fresh_producer_id is None:
        return _NEEDS_ID
    return replace(
        empty,
        producer_id=request.fresh_producer_id,
        producer_epoch=0,
        previous_producer_id=value.producer_id,
        last_producer_epoch=last_epoch,
    )
