"""Connections to other brokers tell who ended them, and whether anybody listens."""

import socket
import threading

import pytest

from sparklog.model.cluster_facts import Node
from sparklog.model.ids import BrokerId
from sparklog.network.dialing.peer_connections import PeerConnections
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest

TIMEOUT_MS = 10_000
MESSAGE = UpdateMetadataRequest(controller_id=1, controller_epoch=1, topic_states=[], live_brokers=[])
"""Its version is not negotiated."""


class Peer:
    """Takes one connection and a request on it, and does not answer."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.node = Node(BrokerId(1), *self._listener.getsockname())
        self._connection = None
        self._taken = threading.Event()
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def _take(self):
        self._connection, _ = self._listener.accept()
        self._connection.recv(1)
        self._taken.set()

    def wait_for_request(self):
        assert self._taken.wait(10)

    def hang_up(self):
        self._connection.close()

    def stop_listening(self):
        self._listener.close()

    def close(self):
        self._thread.join()
        self.hang_up()
        self._listener.close()


class Caller:
    """A call in a thread of its own, and the error that ends it."""

    def __init__(self, connections, node):
        self._connections, self._node, self.error = connections, node, None
        self._thread = threading.Thread(target=self._call)
        self._thread.start()

    def _call(self):
        try:
            self._connections.call(self._node, MESSAGE, timeout_ms=TIMEOUT_MS)
        except OSError as error:
            self.error = error

    def wait_for_error(self):
        self._thread.join(10)
        assert self.error is not None
        return self.error


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture
def connections():
    connections = PeerConnections(client_id="test")
    yield connections
    connections.close()


@pytest.fixture
def caller(peer, connections):
    caller = Caller(connections, peer.node)
    peer.wait_for_request()
    return caller


def test_a_call_whose_connection_the_other_side_ends_is_lost(peer, caller):
    peer.hang_up()
    error = caller.wait_for_error()
    assert isinstance(error, ConnectionError)
    assert not isinstance(error, (ConnectionRefusedError, ConnectionAbortedError))


def test_a_call_whose_connection_this_side_ends_is_aborted(caller, connections):
    connections.forget(BrokerId(1))
    assert isinstance(caller.wait_for_error(), ConnectionAbortedError)


def test_a_call_after_the_end_of_this_side_is_aborted(peer, connections):
    connections.close()
    with pytest.raises(ConnectionAbortedError, match="this side stops"):
        connections.call(peer.node, MESSAGE, timeout_ms=TIMEOUT_MS)


def test_a_call_to_an_address_where_nobody_listens_is_refused(connections):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        node = Node(BrokerId(1), *listener.getsockname())
    with pytest.raises(ConnectionRefusedError, match="cannot connect to"):
        connections.call(node, MESSAGE, timeout_ms=TIMEOUT_MS)


PROBE_MS = 10_000


def test_a_peer_that_is_silent_has_not_ended(peer, caller, connections):
    assert not connections.has_ended(peer.node, PROBE_MS)


def test_a_peer_that_closed_a_connection_and_takes_another_has_not_ended(peer, caller, connections):
    """As brokers close connections that were idle for long."""
    peer.hang_up()
    caller.wait_for_error()
    assert not connections.has_ended(peer.node, PROBE_MS)


def test_a_peer_whose_host_refuses_another_connection_has_ended(peer, caller, connections):
    peer.stop_listening()
    assert not connections.has_ended(peer.node, PROBE_MS), "its connection is open"
    peer.hang_up()
    caller.wait_for_error()
    assert connections.has_ended(peer.node, PROBE_MS)


def test_what_this_side_closed_proves_nothing(peer, caller, connections):
    connections.forget(BrokerId(1))
    caller.wait_for_error()
    assert not connections.has_ended(peer.node, PROBE_MS)


def test_a_host_that_cannot_be_asked_proves_nothing(connections):
    assert not connections.has_ended(Node(BrokerId(1), "no such host.invalid", 9), PROBE_MS)
