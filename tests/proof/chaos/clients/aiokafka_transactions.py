"""aiokafka's transactions: a producer that commits, aborts or stays away.

Whatever fails ends the process: the next life under the transactional id aborts what it left open.
"""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from chaos.clients.client_parts import REQUEST_TIMEOUT_MS, RETRY_MS, Pace, Settings
from chaos.clients.transaction_parts import (
    ASK_S,
    COMMITS,
    HELD,
    HOLD_S,
    INSIST_S,
    RECORDS_MAX,
    TIMEOUT_MS,
    Identity,
)
from histories import Writer

_TICK_S = 0.2


def produce(settings: Settings, writer: Writer) -> None:
    """Transactions of a few records each, until told to stop."""
    asyncio.run(_produce(settings, writer))


async def _produce(settings: Settings, writer: Writer) -> None:
    identity = Identity(settings, writer)
    producer = AIOKafkaProducer(
        **settings.access.aiokafka(),
        client_id=settings.name,
        transactional_id=identity.transactional_id,
        transaction_timeout_ms=TIMEOUT_MS,
        request_timeout_ms=2 * REQUEST_TIMEOUT_MS,
        retry_backoff_ms=RETRY_MS,
    )
    rng, pace = random.Random(settings.seed), Pace(settings.rate)
    op = identity.init()
    await _ask(identity, op, "init", producer.start())
    while not settings.is_stopping:
        identity.begin()
        await producer.begin_transaction()
        under_way = [await _send(settings, writer, identity, producer, rng, pace) for _ in _count(rng)]
        if rng.random() < HELD:
            await _hold(settings)
        if under_way:  # what is only queued would be dropped by an abort, and have no answer
            await asyncio.wait(under_way, timeout=ASK_S)
        commit = rng.random() < COMMITS and all(map(_is_sent, under_way))
        op = identity.finish(commit=commit)
        ended = producer.commit_transaction() if commit else producer.abort_transaction()
        await _ask(identity, op, "finish", ended)
    await asyncio.wait_for(producer.stop(), INSIST_S)


def _count(rng: random.Random) -> range:
    return range(rng.randint(1, RECORDS_MAX))


async def _ask(identity: Identity, op: int, what: Any, answer: Any) -> None:
    try:
        await asyncio.wait_for(answer, INSIST_S)
    except (KafkaError, TimeoutError) as error:
        identity.done(op, what, repr(error))
        raise SystemExit(f"{identity.name}: {what} of {identity.transaction}: {error!r}") from None
    identity.done(op, what)


async def _send(
    settings: Settings,
    writer: Writer,
    identity: Identity,
    producer: AIOKafkaProducer,
    rng: random.Random,
    pace: Pace,
) -> Any:
    await asyncio.sleep(pace.next_in_s())
    topic, partition = rng.choice(settings.partitions())
    op, record = identity.begin_send(topic, partition, rng)
    try:
        sent = await producer.send(topic, record.value, record.key, partition=partition)
    except KafkaError as error:
        writer.unknown(settings.name, op, repr(error))
        raise SystemExit(f"{settings.name} cannot send: {error!r}") from None
    sent.add_done_callback(_told(settings, writer, op))
    return sent


def _told(settings: Settings, writer: Writer, op: int) -> Callable[[Any], None]:
    def on_done(sent: Any) -> None:
        if sent.cancelled():
            writer.unknown(settings.name, op, "given up")
        elif (error := sent.exception()) is not None:
            writer.unknown(settings.name, op, repr(error))
        else:
            writer.sent(settings.name, op, offset=sent.result().offset)

    return on_done


def _is_sent(sent: Any) -> bool:
    """aiokafka commits a transaction all the same of which it has given up a batch, for want of a leader."""
    return bool(sent.done() and not sent.cancelled() and sent.exception() is None)


async def _hold(settings: Settings) -> None:
    until = time.monotonic() + HOLD_S
    while not settings.is_stopping and time.monotonic() < until:
        await asyncio.sleep(_TICK_S)
