"""A channel's connection is its own: it ends with the channel, and is not opened again."""

import threading

import pytest

from sparklog.controller.channel_connections import ChannelConnections
from sparklog.model.cluster_facts import Node
from sparklog.model.ids import BrokerId
from sparklog.model.loops import CallBroker
from sparklog.network.acceptor import Listener
from sparklog.network.clock import SystemClock
from sparklog.network.reactor import Reactor
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest, StopReplicaResponse

WAIT_S = 60
PEER = BrokerId(2)


class Peer:
    """A broker that answers when it is let; it numbers the connections that requests come over."""

    def __init__(self):
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.arrived = threading.Semaphore(0)
        self.connections = []
        self.reactor = Reactor([Listener("127.0.0.1", 0)], self.handle, clock=SystemClock(), handlers=2)
        self.reactor.start()

    def handle(self, exchange):
        self.connections.append(exchange.context.connection_id)
        self.arrived.release()
        assert self.may_answer.wait(WAIT_S)
        header, _ = decode_request(exchange.frame)
        exchange.reply(encode_response(StopReplicaResponse(), header.api_version, header.correlation_id))

    @property
    def node(self):
        return Node(PEER, "127.0.0.1", self.reactor.ports[0])

    def call(self, lane):
        return CallBroker(self.node, StopReplicaRequest(controller_id=-1, controller_epoch=1), 60_000, lane)


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.may_answer.set()
    peer.reactor.stop()


@pytest.fixture
def connections():
    connections = ChannelConnections("test")
    yield connections
    connections.close()


def test_channels_to_the_same_broker_share_no_connection(peer, connections):
    for lane in (4, 5, 4):
        connections.ask(peer.call(lane))
    first, second, again = peer.connections
    assert first == again != second


def test_the_end_of_a_channel_leaves_its_successors_call_alone(peer, connections):
    peer.may_answer.clear()
    outcomes = []
    asking = threading.Thread(target=lambda: outcomes.append(connections.ask(peer.call(5))))
    asking.start()
    assert peer.arrived.acquire(timeout=WAIT_S)
    connections.hang_up(PEER, 4)
    peer.may_answer.set()
    asking.join(WAIT_S)
    assert outcomes == [StopReplicaResponse()]


def test_a_call_that_a_closed_channel_was_about_to_make_opens_no_connection(peer, connections):
    connections.hang_up(PEER, 4)
    with pytest.raises(ConnectionError, match="not called any more"):
        connections.ask(peer.call(4))
    assert peer.connections == []


def test_the_end_of_a_channel_ends_its_call(peer, connections):
    peer.may_answer.clear()
    errors = []

    def ask():
        try:
            connections.ask(peer.call(4))
        except OSError as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert peer.arrived.acquire(timeout=WAIT_S)
    connections.hang_up(PEER, 4)
    asking.join(WAIT_S)
    assert len(errors) == 1


def test_after_the_end_of_all_no_channel_makes_a_call(peer, connections):
    connections.ask(peer.call(4))
    connections.close()
    for lane in (4, 5):
        with pytest.raises(ConnectionError, match="not called any more"):
            connections.ask(peer.call(lane))
    assert len(peer.connections) == 1


def test_a_peer_has_ended_when_its_port_refuses_whether_or_not_a_connection_was_made(peer, connections):
    connections.ask(peer.call(4))
    node = peer.node
    assert not connections.has_ended(node, 4)
    assert not connections.has_ended(node, 5)
    peer.reactor.stop()
    assert connections.has_ended(node, 4)
    assert connections.has_ended(node, 5)
