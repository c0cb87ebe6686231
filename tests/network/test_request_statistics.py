"""Where the time of requests goes, and which answers they got."""

import threading
import time
from types import SimpleNamespace

import pytest

from sparklog.network import request_statistics
from sparklog.network.request_statistics import RequestStatistics
from tests.network.frames import frame
from tests.network.held_handlers import Parking
from tests.waiting import until

MS = 1_000_000


@pytest.fixture
def statistics():
    return RequestStatistics()


def sums_of(statistics, requests):
    until(lambda: 7 in statistics.snapshot() and statistics.snapshot()[7].requests == requests)
    return statistics.snapshot()[7]


def test_each_stage_of_a_request_is_counted_where_it_is_spent(start_reactor, connect, statistics):
    entered, leave, parked = threading.Semaphore(0), threading.Semaphore(0), []

    def handle(exchange):
        exchange.api_key = 7
        entered.release()
        leave.acquire()
        parked.append(exchange)

    reactor = start_reactor(handle, handlers=1, statistics=statistics)
    first, second = connect(reactor), connect(reactor)
    first.send(b"works")
    assert entered.acquire(timeout=60)
    second.send(b"queues meanwhile")
    until(lambda: reactor.requests_waiting == 1)
    time.sleep(0.05)
    leave.release(2)
    assert entered.acquire(timeout=60)
    until(lambda: len(parked) == 2)
    time.sleep(0.03)
    for exchange in parked:
        exchange.reply([frame(b"done")])
    sums = sums_of(statistics, 2)
    assert sums.work_ns >= 50 * MS
    assert sums.queue_ns >= 50 * MS
    assert sums.wait_ns >= 60 * MS
    assert sums.send_ns >= 0


def test_a_reply_that_is_ready_behind_another_one_waits_and_is_not_being_sent(
    start_reactor, connect, statistics
):
    parked = Parking()

    def handle(exchange):
        exchange.api_key = 7
        parked(exchange)

    client = connect(start_reactor(handle, statistics=statistics, begins_beside=lambda _: True))
    client.send(b"first")
    first = parked.next()
    first.let_next_begin()
    client.send(b"second")
    parked.next().reply([frame(b"2")])
    time.sleep(0.1)
    first.reply([frame(b"1")])
    assert [client.read_frame(), client.read_frame()] == [b"1", b"2"]
    sums = sums_of(statistics, 2)
    assert sums.wait_ns >= 200 * MS
    assert sums.send_ns < 100 * MS


def test_a_response_that_its_reader_takes_slowly_counts_as_sending(
    start_reactor, connect, make_slice, statistics
):
    part = make_slice(bytes(8_000_000))

    def handle(exchange):
        exchange.api_key = 7
        exchange.reply([part])

    client = connect(start_reactor(handle, statistics=statistics), receive_buffer=4_096)
    client.send(b"x")
    time.sleep(0.05)
    client.read_exactly(8_000_000)
    sums = sums_of(statistics, 1)
    assert sums.send_ns >= 40 * MS
    assert sums.wait_ns == 0


def test_errors_are_counted_by_code(start_reactor, connect, statistics):
    def handle(exchange):
        exchange.api_key, exchange.errors = 7, (3, 3, 6)
        exchange.reply([frame(b"")])

    client = connect(start_reactor(handle, statistics=statistics))
    client.call(b"x")
    client.call(b"x")
    assert sums_of(statistics, 2).errors == {3: 4, 6: 2}


def test_a_request_whose_client_has_gone_is_counted_once(start_reactor, connect, statistics):
    parking = Parking()
    reactor = start_reactor(parking, statistics=statistics)
    client = connect(reactor)
    client.send(b"x")
    exchange = parking.next()
    exchange.api_key = 7
    client.reset()
    exchange.reply([frame(b"too late")])
    until(lambda: reactor.connections == 0)
    assert sums_of(statistics, 1).wait_ns > 0


def test_what_is_no_request_of_an_api_is_not_counted(start_reactor, connect, statistics):
    connect(start_reactor(statistics=statistics)).call(b"nonsense")
    assert statistics.snapshot() == {}


@pytest.mark.parametrize(
    ("took_ms", "bucket"), [(0.5, 0), (1, 0), (1.5, 1), (500, 8), (5_000, 10), (6_000, 11)]
)  # fmt: skip
def test_a_duration_counts_in_the_bucket_of_the_first_bound_not_below_it(
    statistics, monkeypatch, took_ms, bucket
):
    monkeypatch.setattr(request_statistics, "perf_counter_ns", lambda: 9 * MS + int(took_ms * MS))
    exchange = SimpleNamespace(
        api_key=7, arrived_ns=9 * MS, began_ns=0, handled_ns=0, answered_ns=0, leaving_ns=0, errors=()
    )
    statistics.record(exchange)
    durations = statistics.snapshot()[7].durations
    assert (sum(durations), durations[bucket]) == (1, 1)
