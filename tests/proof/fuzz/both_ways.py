"""Brokers under test decode and answer twice what they take by a form, and complain of a difference."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sparklog.broker.call import Call
from sparklog.model.parts import read_parts
from sparklog.network.exchange import Exchange
from sparklog.wire.codec import Request, decode_request, encode_response
from sparklog.wire.forms.produce_form import AnswerForm
from sparklog.wire.messages.data.produce import (
    ProducePartitionResponse,
    ProduceResponse,
    ProduceTopicResponse,
)

FRAME_BYTES_SHOWN: Final = 200


@contextmanager
def both_ways(complain: Callable[[str], None]) -> Iterator[list[int]]:
    """``complain`` is called with each difference. Yields the correlation ids of what was read by a form."""
    decode, reply = Exchange.decode, Call.reply_appended
    by_form: list[int] = []

    def decoded(exchange: Exchange) -> Request:
        request = decode(exchange)
        if exchange.form is not None:
            by_form.append(request.header.correlation_id)
            wanted = decode_request(exchange.frame)
            if request != wanted:
                complain(
                    f"{bytes(exchange.frame[:200]).hex()} is {request} by its form, {wanted} by its schema"
                )
        return request

    def replied(call: Call, form: AnswerForm, partition: int, base: int, stamp: int, start: int) -> None:
        throttle_ms = 0 if call.meter is None else call.meter.delay_ms()
        found = form.write(call.header.correlation_id, partition, base, stamp, start, throttle_ms)
        wanted = _by_schema(call, partition, (base, stamp, start), throttle_ms)
        if found != wanted:
            complain(f"an answer is {found.hex()} by its form, {wanted.hex()} by its schema")
        reply(call, form, partition, base, stamp, start)

    # Assigned through Any, because a class's own methods are replaced.
    exchange_class, call_class = _plain(Exchange), _plain(Call)
    exchange_class.decode, call_class.reply_appended = decoded, replied
    try:
        yield by_form
    finally:
        exchange_class.decode, call_class.reply_appended = decode, reply


def _plain(patched: type) -> Any:
    return patched


def _by_schema(call: Call, partition: int, offsets: tuple[int, int, int], throttle_ms: int) -> bytes:
    base, stamp, start = offsets
    form = call.exchange.form
    assert form is not None
    answered = ProducePartitionResponse(
        index=partition, base_offset=base, log_append_time_ms=stamp, log_start_offset=start
    )
    topic = ProduceTopicResponse(name=form.topic, partition_responses=[answered])
    response = ProduceResponse(responses=[topic], throttle_time_ms=throttle_ms)
    return read_parts(encode_response(response, call.version, call.header.correlation_id))
