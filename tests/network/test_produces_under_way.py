"""Several produces of one connection under way: what may begin, and the order of the replies."""

import socket
import threading
from collections import deque
from functools import partial

import pytest

from sparklog.network.reply_order import REQUEST_BYTES_MAX, REQUESTS_MAX
from tests.network.frames import frame
from tests.waiting import until

IS_OVER_BOTH = True

PRODUCE = b"\x00\x00"
OTHER = b"\x00\x03"


class ParkedRequests:
    """A handler that lets the next produce begin, and keeps each request until the test answers it."""

    def __init__(self):
        self.began = deque()
        self.arrived = threading.Semaphore(0)

    def __call__(self, exchange):
        self.began.append(exchange)
        if bytes(exchange.frame[:2]) == PRODUCE:
            exchange.let_next_begin()
        self.arrived.release()

    def wait_for(self, count):
        for _ in range(count):
            assert self.arrived.acquire(timeout=60)

    def bodies(self):
        return [bytes(exchange.frame[2:]) for exchange in self.began]

    def answer(self, number, text=None):
        exchange = self.began[number]
        exchange.reply([frame(bytes(exchange.frame[2:]) if text is None else text)])


@pytest.fixture
def parked():
    return ParkedRequests()


@pytest.fixture
def start_reactor(start_reactor):
    """Only produces begin beside others, as in a broker."""
    return partial(start_reactor, begins_beside=lambda frame: bytes(frame[:2]) == PRODUCE)


def produces(*bodies):
    return b"".join(frame(PRODUCE + body) for body in bodies)


def test_a_produce_begins_while_an_earlier_one_waits_for_its_followers(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    client.send_raw(produces(b"1", b"2"))
    parked.wait_for(2)
    assert parked.bodies() == [b"1", b"2"]
    parked.answer(0)
    parked.answer(1)
    assert [client.read_frame(), client.read_frame()] == [b"1", b"2"]


def test_replies_leave_in_the_order_of_requests_whatever_is_ready_first(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    client.send_raw(produces(b"1", b"2", b"3"))
    parked.wait_for(3)
    parked.answer(2)
    parked.answer(1)
    assert not client.has_answer_within(0.05)
    parked.answer(0)
    assert [client.read_frame() for _ in range(3)] == [b"1", b"2", b"3"]


def test_a_produce_that_arrives_later_begins_too(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    client.send_raw(produces(b"1"))
    parked.wait_for(1)
    client.send_raw(produces(b"2"))
    parked.wait_for(1)
    parked.answer(0)
    parked.answer(1)
    assert [client.read_frame(), client.read_frame()] == [b"1", b"2"]


def test_another_request_begins_when_all_produces_before_it_are_answered(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    client.send_raw(produces(b"1", b"2") + frame(OTHER + b"metadata") + produces(b"3"))
    parked.wait_for(2)
    parked.answer(0)
    assert client.read_frame() == b"1"
    assert parked.bodies() == [b"1", b"2"]
    parked.answer(1)
    parked.wait_for(1)
    assert parked.bodies() == [b"1", b"2", b"metadata"]
    parked.answer(2)
    parked.wait_for(1)
    parked.answer(3)
    assert [client.read_frame() for _ in range(3)] == [b"2", b"metadata", b"3"]


def test_another_request_that_arrives_later_waits_for_the_produces_too(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    client.send_raw(produces(b"1"))
    parked.wait_for(1)
    client.send_raw(frame(OTHER + b"metadata"))
    assert not parked.arrived.acquire(timeout=0.05)
    parked.answer(0)
    parked.wait_for(1)
    parked.answer(1)
    assert [client.read_frame(), client.read_frame()] == [b"1", b"metadata"]


def test_the_count_of_produces_under_way_is_bounded(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    client.send_raw(produces(*[b"%d" % number for number in range(REQUESTS_MAX + 2)]))
    parked.wait_for(REQUESTS_MAX)
    assert not parked.arrived.acquire(timeout=0.05)
    parked.answer(0)
    parked.wait_for(1)
    for number in range(1, REQUESTS_MAX + 1):
        parked.answer(number)
    parked.wait_for(1)
    parked.answer(REQUESTS_MAX + 1)
    assert [client.read_frame() for _ in range(REQUESTS_MAX + 2)] == [
        b"%d" % number for number in range(REQUESTS_MAX + 2)
    ]


def test_the_bytes_of_produces_under_way_are_bounded(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    half = b"x" * (REQUEST_BYTES_MAX // 2)
    client.send_raw(produces(half, half, b"last"))
    parked.wait_for(2)
    assert not parked.arrived.acquire(timeout=0.05)
    parked.answer(0, b"1")
    parked.wait_for(1)
    parked.answer(1, b"2")
    parked.answer(2)
    assert [client.read_frame() for _ in range(3)] == [b"1", b"2", b"last"]


def test_replies_behind_one_that_fills_the_socket_follow_it(start_reactor, connect, parked):
    client = connect(start_reactor(parked), receive_buffer=4096)
    client.send_raw(produces(b"1", b"2", b"3"))
    parked.wait_for(3)
    large = b"x" * (16 * 1024 * 1024)
    parked.answer(1)
    parked.answer(0, large)
    parked.answer(2)
    client.send_raw(produces(b"4"))
    assert client.read_frame() == large
    assert [client.read_frame(), client.read_frame()] == [b"2", b"3"]
    parked.wait_for(1)
    parked.answer(3)
    assert client.read_frame() == b"4"


def test_a_client_that_leaves_with_produces_under_way_leaks_nothing(start_reactor, connect, parked):
    reactor = start_reactor(parked)
    client = connect(reactor)
    client.send_raw(produces(b"1", b"2") + frame(OTHER + b"never begins"))
    parked.wait_for(2)
    client.sock.shutdown(socket.SHUT_RDWR)
    parked.answer(1)
    parked.answer(0)
    until(lambda: reactor.connections == 0, "the connection to end")
    assert parked.bodies() == [b"1", b"2"]


def test_a_connection_that_is_closed_sends_no_reply_of_the_others(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    client.send_raw(produces(b"1", b"2"))
    parked.wait_for(2)
    parked.began[1].close()
    assert client.is_closed_by_peer()
    parked.answer(0)


def test_a_connection_whose_produce_waits_is_not_idle(start_reactor, connect, parked):
    client = connect(start_reactor(parked, idle_ms=50))
    client.send_raw(produces(b"1"))
    parked.wait_for(1)
    assert not client.has_answer_within(0.3)
    parked.answer(0)
    assert client.read_frame() == b"1"


def test_a_throttle_after_a_waiting_produce_mutes_before_the_next_request(start_reactor, connect, parked):
    client = connect(start_reactor(parked))
    client.send_raw(produces(b"1", b"2"))
    parked.wait_for(2)
    parked.began[0].reply([frame(b"1")], throttle_ms=3_600_000)
    parked.answer(1)
    assert [client.read_frame(), client.read_frame()] == [b"1", b"2"]
    client.send_raw(produces(b"3"))
    assert not parked.arrived.acquire(timeout=0.1)


def test_many_pipelining_producers_get_all_replies_in_order(start_reactor, connect):
    """Answers are given by other threads, in other orders than that of the requests."""
    waiting, done = deque(), threading.Event()

    def handle(exchange):
        waiting.append(exchange)
        exchange.let_next_begin()

    def answer_newest_first():
        while not done.is_set() or waiting:
            try:
                exchange = waiting.pop()
            except IndexError:
                done.wait(0.0002)
                continue
            exchange.reply([frame(bytes(exchange.frame[2:]))])

    reactor = start_reactor(handle)
    threads = [threading.Thread(target=answer_newest_first) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        clients = [connect(reactor) for _ in range(8)]
        for number, client in enumerate(clients):
            client.send_raw(produces(*[b"%d:%d" % (number, request) for request in range(200)]))
        for number, client in enumerate(clients):
            assert [client.read_frame() for _ in range(200)] == [b"%d:%d" % (number, r) for r in range(200)]
    finally:
        done.set()
        for thread in threads:
            thread.join()
