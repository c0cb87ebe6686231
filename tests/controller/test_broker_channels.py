"""Ordered channels to brokers: everything arrives, in order, at the incarnation it was meant for."""

import itertools
import queue
import threading

import pytest

from sparklog.controller.broker_channels import BrokerChannels, ChannelPorts
from sparklog.controller.channel_connections import ChannelConnections
from sparklog.core.controller.actions import PushId, SendStopReplica
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from sparklog.network.acceptor import Listener
from sparklog.network.clock import SystemClock
from sparklog.network.loop_threads import LoopThreads
from sparklog.network.reactor import Reactor
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.control.stop_replica import StopReplicaResponse

pytestmark = pytest.mark.integration

WAIT_S = 60
PEER = BrokerId(7001)  # of no cluster that lives in this process: its threads are ours


class Peer:
    """A broker that answers each request as its next instruction says."""

    def __init__(self, port=0):
        self.seen = queue.Queue()
        self.hang_up = 0
        self.error = ErrorCode.none
        self.reactor = Reactor([Listener("127.0.0.1", port)], self.handle, clock=SystemClock(), handlers=1)
        self.reactor.start()

    def handle(self, exchange):
        header, body = decode_request(exchange.frame)
        self.seen.put(body.topic_states[0].partition_states[0].partition_index)
        if self.hang_up:
            self.hang_up -= 1
            exchange.close()
            return
        response = StopReplicaResponse(error_code=self.error)
        exchange.reply(encode_response(response, header.api_version, header.correlation_id))


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.reactor.stop()


@pytest.fixture
def answers():
    return queue.Queue()


def senders():
    return [one for one in threading.enumerate() if one.name == f"to-broker-{PEER}"]


@pytest.fixture
def ports():
    connections = ChannelConnections("test")
    loops = LoopThreads(connections.ask)
    yield ChannelPorts(
        loops, itertools.count().__next__, connections.hang_up, connections.has_ended, threading.Lock
    )
    connections.close()
    loops.close(WAIT_S)
    assert not senders()


@pytest.fixture
def channels(answers, ports):
    def on_answer(answer):
        answers.put((answer.push, answer.broker, dict(answer.errors)))

    channels = BrokerChannels(
        ControllerEpoch(1), on_answer, ports, listener="PLAINTEXT", request_timeout_ms=10_000
    )
    yield channels
    channels.close()


def broker(port, epoch=7):
    return Broker(PEER, plaintext("127.0.0.1", port), BrokerEpoch(epoch))


def stop(number, epoch=7):
    partition = (TopicPartition("t", number), LeaderEpoch(0))
    return SendStopReplica(PushId(number), PEER, BrokerEpoch(epoch), (partition,), delete=False)


def test_messages_arrive_in_order_and_their_answers_are_told(channels, peer, answers):
    channels.connect(broker(peer.reactor.ports[0]))
    for number in range(20):
        channels.send(stop(number))
    assert [peer.seen.get(timeout=WAIT_S) for _ in range(20)] == list(range(20))
    assert [answers.get(timeout=WAIT_S) for _ in range(20)] == [(number, PEER, {}) for number in range(20)]


def test_a_message_is_sent_again_until_it_is_answered_and_none_overtakes_it(channels, peer, answers):
    peer.hang_up = 2
    channels.connect(broker(peer.reactor.ports[0]))
    channels.send(stop(1))
    channels.send(stop(2))
    assert [peer.seen.get(timeout=WAIT_S) for _ in range(4)] == [1, 1, 1, 2]
    assert [answers.get(timeout=WAIT_S)[0] for _ in range(2)] == [1, 2]


def test_a_refusal_of_the_whole_message_is_an_error_of_each_of_its_partitions(channels, peer, answers):
    peer.error = ErrorCode.stale_broker_epoch
    channels.connect(broker(peer.reactor.ports[0]))
    channels.send(stop(1))
    assert answers.get(timeout=WAIT_S) == (1, PEER, {TopicPartition("t", 1): ErrorCode.stale_broker_epoch})


def test_what_was_meant_for_another_incarnation_is_dropped(channels, peer, answers):
    channels.connect(broker(peer.reactor.ports[0], epoch=8))
    channels.send(stop(1, epoch=7))
    channels.disconnect(PEER, BrokerEpoch(7))
    channels.send(stop(2, epoch=8))
    assert peer.seen.get(timeout=WAIT_S) == 2


def test_a_broker_has_ended_once_its_port_refuses_as_the_channel_to_it_tells(channels, peer, answers):
    channels.connect(broker(peer.reactor.ports[0]))
    channels.send(stop(1))
    answers.get(timeout=WAIT_S)
    assert not channels.has_ended(PEER, BrokerEpoch(7))
    peer.reactor.stop()
    assert channels.has_ended(PEER, BrokerEpoch(7))
    assert not channels.has_ended(PEER, BrokerEpoch(6))


def test_a_channel_to_nobody_ends_at_once_when_it_is_closed(channels, peer, answers, ports):
    port = peer.reactor.ports[0]
    peer.reactor.stop()
    channels.connect(broker(port))
    channels.send(stop(1))
    channels.disconnect(PEER, BrokerEpoch(7))
    channels.connect(broker(port, epoch=8))
    channels.close()
    ports.loops.close(WAIT_S)
    assert answers.empty()


def test_a_bug_in_an_answers_handling_keeps_no_later_message_from_the_broker(peer, ports):
    def fail(answer):
        if answer.push == 1:
            raise KeyError("a bug")
        answers.put(answer.push)

    answers = queue.Queue()
    channels = BrokerChannels(
        ControllerEpoch(1), fail, ports, listener="PLAINTEXT", request_timeout_ms=10_000
    )
    channels.connect(broker(peer.reactor.ports[0]))
    channels.send(stop(1))
    channels.send(stop(2))
    assert answers.get(timeout=WAIT_S) == 2
    channels.close()
