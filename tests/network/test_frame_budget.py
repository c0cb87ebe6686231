"""The bound on the bytes of all requests that are read and not handled yet."""

import threading

import pytest

from sparklog.network.frame_budget import FrameBudget
from tests.network.frames import SIZE, frame
from tests.network.held_handlers import Parking
from tests.waiting import until

IS_OVER_BOTH = True


def test_a_budget_without_bytes_is_refused():
    with pytest.raises(ValueError, match="a budget of 0 bytes"):
        FrameBudget(0)


def test_a_frame_larger_than_what_is_left_is_admitted_and_the_next_is_not():
    budget = FrameBudget(100)
    assert budget.charge(1_000, 0, lambda: None)
    assert budget.held_bytes == 1_000
    assert not budget.charge(1, 0, lambda: None)


def test_whoever_was_refused_is_woken_once_as_soon_as_anything_is_left():
    budget, woken = FrameBudget(100), []
    assert budget.charge(60, 0, lambda: None)
    assert budget.charge(60, 0, lambda: None)
    for number in (0, 1, 1):
        assert not budget.charge(1, number, lambda number=number: woken.append(number))
    budget.credit(20)
    assert woken == []
    budget.credit(1)
    assert sorted(woken) == [0, 1]
    budget.credit(99)
    assert sorted(woken) == [0, 1]


def held(count, budget_bytes, start_reactor, connect, gate, **settings):
    """A reactor whose only handler is held over the first request, and ``count`` clients with one each."""
    reactor = start_reactor(gate, handlers=1, frames_bytes_max=budget_bytes, **settings)
    clients = [connect(reactor) for _ in range(count)]
    for number, client in enumerate(clients):
        client.send(b"%04d" % number + bytes(10_000))
    assert gate.entered.acquire(timeout=60)
    return reactor, clients


def test_no_more_is_read_while_the_budget_is_used_up_and_nothing_is_lost(start_reactor, connect, gate):
    reactor, clients = held(30, 25_000, start_reactor, connect, gate)
    until(lambda: reactor.requests_waiting == 2)
    assert not clients[-1].has_answer_within(0.2)
    assert reactor.requests_waiting == 2  # with the one in hand: three frames exceed the budget by one
    gate.open.set()
    for number, client in enumerate(clients):
        assert client.read_frame()[:4] == b"%04d" % number
    until(lambda: reactor.frames_bytes == 0)


def test_a_frame_larger_than_the_budget_gets_through_alone(start_reactor, connect):
    client = connect(start_reactor(frames_bytes_max=1_000))
    for _ in range(3):
        assert client.call(bytes(500_000)) == bytes(500_000)


def test_requests_that_wait_for_others_leave_the_budget(start_reactor, connect):
    parking = Parking()
    reactor = start_reactor(parking, handlers=1, frames_bytes_max=1_000)
    producers = [connect(reactor) for _ in range(5)]
    parked = []
    for producer in producers:
        producer.send(bytes(5_000))
        parked.append(parking.next())
    follower = connect(reactor)
    follower.send(b"fetch")
    assert parking.next().frame == b"fetch"
    for exchange in parked:
        exchange.reply([frame(b"done")])
    assert [producer.read_frame() for producer in producers] == [b"done"] * 5


def test_held_up_requests_begin_in_the_order_in_which_they_arrived(start_reactor, connect, gate):
    handled, echo = [], gate.echo
    gate.echo = lambda exchange: (handled.append(bytes(exchange.frame[:4])), echo(exchange))
    reactor, clients = held(1, 1, start_reactor, connect, gate)
    for number in range(1, 12):
        late = connect(reactor)
        late.send(b"%04d" % number)
        until(lambda number=number: reactor.connections_held_up == number)
        clients.append(late)
    clients[0].send(b"last")  # pipelined behind the request in hand
    gate.open.set()
    for client in [*clients, clients[0]]:
        client.read_frame()
    assert handled == [*(b"%04d" % number for number in range(12)), b"last"]


def test_replies_are_written_while_the_budget_is_used_up(start_reactor, connect, gate, make_slice):
    content = bytes(range(256)) * 40_000
    part = make_slice(content)

    def handle(exchange):
        if exchange.frame == b"big":
            exchange.reply([SIZE.pack(len(content)), part])
        else:
            gate(exchange)

    reactor = start_reactor(handle, handlers=2, frames_bytes_max=5_000)
    reader, writer, waiting = connect(reactor, receive_buffer=4_096), connect(reactor), connect(reactor)
    reader.send(b"big")
    until(lambda: reactor.frames_bytes == 0)
    writer.send(bytes(10_000))
    assert gate.entered.acquire(timeout=60)
    waiting.send(b"held up")
    assert reader.read_frame() == content
    gate.open.set()
    assert waiting.read_frame() == b"held up"
    assert writer.read_frame() == bytes(10_000)


def test_a_client_that_leaves_in_the_middle_of_a_frame_is_charged_no_more(start_reactor, connect):
    reactor = start_reactor(frames_bytes_max=1_000)
    client = connect(reactor)
    client.send_raw(SIZE.pack(5_000) + b"only a few bytes")
    until(lambda: reactor.frames_bytes == 5_000)
    client.close()
    until(lambda: reactor.frames_bytes == 0)


def test_a_client_that_leaves_while_it_is_held_up_disturbs_nobody(start_reactor, connect, gate):
    reactor, clients = held(3, 5_000, start_reactor, connect, gate)
    until(lambda: reactor.connections_held_up == 2)
    clients[1].reset()
    gate.open.set()
    assert clients[2].read_frame()[:4] == b"0002"
    until(lambda: reactor.frames_bytes == 0)


def test_a_held_up_connection_is_not_idle(start_reactor, connect, gate):
    reactor, clients = held(2, 5_000, start_reactor, connect, gate, idle_ms=150)
    until(lambda: reactor.connections_held_up == 1)
    assert not clients[1].has_answer_within(0.6)
    gate.open.set()
    assert clients[1].read_frame()[:4] == b"0001"


@pytest.mark.parametrize("processors", [1, 3])
def test_many_pipelining_clients_with_a_small_budget_lose_and_mix_nothing(start_reactor, connect, processors):
    reactor = start_reactor(processors=processors, handlers=2, frames_bytes_max=20_000)
    requests = [b"%d" % number + b"." * (number * 997 % 30_000) for number in range(120)]
    clients = [connect(reactor) for _ in range(8)]
    senders = [
        threading.Thread(target=client.send_raw, args=(b"".join(map(frame, requests)),)) for client in clients
    ]
    for sender in senders:
        sender.start()
    for client in clients:
        assert [client.read_frame() for _ in requests] == requests
    for sender in senders:
        sender.join()
    until(lambda: reactor.frames_bytes == 0)
