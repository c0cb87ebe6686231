"""A proxy that records between a client and a reactor: with TLS it sees no word of what goes through it."""

import socket
import threading

import pytest

from sparklog.network.dialing.connection import Connection
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataResponse
from tests.network.frames import SIZE
from tests.network.tls_sides import ClientSide

IS_OVER_BOTH = True

IN_REQUEST, IN_ANSWER, IN_FILE = b"planted-in-a-request", b"planted-in-an-answer", b"planted-in-a-file"
CLIENT_ID = "planted-as-client-id"
ALL_WORDS = {IN_REQUEST, IN_ANSWER, IN_FILE, CLIENT_ID.encode()}


class RecordingProxy:
    """Carries bytes between its clients and ``port``, and keeps them all."""

    def __init__(self, port):
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.seen = bytearray()
        self._sockets = [self._server]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                near = self._server.accept()[0]
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                thread = threading.Thread(target=self._carry, args=(source, sink))
                self._threads.append(thread)
                thread.start()

    def _carry(self, source, sink):
        direction = bytearray()
        try:
            while chunk := source.recv(1 << 16):
                direction += chunk
                sink.sendall(chunk)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            sink.close()  # one end has gone
        self.seen += direction

    def stop(self):
        """Carry what is left, once the clients have gone."""
        if self._server.fileno() == -1:
            return
        self._server.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for thread in self._threads[1:]:
            thread.join()
        for sock in self._sockets:
            sock.close()


@pytest.fixture
def proxy_to(cleanups):
    def start(port):
        proxy = RecordingProxy(port)
        cleanups.actions.append(proxy.stop)
        return proxy

    return start


def test_a_listener_on_the_way_reads_everything_in_the_clear_and_nothing_over_tls(
    start_reactor, proxy_to, make_slice, transport
):
    body = make_slice(IN_FILE * 50_000)

    def answer(exchange):
        header = decode_request(exchange.frame).header
        if header.api_key == 3:
            message = MetadataResponse(cluster_id=IN_ANSWER.decode())
            exchange.reply(encode_response(message, header.api_version, header.correlation_id))
        else:  # a fetch from disk, as far as the network is concerned
            head = SIZE.pack(header.correlation_id) + b"\0"
            exchange.reply([SIZE.pack(len(head) + body.length), head, body])

    proxy = proxy_to(start_reactor(answer).ports[0])
    tls = ClientSide() if transport == "tls" else None
    with Connection.open(
        "localhost", proxy.port, client_id=CLIENT_ID, timeout_ms=20_000, tls=tls
    ) as connection:
        assert (
            connection.call(MetadataRequest(), version=9, timeout_ms=20_000).cluster_id == IN_ANSWER.decode()
        )
        partition = ProducePartition(index=0, records=IN_REQUEST * 1_000)
        produce = ProduceRequest(topic_data=[ProduceTopic(name="t", partition_data=[partition])])
        fetched = connection.wait_for(connection.send(produce, 9), 20_000)
        assert bytes(fetched[5:]) == IN_FILE * 50_000
    proxy.stop()
    assert len(proxy.seen) > len(IN_FILE) * 50_000
    assert {word for word in ALL_WORDS if word in proxy.seen} == (set() if tls else ALL_WORDS)
