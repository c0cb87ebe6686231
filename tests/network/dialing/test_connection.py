"""The client's connection against the reactor, and against scripted peers that misbehave."""

import logging
import os
import queue
import socket
import struct
import threading
import time

import pytest

from sparklog.model.errors import ErrorCode, KafkaError, WireError
from sparklog.network.dialing.connection import Connection
from sparklog.wire.codec import UnsupportedVersion, decode_request, encode_response
from sparklog.wire.messages.data.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsResponse
from sparklog.wire.messages.discovery.find_coordinator import FindCoordinatorRequest
from sparklog.wire.messages.discovery.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from tests.network.tls_sides import ClientSide, ServerSide
from tests.waiting import until

SIZE = struct.Struct(">i")
CORRELATION_ID_AT = slice(8, 12)  # of a whole frame: size, API key, API version, correlation id


class Broker:
    """A handler that serves ApiVersions, and Metadata whose cluster id is the client's id and a number."""

    def __init__(self, served=((18, 0, 3), (3, 0, 9), (0, 0, 9))):
        self.served = served
        self.seen = []
        self.throttle_ms = 0

    def __call__(self, exchange):
        try:
            request = decode_request(exchange.frame)
        except UnsupportedVersion as error:
            refusal = ApiVersionsResponse(error_code=ErrorCode.unsupported_version, api_keys=self.api_keys())
            exchange.reply(encode_response(refusal, 0, error.header.correlation_id))
            return
        header = request.header
        self.seen.append((header.api_key, header.api_version))
        if header.api_key == 18:
            message = ApiVersionsResponse(api_keys=self.api_keys())
        elif header.api_key == 3:
            cluster_id = f"{header.client_id}/{header.correlation_id}"
            message = MetadataResponse(cluster_id=cluster_id, throttle_time_ms=self.throttle_ms)
        elif request.body.acks == 0:
            exchange.no_reply()
            return
        else:
            message = ProduceResponse()
        exchange.reply(encode_response(message, header.api_version, header.correlation_id))

    def api_keys(self):
        return [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in self.served]


IS_OVER_BOTH = True


@pytest.fixture
def open_connection(cleanups, transport):
    def open_to(target, timeout_ms=20_000, **options):
        port = target if isinstance(target, int) else target.ports[0]
        if transport == "tls":
            options["tls"] = ClientSide()
        connection = Connection.open("127.0.0.1", port, client_id="test", timeout_ms=timeout_ms, **options)
        cleanups.actions.append(connection.close)
        return connection

    return open_to


@pytest.fixture
def peer(cleanups, transport):
    """A listening socket whose test plays the broker by hand: ``peer.accept()``."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(20)
    accepted, arrived = [], queue.Queue()

    def accept_one():
        sock = server.accept()[0]
        sock.settimeout(20)
        if transport == "tls":
            sock = ServerSide().context().wrap_socket(sock, server_side=True)
        accepted.append(sock)
        arrived.put(sock)

    thread = threading.Thread(target=accept_one)  # a client waits for its handshake
    thread.start()
    server_port = server.getsockname()[1]
    cleanups.actions.append(lambda: [sock.close() for sock in (server, *accepted)])
    cleanups.actions.append(thread.join)
    return type("Peer", (), {"port": server_port, "accept": lambda: arrived.get(timeout=20)})


def answer_to(request_frame, message=None, version=9):
    (correlation_id,) = SIZE.unpack(request_frame[CORRELATION_ID_AT])
    parts = encode_response(message or MetadataResponse(cluster_id="by hand"), version, correlation_id)
    return b"".join(bytes(part) for part in parts)


# Calls and versions


def test_a_call_uses_the_latest_version_that_both_sides_have(start_reactor, open_connection):
    broker = Broker()
    connection = open_connection(start_reactor(broker))
    assert connection.call(MetadataRequest(), timeout_ms=20_000).cluster_id == "test/1"
    assert connection.call(MetadataRequest(), timeout_ms=20_000).cluster_id == "test/2"
    assert broker.seen == [(18, 3), (3, 9), (3, 9)]


def test_a_client_that_is_asked_to_wait_sends_nothing_meanwhile(start_reactor, open_connection):
    broker = Broker()
    connection = open_connection(start_reactor(broker))
    broker.throttle_ms = 300
    assert connection.call(MetadataRequest(), timeout_ms=20_000).throttle_time_ms == 300
    broker.throttle_ms = 0
    began = time.monotonic()
    connection.send(MetadataRequest()).result(20_000)
    assert time.monotonic() - began > 0.2
    assert connection.call(MetadataRequest(), timeout_ms=100).throttle_time_ms == 0


def test_a_wait_beyond_a_call_s_time_out_fails_at_once_and_a_close_ends_one(start_reactor, open_connection):
    broker = Broker()
    connection = open_connection(start_reactor(broker))
    broker.throttle_ms = 3_600_000
    connection.call(MetadataRequest(), timeout_ms=20_000)
    with pytest.raises(
        TimeoutError, match=r"asks this client to wait for 3[56]\d\d\.\d s, because of a quota"
    ):
        connection.call(MetadataRequest(), timeout_ms=1_000)
    assert connection.is_open
    closer = threading.Timer(0.1, connection.close)
    closer.start()
    with pytest.raises(ConnectionError):
        connection.send(MetadataRequest())
    closer.join()


def test_the_longest_time_out_that_a_client_can_name_is_waited_with(start_reactor, open_connection):
    connection = open_connection(start_reactor(Broker()))
    longest_ms = 2**31 - 1 + 5_000  # what a broker waits for its controller goes beyond the client's own
    assert connection.call(MetadataRequest(), timeout_ms=longest_ms).cluster_id.startswith("test/")


def test_a_version_that_is_given_is_used_without_asking(start_reactor, open_connection):
    broker = Broker()
    connection = open_connection(start_reactor(broker))
    assert connection.call(MetadataRequest(), version=4, timeout_ms=20_000).cluster_id == "test/0"
    assert broker.seen == [(3, 4)]


def test_an_older_broker_is_asked_again_with_the_version_it_has(start_reactor, open_connection):
    broker = Broker(served=((18, 0, 2), (3, 0, 5)))
    serve = broker.__call__

    def handle(exchange):
        if exchange.frame[:4] == struct.pack(">hh", 18, 3):
            refusal = ApiVersionsResponse(
                error_code=ErrorCode.unsupported_version, api_keys=broker.api_keys()
            )
            exchange.reply(encode_response(refusal, 0, SIZE.unpack(exchange.frame[4:8])[0]))
        else:
            serve(exchange)

    connection = open_connection(start_reactor(handle))
    connection.call(MetadataRequest(), timeout_ms=20_000)
    assert broker.seen == [(18, 2), (3, 5)]


def test_an_api_without_a_common_version_is_named(start_reactor, open_connection):
    connection = open_connection(start_reactor(Broker(served=((18, 0, 3), (3, 90, 99)))))
    with pytest.raises(KafkaError, match=r"serves versions 90 to 99 of Metadata, this client has 0 to 12"):
        connection.call(MetadataRequest(), timeout_ms=20_000)
    with pytest.raises(KafkaError, match="serves no version of FindCoordinator"):
        connection.call(FindCoordinatorRequest(), timeout_ms=20_000)
    assert connection.is_open


def test_internal_apis_need_no_negotiation(start_reactor, open_connection):
    broker = Broker()
    assert open_connection(start_reactor(broker)).version_for(4) == 7
    assert broker.seen == []


def test_a_request_that_is_never_answered_disturbs_no_other(start_reactor, open_connection):
    connection = open_connection(start_reactor(Broker()))
    for _ in range(3):
        connection.send_one_way(ProduceRequest(acks=0, timeout_ms=1_000, topic_data=[]))
    assert connection.call(MetadataRequest(), timeout_ms=20_000).cluster_id == "test/4"


def test_pipelined_requests_may_be_awaited_in_any_order(start_reactor, open_connection):
    connection = open_connection(start_reactor(Broker()))
    pendings = [connection.send(MetadataRequest(), 9) for _ in range(20)]
    for number in reversed(range(20)):
        assert pendings[number].result(20_000).cluster_id == f"test/{number}"
        assert pendings[number].result(0).cluster_id == f"test/{number}"


def test_many_threads_share_a_connection(start_reactor, open_connection):
    connection = open_connection(start_reactor(Broker(), handlers=2))
    answers, guard = [], threading.Lock()

    def call_often():
        for _ in range(100):
            pending = connection.send(MetadataRequest(), 9)
            answer = pending.result(60_000).cluster_id
            with guard:
                answers.append(answer == f"test/{pending.correlation_id}")

    threads = [threading.Thread(target=call_often) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 600


def test_large_pipelined_requests_and_answers_do_not_block_each_other(peer, open_connection):
    """A broker does not read a request before the last answer is taken, so a sender must read meanwhile."""
    connection = open_connection(peer.port)
    sock = peer.accept()
    brokers = [MetadataResponseBroker(node_id=n, host="h" * 1_000, port=n) for n in range(8_000)]
    large_answer = MetadataResponse(cluster_id="large", brokers=brokers)
    partition = ProducePartition(index=0, records=bytes(8_000_000))
    large_request = ProduceRequest(topic_data=[ProduceTopic(name="t", partition_data=[partition])])

    def serve():
        for _ in range(4):
            request = receive_exactly(sock, 4)
            request += receive_exactly(sock, SIZE.unpack(request)[0])
            is_produce = request[4:6] == b"\0\0"
            sock.sendall(answer_to(request, ProduceResponse() if is_produce else large_answer))

    server = threading.Thread(target=serve)
    server.start()
    messages = [MetadataRequest(), large_request, MetadataRequest(), large_request]
    pendings = [connection.send(message, 9) for message in messages]
    assert len(pendings[0].result(20_000).brokers) == 8_000
    assert pendings[1].result(20_000) == ProduceResponse()
    assert len(pendings[2].result(20_000).brokers) == 8_000
    assert pendings[3].result(20_000) == ProduceResponse()
    server.join()


def receive_exactly(sock, count):
    data = bytearray()
    while len(data) < count:
        chunk = sock.recv(min(1 << 20, count - len(data)))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


def a_request(sock):
    request = receive_exactly(sock, 4)
    return request + receive_exactly(sock, SIZE.unpack(request)[0])


# Time, and the end


def test_an_answer_that_does_not_come_is_a_timeout_and_may_still_be_awaited(peer, open_connection):
    connection = open_connection(peer.port)
    sock = peer.accept()
    pending = connection.send(MetadataRequest(), 9)
    with pytest.raises(
        TimeoutError, match=f"127.0.0.1:{peer.port} has not answered Metadata request 0 in time"
    ):
        pending.result(30)
    answer = answer_to(a_request(sock))
    sock.sendall(answer[:7])
    with pytest.raises(TimeoutError):
        pending.result(30)
    sock.sendall(answer[7:])
    assert pending.result(60_000).cluster_id == "by hand"


def test_an_answer_that_nobody_waits_for_any_more_is_skipped(peer, open_connection):
    connection = open_connection(peer.port)
    sock = peer.accept()
    with pytest.raises(TimeoutError):
        connection.call(MetadataRequest(), version=9, timeout_ms=10)
    second = connection.send(MetadataRequest(), 9)
    sock.sendall(
        answer_to(a_request(sock)) + answer_to(a_request(sock), MetadataResponse(cluster_id="second"))
    )
    assert second.result(20_000).cluster_id == "second"


def test_the_other_waiter_times_out_too_while_one_reads(peer, open_connection):
    connection = open_connection(peer.port)
    peer.accept()
    first, second = connection.send(MetadataRequest(), 9), connection.send(MetadataRequest(), 9)
    outcomes = []
    reader = threading.Thread(target=lambda: outcomes.append(raised(lambda: first.result(300))))
    reader.start()
    with pytest.raises(TimeoutError):
        second.result(50)
    reader.join()
    assert [type(outcome) for outcome in outcomes] == [TimeoutError]


def raised(action):
    try:
        action()
    except Exception as error:
        logging.getLogger(__name__).exception("expected")
        return error
    return None


def test_close_wakes_every_waiter_at_once(peer, open_connection):
    connection = open_connection(peer.port)
    peer.accept()
    outcomes, waiting = [], threading.Barrier(4, timeout=60)

    def wait():
        pending = connection.send(MetadataRequest(), 9)
        waiting.wait()
        outcomes.append(raised(lambda: pending.result(60_000)))

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    waiting.wait()
    connection.close()
    for thread in threads:
        thread.join()
    assert [type(outcome) for outcome in outcomes] == [ConnectionAbortedError] * 3
    assert "closed by this side" in str(outcomes[0])


def test_close_wakes_a_sender_whose_peer_does_not_read(peer, open_connection):
    connection = open_connection(peer.port)
    peer.accept()
    partition = ProducePartition(index=0, records=bytes(50_000_000))
    request = ProduceRequest(topic_data=[ProduceTopic(name="t", partition_data=[partition])])
    outcomes = []
    sender = threading.Thread(target=lambda: outcomes.append(raised(lambda: connection.send(request, 9))))
    sender.start()
    sender.join(0.05)
    assert sender.is_alive()
    connection.close()
    sender.join(20)
    assert [type(outcome) for outcome in outcomes] == [ConnectionAbortedError]


def test_a_peer_that_takes_no_bytes_in_time_ends_the_connection(peer, open_connection):
    connection = open_connection(peer.port, timeout_ms=100)
    peer.accept()
    partition = ProducePartition(index=0, records=bytes(50_000_000))
    request = ProduceRequest(topic_data=[ProduceTopic(name="t", partition_data=[partition])])
    with pytest.raises(ConnectionError, match="took no more of a request for 100 ms"):
        connection.send(request, 9)
    assert not connection.is_open


def test_it_is_seen_that_a_peer_has_left_while_nothing_was_awaited(peer, open_connection):
    connection = open_connection(peer.port)
    sock = peer.accept()
    assert not connection.has_peer_left()
    sock.close()
    until(connection.has_peer_left)
    connection.close()
    assert connection.has_peer_left()


def test_a_peer_that_closes_fails_all_that_waits_and_all_that_comes_later(peer, open_connection):
    connection = open_connection(peer.port)
    sock = peer.accept()
    answered, unanswered = connection.send(MetadataRequest(), 9), connection.send(MetadataRequest(), 9)
    sock.sendall(answer_to(a_request(sock)))
    a_request(sock)
    sock.close()
    with pytest.raises(ConnectionError, match="closed the connection"):
        unanswered.result(20_000)
    assert answered.result(0).cluster_id == "by hand"
    assert not connection.is_open
    with pytest.raises(ConnectionError, match="has ended"):
        connection.send(MetadataRequest(), 9)


def test_a_stop_of_the_server_reaches_the_client(start_reactor, open_connection):
    reactor = start_reactor(lambda exchange: None)
    connection = open_connection(reactor)
    pending = connection.send(MetadataRequest(), 9)
    reactor.stop()
    with pytest.raises(ConnectionError):
        pending.result(60_000)


def test_nobody_at_home_is_told_with_the_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionError, match=f"cannot connect to 127.0.0.1:{port}: .*refused"):
        Connection.open("127.0.0.1", port, client_id="test", timeout_ms=1_000)


@pytest.mark.parametrize("host", ["a..b", ".", "x" * 64, "ü" * 100, "\ud800"])
def test_a_host_that_can_be_no_name_is_an_ordinary_connection_error(host: str):
    with pytest.raises(ConnectionError) as raised:
        Connection.open(host, 9092, client_id="me", timeout_ms=1_000)
    assert f"{host!r} cannot be a host name" in str(raised.value)


# Peers that talk nonsense


@pytest.mark.parametrize(
    ("nonsense", "complaint"),
    [
        (SIZE.pack(2) + b"xx", "answer of 2 bytes"),
        (SIZE.pack(4) + SIZE.pack(77), "answer to request 77; awaited was one to request 0"),
        (SIZE.pack(2**31 - 1), "announced a frame of 2147483647 bytes"),
        (b"HTTP/1.1 400 Bad Request", "announced a frame of 1213486160 bytes"),
    ],
)
def test_what_is_no_answer_ends_the_connection(peer, open_connection, nonsense, complaint):
    connection = open_connection(peer.port)
    sock = peer.accept()
    pending = connection.send(MetadataRequest(), 9)
    sock.sendall(nonsense)
    with pytest.raises(ConnectionError, match=complaint) as caught:
        pending.result(60_000)
    assert isinstance(caught.value.__cause__, WireError)
    assert not connection.is_open


def test_an_answer_that_was_not_asked_for_ends_the_connection(peer, open_connection):
    connection = open_connection(peer.port)
    sock = peer.accept()
    pending = connection.send(MetadataRequest(), 9)
    answer = answer_to(a_request(sock))
    sock.sendall(answer + answer)
    assert pending.result(60_000).cluster_id == "by hand"
    with pytest.raises(ConnectionError, match="awaited was nothing"):
        connection.send(MetadataRequest(), 9).result(20_000)


def test_an_answer_that_cannot_be_decoded_ends_the_connection(peer, open_connection):
    connection = open_connection(peer.port)
    sock = peer.accept()
    pending = connection.send(MetadataRequest(), 9)
    sock.sendall(SIZE.pack(9) + SIZE.pack(0) + b"\xff" * 5)
    with pytest.raises(WireError, match="Metadata response"):
        pending.result(60_000)
    assert not connection.is_open


def test_an_oversized_answer_is_refused_by_the_limit_of_the_connection(peer, open_connection):
    connection = open_connection(peer.port, frame_bytes_max=1_000)
    sock = peer.accept()
    pending = connection.send(MetadataRequest(), 9)
    sock.sendall(SIZE.pack(1_001))
    with pytest.raises(ConnectionError, match="0 to 1000 are accepted"):
        pending.result(60_000)


def test_closing_from_another_thread_never_closes_a_strangers_file(start_reactor, open_connection):
    """The descriptor's number is free for others only when no thread can still use it for the socket."""
    reactor = start_reactor(Broker())
    for _ in range(30):
        connection = open_connection(reactor)
        callers = [
            threading.Thread(
                target=lambda connection=connection: raised(
                    lambda: [
                        connection.call(MetadataRequest(), version=9, timeout_ms=20_000) for _ in range(50)
                    ]
                )
            )
            for _ in range(2)
        ]
        for caller in callers:
            caller.start()
        connection.close()
        reader, writer = os.pipe()
        for caller in callers:
            caller.join()
        os.set_blocking(reader, False)
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
        os.close(reader)
        os.close(writer)
