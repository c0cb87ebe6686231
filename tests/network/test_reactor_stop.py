"""How a reactor starts and stops: nothing leaks, in whatever state it is."""

import logging
import os
import socket
import threading

import pytest

from sparklog.network.acceptor import Listener
from sparklog.network.reactor import Reactor
from tests.network.frames import SIZE, frame
from tests.network.held_handlers import Parking
from tests.waiting import until


def test_a_port_that_is_taken_fails_the_start_and_leaves_nothing_behind():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        reactor = Reactor([Listener("127.0.0.1", 0), Listener("127.0.0.1", port)], lambda exchange: None)
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            reactor.start()
        reactor.stop()


def test_a_reactor_starts_once(start_reactor):
    reactor = start_reactor()
    with pytest.raises(RuntimeError, match="is started; make a new one"):
        reactor.start()
    reactor.stop()
    reactor.stop()
    with pytest.raises(RuntimeError, match="is stopped; make a new one"):
        reactor.start()


def test_a_reactor_that_never_started_can_be_stopped():
    Reactor([Listener("127.0.0.1", 0)], lambda exchange: None).stop()


def test_a_layout_without_threads_is_refused():
    with pytest.raises(ValueError, match="0 processors and 1 handlers"):
        Reactor([], lambda exchange: None, processors=0, handlers=1)


def test_stop_closes_every_connection_in_whatever_state(start_reactor, connect, make_slice):
    part, parked = make_slice(bytes(20_000_000)), Parking()

    def handle(exchange):
        match bytes(exchange.frame):
            case b"park":
                parked(exchange)
            case b"throttle":
                exchange.reply([frame(b"x")], throttle_ms=1_000_000)
            case _:
                exchange.reply([part])

    reactor = start_reactor(handle)
    silent, half, waiting, throttled = (connect(reactor) for _ in range(4))
    unread = connect(reactor, receive_buffer=4_096)
    half.send_raw(b"\0\0\1\0half")
    waiting.send(b"park")
    exchange = parked.next()
    assert throttled.call(b"throttle") == b"x"
    unread.send(b"fetch")
    unread.read_exactly(1_000)
    until(lambda: reactor.connections == 5)
    reactor.stop()
    assert reactor.connections == 0
    assert all(client.is_closed_by_peer() for client in (silent, half, waiting, throttled))
    with pytest.raises(ConnectionRefusedError):
        connect(reactor.ports[0])
    exchange.reply([b"too late, and harmless"])


def test_stop_lets_the_handlers_finish_and_their_replies_go_out(start_reactor, connect, gate):
    reactor = start_reactor(gate, handlers=1)
    client = connect(reactor)
    client.send(b"last words")
    gate.entered.acquire(timeout=60)
    stopper = threading.Thread(target=reactor.stop)
    stopper.start()
    gate.open.set()
    assert client.read_frame() == b"last words"
    assert client.is_closed_by_peer()
    stopper.join()


def test_stop_drops_what_still_waits_in_the_queue(start_reactor, connect, gate):
    reactor = start_reactor(gate, handlers=1, queue_max=2)
    clients = [connect(reactor) for _ in range(8)]
    for client in clients:
        client.send(b"x")
    until(lambda: reactor.requests_waiting == 2)
    stopper = threading.Thread(target=reactor.stop)
    stopper.start()
    until(lambda: reactor.requests_waiting <= 1, "the queue to be emptied")
    gate.open.set()
    stopper.join()
    assert reactor.connections == 0


def test_a_handler_can_stop_the_reactor(start_reactor, connect):
    def handle(exchange):
        reactor.stop()
        exchange.reply([frame(b"nobody hears this")])

    reactor = start_reactor(handle, handlers=2)
    client = connect(reactor)
    client.send(b"stop")
    assert client.is_closed_by_peer()


def test_two_threads_may_stop_at_once(start_reactor):
    reactor = start_reactor()
    stoppers = [threading.Thread(target=reactor.stop) for _ in range(4)]
    for thread in stoppers:
        thread.start()
    for thread in stoppers:
        thread.join(20)
        assert not thread.is_alive()


def test_a_handler_that_hangs_is_named_and_left_behind(start_reactor, connect, gate, caplog):
    reactor = start_reactor(gate, handlers=1, name="broker-7")
    connect(reactor).send(b"x")
    gate.entered.acquire(timeout=60)
    with caplog.at_level(logging.ERROR):
        reactor.stop(timeout_ms=50)
    assert "broker-7-handler-0 did not end within 50 ms" in caplog.text
    gate.open.set()


@pytest.mark.parametrize("round_number", range(3))
def test_stop_under_load_leaks_nothing(start_reactor, connect, make_slice, round_number):
    """Clients that pipeline, read files, come and go while the server stops; see the fixture no_leaks."""
    part, served = make_slice(os.urandom(400_000)), threading.Semaphore(0)

    def handle(exchange):
        served.release()
        if exchange.frame[:1] == b"f":
            exchange.reply([SIZE.pack(part.length), part])
        elif exchange.frame[:1] == b"p":
            threading.Thread(target=exchange.reply, args=([frame(b"x")],)).start()
        else:
            exchange.no_reply()

    reactor = start_reactor(handle, processors=2, handlers=3, queue_max=4)
    port = reactor.ports[0]

    def load(kind):
        try:
            while True:
                with socket.create_connection(("127.0.0.1", port), 20) as sock:
                    sock.sendall(frame(kind) * 20)
                    for _ in range(5):
                        if not sock.recv(50_000):
                            return
        except OSError:
            return

    threads = [threading.Thread(target=load, args=(kind,)) for kind in (b"f", b"p", b"n", b"f", b"p", b"f")]
    for thread in threads[:2] + threads[3:]:  # "n" never answers, so its client would wait for ever
        thread.start()
    for _ in range(200):
        assert served.acquire(timeout=60)
    reactor.stop()
    for thread in threads[:2] + threads[3:]:
        thread.join(20)
        assert not thread.is_alive()
    assert reactor.connections == 0
