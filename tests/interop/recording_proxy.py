"""A proxy before each broker of a cluster, which records the requests of transactions and loses some of them.

Clients reach the brokers through it alone: it puts its own addresses into the answers that name brokers. A
connection has a number, which rises as on a broker, and is read to its end before a later one is read: what
its client wrote before it gave the connection up is seen before what it sent over the next one.
"""

import selectors
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

from sparklog.model.parts import read_parts
from sparklog.records.envelope import split
from sparklog.wire.codec import decode_request, decode_response, encode_response, parse_request_header

PRODUCE, METADATA, FIND_COORDINATOR, INIT, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS = (
    0, 3, 10, 22, 24, 25, 26, 28,
)  # fmt: skip
DESCRIBE_CLUSTER = 60
OF_TRANSACTIONS = frozenset({PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS})
NAME_BROKERS = frozenset({METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER})
PIECE_BYTES = 1 << 16

Fate = Literal["arrives", "request is lost", "answer is lost"]


class Request(NamedTuple):
    """``kind``: what the broker compares (docs/coordinators.md): the sort of request, the producer, where."""

    broker_id: int
    kind: tuple[Any, ...]
    producer_epoch: int
    connection: int


def requests_in(api_key: int, body: Any) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Kind and producer epoch of each part of a request; nothing of one that is in no transaction."""
    if api_key == PRODUCE:
        for topic in body.topic_data:
            for part in topic.partition_data:
                for _, header in split(part.records or b""):
                    if header.is_transactional:
                        yield (api_key, header.producer_id, topic.name, part.index), header.producer_epoch
    elif api_key == ADD_PARTITIONS:
        yield (ADD_PARTITIONS, body.v3_and_below_producer_id), body.v3_and_below_producer_epoch
    elif api_key == ADD_OFFSETS:
        yield (ADD_PARTITIONS, body.producer_id), body.producer_epoch
    elif api_key == END:
        yield (END, body.producer_id), body.producer_epoch
    elif api_key == COMMIT_OFFSETS:
        yield (COMMIT_OFFSETS, body.producer_id, body.group_id), body.producer_epoch


def in_turns(requests: list[Request]) -> list[tuple[Request, Request]]:
    """Requests that came over an older connection than one of their kind and epoch before, with that one."""
    latest: dict[Any, Request] = {}
    found = []
    for one in requests:
        before = latest.setdefault(one[:3], one)
        if one.connection < before.connection:
            found.append((before, one))
        else:
            latest[one[:3]] = one
    return found


@dataclass(slots=True, eq=False)
class Connection:
    """A client's connection and its other half, to the broker. ``asked``: API and version of each request."""

    broker_id: int
    number: int
    client: socket.socket
    broker: socket.socket
    asked: dict[int, tuple[int, int]] = field(default_factory=dict)
    lost_answers: set[int] = field(default_factory=set)
    from_client: bytearray = field(default_factory=bytearray)
    from_broker: bytearray = field(default_factory=bytearray)

    def close(self) -> None:
        self.client.close()
        self.broker.close()


def pass_on(connection: Connection, frame: bytes) -> None:
    """Send a request to its broker."""
    header, _ = parse_request_header(frame)
    connection.asked[header.correlation_id] = header.api_key, header.api_version
    connection.broker.sendall(struct.pack(">i", len(frame)) + frame)


class RecordingProxy:
    """A context manager. ``fate`` is asked about each request of a transaction, with its API and number."""

    def __init__(self, brokers: Mapping[int, tuple[str, int]], fate: Callable[[int, int], Fate]) -> None:
        self.requests: list[Request] = []
        self._brokers = brokers
        self._fate = fate
        self._asked: defaultdict[int, int] = defaultdict(int)
        self._selector = selectors.DefaultSelector()
        self._connections: list[Connection] = []
        self._last_number = 0
        self._listeners = {broker_id: socket.create_server(("127.0.0.1", 0)) for broker_id in brokers}
        self._waker, self._woken = socket.socketpair()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="recording-proxy")

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{self._port(broker_id)}" for broker_id in self._brokers)

    def _port(self, broker_id: int) -> int:
        port: int = self._listeners[broker_id].getsockname()[1]
        return port

    def __enter__(self) -> Self:
        for broker_id, listener in self._listeners.items():
            self._selector.register(listener, selectors.EVENT_READ, broker_id)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._waker.send(b"!")
        self._thread.join()
        for one in (*self._listeners.values(), self._waker, self._woken, *self._connections):
            one.close()
        self._selector.close()
        if self._failure is not None:
            raise self._failure

    # ---- its thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except Exception as error:  # noqa: BLE001 (raised where the proxy is left)
            self._failure = error
            for one in self._connections:
                one.close()

    def _turn(self) -> bool:
        """Whether there will be another one."""
        ready = self._selector.select()
        if any(key.fileobj is self._woken for key, _ in ready):
            return False
        # The oldest first: what was sent before a connection was given up is read before what came after.
        readable = [key for key, _ in ready if isinstance(key.data, Connection)]
        for key in sorted(readable, key=lambda key: key.data.number):
            if key.data in self._connections:
                self._read(key.data, is_request=key.fileobj is key.data.client)
        for key, _ in ready:
            if isinstance(key.data, int):
                self._accept(key.data)
        return True

    def _accept(self, broker_id: int) -> None:
        client, _ = self._listeners[broker_id].accept()
        try:
            broker = socket.create_connection(self._brokers[broker_id], timeout=10)
        except OSError:
            client.close()
            return
        self._last_number += 1
        connection = Connection(broker_id, self._last_number, client, broker)
        self._connections.append(connection)
        for one in (client, broker):
            one.settimeout(None)  # a socket with a time-out waits, in spite of MSG_DONTWAIT
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(one, selectors.EVENT_READ, connection)

    def _cut(self, connection: Connection) -> None:
        self._connections.remove(connection)
        for one in (connection.client, connection.broker):
            self._selector.unregister(one)
        connection.close()

    def _read(self, connection: Connection, *, is_request: bool) -> None:
        source = connection.client if is_request else connection.broker
        buffer = connection.from_client if is_request else connection.from_broker
        try:
            while piece := source.recv(PIECE_BYTES, socket.MSG_DONTWAIT):
                buffer += piece
            is_over = True
        except BlockingIOError:
            is_over = False
        except OSError:
            is_over = True
        try:
            while (frame := _take_frame(buffer)) is not None:
                is_cut = (self._on_request if is_request else self._on_answer)(connection, frame)
                if is_cut:
                    self._cut(connection)
                    return
        except OSError:
            is_over = True
        if is_over:
            self._cut(connection)

    def _on_request(self, connection: Connection, frame: bytes) -> bool:
        """Whether the connection is to be cut."""
        header, _ = parse_request_header(frame)
        fate: Fate = "arrives"
        if header.api_key in OF_TRANSACTIONS:
            for kind, epoch in requests_in(header.api_key, decode_request(frame).body):
                self.requests.append(Request(connection.broker_id, kind, epoch, connection.number))
        if header.api_key in OF_TRANSACTIONS or header.api_key == INIT:
            self._asked[header.api_key] += 1
            fate = self._fate(header.api_key, self._asked[header.api_key])
        if fate == "request is lost":
            return True
        if fate == "answer is lost":
            connection.lost_answers.add(header.correlation_id)
        pass_on(connection, frame)
        return False

    def _on_answer(self, connection: Connection, frame: bytes) -> bool:
        """Whether the connection is to be cut."""
        (correlation_id,) = struct.unpack_from(">i", frame)
        api_key, version = connection.asked.pop(correlation_id)
        if correlation_id in connection.lost_answers:
            return True
        whole = struct.pack(">i", len(frame)) + frame
        if api_key in NAME_BROKERS:
            _, answer = decode_response(api_key, version, frame)
            self._rename(answer)
            whole = read_parts(encode_response(answer, version, correlation_id))
        connection.client.sendall(whole)
        return False

    def _rename(self, answer: Any) -> None:
        named = [*getattr(answer, "brokers", ()), *getattr(answer, "coordinators", ())]
        for one in [*named, answer]:
            broker_id = getattr(one, "node_id", getattr(one, "broker_id", None))
            if broker_id in self._listeners:
                one.host, one.port = "127.0.0.1", self._port(broker_id)


def _take_frame(buffer: bytearray) -> bytes | None:
    """The next whole frame, without its size."""
    if len(buffer) < 4:
        return None
    end = 4 + int.from_bytes(buffer[:4], "big")
    if len(buffer) < end:
        return None
    frame = bytes(buffer[4:end])
    del buffer[:end]
    return frame
