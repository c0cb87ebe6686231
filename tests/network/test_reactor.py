"""The reactor over real sockets: order, muting, back-pressure, limits and failure."""

import itertools
import os
import threading
import time

import pytest

from sparklog.model.parts import FileSlice
from sparklog.network.accepting.connection_count import ConnectionLimits
from sparklog.network.clock import SystemClock
from tests.network.frames import SIZE, frame
from tests.network.held_handlers import Parking
from tests.waiting import until

# Requests and replies


@pytest.mark.parametrize(("processors", "handlers"), [(1, 1), (1, 4), (3, 8)])
def test_every_connection_gets_its_own_answers(start_reactor, connect, processors, handlers):
    reactor = start_reactor(processors=processors, handlers=handlers)
    clients = [connect(reactor) for _ in range(20)]
    for round_number in range(20):
        for number, client in enumerate(clients):
            client.send(b"%d/%d" % (number, round_number))
        for number, client in enumerate(clients):
            assert client.read_frame() == b"%d/%d" % (number, round_number)


def test_the_context_tells_where_a_request_came_from(start_reactor, connect):
    handler = Parking()
    reactor = start_reactor(handler, listeners=2)
    connect(reactor.ports[0]).send(b"x")
    first = handler.next().context
    connect(reactor.ports[1]).send(b"x")
    second = handler.next().context
    assert (first.listener, second.listener) == ("L0", "L1")
    assert first.client_host == "127.0.0.1"
    assert first.connection_id != second.connection_id
    assert 0 <= second.received_ms - first.received_ms < 20_000


def test_a_principal_belongs_to_its_connection_and_to_later_requests(start_reactor, connect):
    def handle(exchange):
        if exchange.frame != b"who":
            exchange.identify(bytes(exchange.frame).decode())
        exchange.reply([frame(exchange.context.principal.encode())])

    reactor = start_reactor(handle)
    alice, other = connect(reactor), connect(reactor)
    assert alice.call(b"User:alice") == b"User:ANONYMOUS"
    assert alice.call(b"who") == b"User:alice"
    assert other.call(b"who") == b"User:ANONYMOUS"


def test_pipelined_requests_are_answered_in_order_one_at_a_time(start_reactor, connect):
    in_progress, most, guard = itertools.count(), [0], threading.Lock()
    running = [0]

    def handle(exchange):
        with guard:
            running[0] += 1
            most[0] = max(most[0], running[0])
        if next(in_progress) % 3 == 0:
            time.sleep(0.002)  # so that a second one would overtake
        with guard:
            running[0] -= 1
        exchange.reply([frame(bytes(exchange.frame))])

    client = connect(start_reactor(handle, handlers=4))
    requests = [b"%d" % number + b"." * (number * 37 % 5_000) for number in range(300)]
    sender = threading.Thread(target=client.send_raw, args=(b"".join(map(frame, requests)),))
    sender.start()
    assert [client.read_frame() for _ in requests] == requests
    sender.join()
    assert most == [1]


def test_a_muted_connection_is_not_read_until_its_reply_is_out(start_reactor, connect):
    handler = Parking()
    client = connect(start_reactor(handler, handlers=2))
    client.send(b"first")
    first = handler.next()
    for _ in range(50):
        client.send(b"second")
    assert not handler.arrived.acquire(timeout=0.05)
    first.reply([frame(b"done")])
    assert client.read_frame() == b"done"
    assert handler.next().frame == b"second"


def test_a_request_that_is_cut_into_single_bytes_arrives_whole(start_reactor, connect):
    client = connect(start_reactor())
    for byte in frame(b"slowly"):
        client.send_raw(bytes([byte]))
    assert client.read_frame() == b"slowly"


def test_an_empty_request_is_a_request(start_reactor, connect):
    assert connect(start_reactor()).call(b"") == b""


def test_large_requests_and_replies_of_pipelined_clients_stay_whole(start_reactor, connect):
    client = connect(start_reactor(handlers=2))
    requests = [os.urandom(size) for size in (3_000_000, 10, 70_000, 0, 1_500_000, 65_532, 65_533)] * 2
    sender = threading.Thread(target=client.send_raw, args=(b"".join(map(frame, requests)),))
    sender.start()
    assert [client.read_frame() for _ in requests] == requests
    sender.join()


def test_a_reply_may_come_from_another_thread(start_reactor, connect):
    def handle(exchange):
        threading.Thread(target=exchange.reply, args=([frame(b"late")],)).start()

    client = connect(start_reactor(handle))
    for _ in range(50):
        assert client.call(b"x") == b"late"


def test_a_handler_thread_is_free_while_a_request_is_parked(start_reactor, connect):
    parked = []

    def handle(exchange):
        if exchange.frame == b"park":
            parked.append(exchange)
        else:
            exchange.reply([frame(b"quick")])

    reactor = start_reactor(handle, handlers=1)
    waiting, other = connect(reactor), connect(reactor)
    waiting.send(b"park")
    assert other.call(b"x") == b"quick"
    parked[0].reply([frame(b"patient")])
    assert waiting.read_frame() == b"patient"


def test_attention_ends_when_the_last_free_handler_takes_a_request(start_reactor, connect, gate):
    reactor = start_reactor(gate, handlers=2)
    before = SystemClock().monotonic_ms()
    first, second = connect(reactor), connect(reactor)
    first.send(b"1")
    gate.entered.acquire(timeout=20)
    assert reactor.attentive_until() >= SystemClock().monotonic_ms() - 1_000
    second.send(b"2")
    gate.entered.acquire(timeout=20)
    stalled_since = reactor.attentive_until()
    assert before <= stalled_since <= SystemClock().monotonic_ms()
    until(lambda: SystemClock().monotonic_ms() > stalled_since + 20)
    assert reactor.attentive_until() == stalled_since
    gate.open.set()
    assert first.read_frame() == b"1"
    until(lambda: reactor.attentive_until() > stalled_since + 20)


def test_a_request_without_reply_lets_the_next_one_through(start_reactor, connect):
    def handle(exchange):
        if exchange.frame == b"acks=0":
            exchange.no_reply()
        else:
            exchange.reply([frame(bytes(exchange.frame))])

    client = connect(start_reactor(handle))
    client.send_raw(frame(b"acks=0") * 200 + frame(b"acks=1"))
    assert client.read_frame() == b"acks=1"
    client.send(b"acks=0")
    assert client.call(b"again") == b"again"


def test_a_handler_can_close_the_connection_instead_of_answering(start_reactor, connect):
    reactor = start_reactor(lambda exchange: exchange.close())
    client = connect(reactor)
    client.send(b"x")
    assert client.is_closed_by_peer()
    until(lambda: reactor.connections == 0)


def test_a_handler_that_fails_closes_only_its_own_connection(start_reactor, connect, caplog):
    def handle(exchange):
        if exchange.frame == b"bad":
            raise ZeroDivisionError("on purpose")
        exchange.reply([frame(bytes(exchange.frame))])

    reactor = start_reactor(handle, handlers=1)
    bad, good = connect(reactor), connect(reactor)
    for _ in range(3):
        assert good.call(b"x") == b"x"
        bad.send(b"bad")
        assert bad.is_closed_by_peer()
        bad = connect(reactor)
    assert "on purpose" in caplog.text
    assert "Traceback" in caplog.text


def test_a_handler_that_fails_after_its_reply_closes_too(start_reactor, connect):
    def handle(exchange):
        exchange.reply([frame(b"done")])
        raise ZeroDivisionError("on purpose")

    client = connect(start_reactor(handle))
    assert client.call(b"x") == b"done"
    assert client.is_closed_by_peer()


def test_a_part_that_is_none_closes_the_connection_and_leaks_nothing(start_reactor, connect):
    reactor = start_reactor(lambda exchange: exchange.reply([object()]))
    client = connect(reactor)
    client.send(b"x")
    assert client.is_closed_by_peer()
    until(lambda: reactor.connections == 0)


# Replies from files, slow readers


def test_a_big_reply_from_a_file_reaches_a_slow_reader_whole(start_reactor, connect, make_slice):
    content = os.urandom(6_000_000)
    part = make_slice(b"before" + content, position=6)

    def handle(exchange):
        exchange.reply([SIZE.pack(len(content) + 8), b"head", part, b"tail"])

    reactor = start_reactor(handle)
    slow, other = connect(reactor, receive_buffer=4_096), connect(reactor)
    for _ in range(2):
        slow.send_raw(frame(b"fetch"))
        received = slow.read_exactly(4 + 100_000)
        other.send(b"fetch")  # the others are served while the slow one is not done
        assert other.read_frame() == b"head" + content + b"tail"
        received += slow.read_exactly(len(content) + 8 - 100_000)
        assert received[4:] == b"head" + content + b"tail"


def test_pipelined_fetches_from_files_stay_in_order(start_reactor, connect, make_slice):
    content = os.urandom(3_000_000)
    whole = make_slice(content)

    def handle(exchange):
        (number,) = SIZE.unpack(exchange.frame)
        part = FileSlice(whole.file, number * 1_000, 1_000_000)
        exchange.reply([SIZE.pack(1_000_004), exchange.frame, part])

    client = connect(start_reactor(handle, handlers=3), receive_buffer=16_384)
    client.send_raw(b"".join(frame(SIZE.pack(number)) for number in range(12)))
    for number in range(12):
        assert client.read_frame() == SIZE.pack(number) + content[number * 1_000 : number * 1_000 + 1_000_000]


def test_a_file_that_ends_early_closes_the_connection(start_reactor, connect, make_slice):
    part = make_slice(b"short", length=500)
    client = connect(start_reactor(lambda exchange: exchange.reply([SIZE.pack(500), part])))
    client.send(b"fetch")
    with pytest.raises(EOFError):
        client.read_frame()


def test_a_peer_that_closes_in_the_middle_of_a_reply_is_forgotten(start_reactor, connect, make_slice):
    part = make_slice(bytes(20_000_000))
    reactor = start_reactor(lambda exchange: exchange.reply([SIZE.pack(20_000_000), part]))
    for end in ("close", "reset"):
        client = connect(reactor, receive_buffer=4_096)
        client.send(b"fetch")
        client.read_exactly(10_000)
        getattr(client, end)()
        until(lambda: reactor.connections == 0)
    assert connect(reactor).call(b"fetch") == bytes(20_000_000)


def test_a_reply_to_a_client_that_has_gone_is_dropped(start_reactor, connect):
    handler = Parking()
    reactor = start_reactor(handler)
    client = connect(reactor)
    client.send(b"x")
    exchange = handler.next()
    client.reset()
    exchange.reply([frame(b"nobody")] * 3)
    until(lambda: reactor.connections == 0)


# Nonsense and limits


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\xff" * 100],
    ids=["http", "tls", "negative"],
)
def test_what_is_no_frame_closes_the_connection(start_reactor, connect, garbage, caplog):
    reactor = start_reactor()
    good, bad = connect(reactor), connect(reactor)
    bad.send_raw(garbage)
    assert bad.is_closed_by_peer()
    assert good.call(b"x") == b"x"
    assert "0 to 104857600 are accepted" in caplog.text


def test_garbage_behind_a_good_request_closes_after_its_reply(start_reactor, connect):
    client = connect(start_reactor())
    client.send_raw(frame(b"good") + b"\xff\xff\xff\xff")
    assert client.read_frame() == b"good"
    assert client.is_closed_by_peer()


def test_a_frame_may_be_exactly_as_large_as_the_limit(start_reactor, connect):
    reactor = start_reactor(frame_bytes_max=1_000)
    client = connect(reactor)
    assert client.call(bytes(1_000)) == bytes(1_000)
    client.send_raw(SIZE.pack(1_001))
    assert client.is_closed_by_peer()


def test_half_frames_and_silence_disturb_nobody_and_end_as_idle(start_reactor, connect):
    reactor = start_reactor(idle_ms=400)
    stalled = [connect(reactor) for _ in range(30)]
    for number, client in enumerate(stalled):
        client.send_raw((SIZE.pack(50_000_000) + bytes(1_000))[: 1 + number * 30])
    good = connect(reactor)
    assert good.call(b"x" * 100_000) == b"x" * 100_000
    assert all(client.is_closed_by_peer() for client in stalled)


def test_idle_connections_are_closed_and_busy_ones_are_not(start_reactor, connect):
    handler = Parking()
    reactor = start_reactor(handler, idle_ms=200)
    idle, waiting = connect(reactor), connect(reactor)
    waiting.send(b"x")
    exchange = handler.next()
    assert idle.is_closed_by_peer()
    until(lambda: reactor.connections == 1)
    exchange.reply([frame(b"still there")])
    assert waiting.read_frame() == b"still there"
    assert waiting.is_closed_by_peer()


def test_a_peer_that_does_not_read_its_reply_is_closed_as_idle(start_reactor, connect, make_slice):
    part = make_slice(bytes(20_000_000))
    reactor = start_reactor(lambda exchange: exchange.reply([part]), idle_ms=200)
    connect(reactor, receive_buffer=4_096).send(b"fetch")
    until(lambda: reactor.connections == 1)
    until(lambda: reactor.connections == 0)


def test_connections_above_the_limit_wait_until_others_end(start_reactor, connect, caplog):
    reactor = start_reactor(connection_limits=lambda: ConnectionLimits(total=3))
    clients = [connect(reactor) for _ in range(3)]
    assert all(client.call(b"x") == b"x" for client in clients)
    waiting = [connect(reactor) for _ in range(2)]
    for client in waiting:
        client.send(b"y")
    assert not waiting[0].has_answer_within(0.2)
    assert caplog.text.count("raise max.connections") == 1
    for client in waiting:
        clients.pop().close()
        assert client.read_frame() == b"y"
    assert reactor.connections == 3


def test_a_reactor_stops_while_connections_wait(start_reactor, connect):
    reactor = start_reactor(connection_limits=lambda: ConnectionLimits(total=1, rate=1))
    assert connect(reactor).call(b"x") == b"x"
    waiting = connect(reactor)
    until(lambda: reactor._connections._is_awaited)
    reactor.stop()
    assert waiting.is_closed_by_peer()


# Back-pressure and throttling


def test_a_full_queue_stops_the_reading_and_loses_nothing(start_reactor, connect, gate):
    reactor = start_reactor(gate, handlers=1, queue_max=2)
    clients = [connect(reactor) for _ in range(12)]
    for number, client in enumerate(clients):
        client.send(b"%d" % number)
    gate.entered.acquire(timeout=60)
    until(lambda: reactor.requests_waiting == 2, "the queue to fill")
    assert reactor.requests_waiting == 2
    assert not any(client.has_answer_within(0.01) for client in clients)
    gate.open.set()
    for number, client in enumerate(clients):
        assert client.read_frame() == b"%d" % number
    for number, client in enumerate(clients):
        assert client.call(b"again %d" % number) == b"again %d" % number


def test_while_the_queue_is_full_a_sender_is_slowed_by_tcp(start_reactor, connect, gate):
    reactor = start_reactor(gate, handlers=1, queue_max=1)
    for _ in range(3):  # one in the handler, one in the queue, one that fills the processor's hands
        connect(reactor).send(b"x")
    until(lambda: reactor.requests_waiting == 1)
    sender = connect(reactor)
    sender.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        sender.sock.sendall(frame(bytes(50_000_000)))
    gate.open.set()


def test_replies_still_go_out_while_the_queue_is_full(start_reactor, connect, gate, make_slice):
    content = os.urandom(8_000_000)
    part, parked = make_slice(content), Parking()

    def handle(exchange):
        (parked if exchange.frame == b"park" else gate)(exchange)

    reactor = start_reactor(handle, handlers=1, queue_max=1)
    reader = connect(reactor, receive_buffer=4_096)
    reader.send(b"park")
    exchange = parked.next()
    blockers = [connect(reactor) for _ in range(6)]
    for blocker in blockers:
        blocker.send(b"x")
    until(lambda: reactor.requests_waiting == 1)
    exchange.reply([SIZE.pack(len(content)), part])
    assert reader.read_frame() == content
    gate.open.set()
    assert [blocker.read_frame() for blocker in blockers] == [b"x"] * 6


def test_overload_by_many_pipelining_clients_loses_and_mixes_nothing(start_reactor, connect):
    reactor = start_reactor(processors=2, handlers=3, queue_max=1)
    clients = [connect(reactor) for _ in range(16)]
    for number, client in enumerate(clients):
        client.send_raw(b"".join(frame(b"%d:%d" % (number, request)) for request in range(100)))
    for number, client in enumerate(clients):
        assert [client.read_frame() for _ in range(100)] == [b"%d:%d" % (number, r) for r in range(100)]


CLOCK_STEP_S = 0.001
"""The server's clock counts whole milliseconds, so a throttle may seem shorter by as much."""


def test_a_throttled_connection_gets_its_reply_at_once_and_is_muted_after(start_reactor, connect):
    throttles = {b"greedy": 300, b"greediest": 3_600_000}

    def handle(exchange):
        throttle_ms = throttles.get(bytes(exchange.frame), 0)
        exchange.reply([frame(bytes(exchange.frame))], throttle_ms=throttle_ms)

    reactor = start_reactor(handle)
    greediest, greedy, modest = connect(reactor), connect(reactor), connect(reactor)
    assert greediest.call(b"greediest") == b"greediest"
    began = time.monotonic()
    assert greedy.call(b"greedy") == b"greedy"
    greedy.send(b"next")
    for _ in range(20):
        assert modest.call(b"x") == b"x"
    assert greedy.read_frame() == b"next"
    assert time.monotonic() - began >= 0.3 - CLOCK_STEP_S


def test_a_throttle_holds_back_what_was_pipelined_before(start_reactor, connect):
    client = connect(start_reactor(lambda exchange: exchange.reply([frame(b"x")], throttle_ms=60)))
    began = time.monotonic()
    client.send_raw(frame(b"r") * 4)
    for _ in range(4):
        assert client.read_frame() == b"x"
    assert time.monotonic() - began >= 0.18 - CLOCK_STEP_S
