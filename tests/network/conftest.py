"""What the network tests share: a raw client, reactors that are checked for leaks, and files to send."""

import os
import socket
import struct
import threading

import pytest

from sparklog.model.parts import FileSlice
from sparklog.network.acceptor import Listener
from sparklog.network.reactor import Reactor
from tests.network.frames import SIZE, frame
from tests.network.held_handlers import Gate
from tests.network.tls_sides import ClientSide, ServerSide
from tests.waiting import until

PATIENCE_S = 60


class RawClient:
    """A socket that speaks frames, and as much nonsense as a test wants."""

    def __init__(self, port, receive_buffer=None, tls=None):
        self.sock = socket.socket()
        if receive_buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(PATIENCE_S)
        try:
            self.unread = b""
            self.sock.connect(("127.0.0.1", port))
            if tls is not None:
                self.sock = tls.context().wrap_socket(self.sock, server_hostname="127.0.0.1")
        except OSError:
            self.sock.close()
            raise

    def send(self, payload):
        self.sock.sendall(frame(payload))

    def send_raw(self, data):
        self.sock.sendall(data)

    def read_exactly(self, count):
        data = bytearray(self.unread)
        self.unread = b""
        while len(data) < count:
            chunk = self.sock.recv(min(count - len(data), 1 << 20))
            if not chunk:
                raise EOFError(f"closed after {len(data)} of {count} bytes")
            data += chunk
        return bytes(data)

    def read_frame(self):
        return self.read_exactly(SIZE.unpack(self.read_exactly(SIZE.size))[0])

    def call(self, payload):
        self.send(payload)
        return self.read_frame()

    def is_closed_by_peer(self):
        """Waits for the end of the stream; anything else that arrives is a failure."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def has_answer_within(self, seconds):
        self.sock.settimeout(seconds)
        try:
            self.unread += self.sock.recv(1)
            return self.unread != b""
        except TimeoutError:
            return False
        finally:
            self.sock.settimeout(PATIENCE_S)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()


class FileOnDisk:
    """A ReadableFile over a real descriptor."""

    def __init__(self, path, content):
        path.write_bytes(content)
        self.fd = os.open(path, os.O_RDONLY)

    def fileno(self):
        return self.fd

    def pread(self, length, position):
        return os.pread(self.fd, length, position)


def echo(exchange):
    exchange.reply([SIZE.pack(len(exchange.frame)), exchange.frame])


@pytest.fixture(autouse=True)
def no_leaks(cleanups):
    """Every test here leaves as many threads and descriptors as it found."""
    threads_before, before = set(threading.enumerate()), _names()
    fds_before = set(os.listdir("/dev/fd"))
    yield
    cleanups.run()
    # Brokers of a session's cluster in this process open files, close them and start threads as they please.
    if any(thread.name.startswith("broker-") for thread in threads_before):
        return
    until(lambda: set(threading.enumerate()) <= threads_before, lambda: f"the end of {_names() - before}")
    assert len(os.listdir("/dev/fd")) <= len(fds_before)


def _names():
    return {thread.name for thread in threading.enumerate()}


class Cleanups:
    def __init__(self):
        self.actions = []

    def run(self):
        while self.actions:
            self.actions.pop()()


@pytest.fixture
def cleanups():
    return Cleanups()


def pytest_generate_tests(metafunc):
    """Modules that set ``IS_OVER_BOTH`` run their tests of connections in the clear and over TLS."""
    if "transport" in metafunc.fixturenames and getattr(metafunc.module, "IS_OVER_BOTH", False):
        metafunc.parametrize("transport", ["plain", "tls"])


@pytest.fixture
def transport():
    """What reactors and raw clients speak, unless a test names other sides of TLS."""
    return "plain"


@pytest.fixture
def start_reactor(cleanups, transport):
    """Starts a reactor on a free port of the loopback; it is stopped at the end."""

    def start(handle=echo, *, listeners=1, tls=None, **settings):
        side = ServerSide() if tls is None and transport == "tls" else tls
        addresses = [Listener("127.0.0.1", 0, f"L{n}", side) for n in range(listeners)]
        reactor = Reactor(addresses, handle, **settings)
        reactor.start()
        cleanups.actions.append(reactor.stop)
        return reactor

    return start


@pytest.fixture
def connect(cleanups, transport):
    """Opens raw clients to a reactor or a port."""

    def open_client(target, **options):
        if transport == "tls":
            options.setdefault("tls", ClientSide())
        client = RawClient(target if isinstance(target, int) else target.ports[0], **options)
        cleanups.actions.append(client.close)
        return client

    return open_client


@pytest.fixture
def make_slice(tmp_path, cleanups):
    """A slice of a real file with the given content."""

    def make(content, position=0, length=None):
        file = FileOnDisk(tmp_path / f"file-{len(cleanups.actions)}", content)
        cleanups.actions.append(lambda: os.close(file.fd))
        return FileSlice(file, position, len(content) - position if length is None else length)

    return make


@pytest.fixture
def echo_handler():
    return echo


@pytest.fixture
def gate(echo_handler, cleanups):
    gate = Gate(echo_handler)
    cleanups.actions.append(gate.open.set)
    return gate
