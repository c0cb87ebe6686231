"""Requests of many sizes, sent without a wait in pieces of many sizes: each is answered, and in order.

Bytes that arrive beside others are the ones that a server forgets: in its receiver, in TLS, in the kernel.
"""

import contextlib
import random
import select

import pytest

from sparklog.network.dialing.dial import dial
from sparklog.network.streams.inbound import FrameReceiver
from tests.network.frames import frame
from tests.network.held_handlers import Gate
from tests.network.tls_sides import ClientSide

IS_OVER_BOTH = True
REQUESTS = 250


def requests_of(rng):
    sizes = [0, 1, 7, 200, 16_380, 16_384, 65_532, 65_540, 150_000, 1_200_000]
    return [rng.randbytes(rng.choice(sizes[: rng.choice([5, 8, 10])])) for _ in range(REQUESTS)]


def converse(stream, data, answers, rng):
    """Send ``data`` in pieces while frames are received, until there are so many ``answers``."""
    receiver, received, rest, poll = FrameReceiver(1 << 30), [], memoryview(data), select.poll()
    while len(received) < answers:
        with contextlib.suppress(BlockingIOError):
            piece = rest[: rng.choice([1, 5, 1_000, 16_384, 70_000, 3_000_000])]
            rest = rest[stream.send(piece) :] if rest else rest
        is_all_sent = stream.flush() and not rest
        with contextlib.suppress(BlockingIOError):
            assert receiver.receive(stream), "the server has closed the connection"
        while (arrived := receiver.next_frame()) is not None:
            received.append(arrived)
        if is_all_sent and not stream.has_pending and len(received) < answers:
            poll.register(stream, select.POLLIN)
            assert poll.poll(60_000), f"{len(received)} of {answers} requests are answered"
    return received


@pytest.fixture
def dial_to(cleanups, transport):
    def dial_to_reactor(reactor):
        tls = ClientSide() if transport == "tls" else None
        stream = dial("localhost", reactor.ports[0], timeout_ms=60_000, tls=tls)
        cleanups.actions.append(stream.close)
        return stream

    return dial_to_reactor


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("settings", [{}, {"begins_beside": lambda _: True}, {"frames_bytes_max": 100_000}])
def test_each_request_of_a_stream_is_answered_in_order(start_reactor, dial_to, settings, seed):
    rng = random.Random(seed)
    requests = requests_of(rng)
    stream = dial_to(start_reactor(**settings))
    answers = converse(stream, b"".join(map(frame, requests)), REQUESTS, rng)
    assert [answer == request for answer, request in zip(answers, requests, strict=True)] == [True] * REQUESTS


def test_what_comes_with_a_request_waits_while_it_is_handled_and_follows_at_once(
    start_reactor, connect, echo_handler, cleanups
):
    """The whole stream arrives while the first request is worked on; no further byte wakes the server."""
    gate = Gate(echo_handler)
    cleanups.actions.append(gate.open.set)
    client = connect(start_reactor(gate))
    sizes = [10, 70_000, 5, 200_000, 1]
    client.send_raw(b"".join(frame(bytes([number]) * size) for number, size in enumerate(sizes)))
    assert gate.entered.acquire(timeout=60)
    gate.open.set()
    assert [len(client.read_frame()) for _ in sizes] == sizes
