"""The way to the controller, over real sockets: who is asked, and what ends a wait."""

import threading
import time
import uuid

import pytest

from sparklog.broker.to_controller.controller_link import ControllerLink, NotSentError, watch_controller
from sparklog.broker.to_controller.isr_proposals import IsrProposalSender
from sparklog.core.controller.state.znodes import CONTROLLER, ControllerNode, encode_controller
from sparklog.core.replication.actions import ProposeIsr
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.network.acceptor import Listener
from sparklog.network.loop_threads import LoopThreads, no_calls
from sparklog.network.reactor import Reactor
from sparklog.testing.memory_zookeeper import MemoryZooKeeperServer
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartitionResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResponse,
)

TP = TopicPartition("quakes", 0)
TOPIC_ID = uuid.UUID(int=7)
PROPOSAL = ProposeIsr(1, LeaderEpoch(3), 4, ((BrokerId(1), BrokerEpoch(10)),))

NOTHING = AlterPartitionRequest(broker_id=1, broker_epoch=10, topics=[])


class Controller:
    """Answers AlterPartition, unless it is paused: then it takes requests and says nothing."""

    def __init__(self) -> None:
        self.is_paused, self.asked = False, threading.Semaphore(0)
        self.reactor = Reactor([Listener("127.0.0.1", 0)], self.handle)
        self.reactor.start()

    def handle(self, exchange) -> None:
        request = decode_request(exchange.frame)
        self.asked.release()
        if self.is_paused:
            return
        partition = AlterPartitionPartitionResponse(partition_index=0, error_code=ErrorCode.none)
        topic = AlterPartitionTopicResponse(topic_id=TOPIC_ID, partitions=[partition])
        response = AlterPartitionResponse(topics=[topic])
        exchange.reply(encode_response(response, request.header.api_version, request.header.correlation_id))

    @property
    def node(self) -> bytes:
        return encode_controller(ControllerNode("127.0.0.1", self.reactor.ports[0], 1, "application"))


class Partition:
    topic_id = TOPIC_ID

    def __init__(self) -> None:
        self.told = threading.Event()

    def on_isr_reply(self, leader_epoch, proposal, reply) -> None:
        assert reply.error is ErrorCode.none
        self.told.set()


@pytest.fixture
def controllers():
    made = [Controller(), Controller()]
    yield made
    for controller in made:
        controller.reactor.stop()


@pytest.fixture
def zookeeper(controllers):
    with MemoryZooKeeperServer().client() as client:
        client.ensure_path(CONTROLLER.rpartition("/")[0] or "/")
        client.create(CONTROLLER, controllers[0].node)
        yield client


@pytest.fixture
def link(zookeeper):
    link = ControllerLink(client_id="broker-1")
    watch = LoopThreads(no_calls)
    with link.changes.signalled() as changed:
        watch.start("controller-watch", lambda: watch_controller(zookeeper, link.lead_to))
        until_given(changed)
    yield link
    link.close()
    watch.close()


def until_given(signal) -> None:
    """Wait until a signal is given."""
    given = threading.Event()
    signal.wake = given.set
    assert signal.is_given or given.wait(5)
    signal.take()


@pytest.fixture
def proposals(link):
    partition = Partition()
    sender = IsrProposalSender(
        BrokerId(1), lambda: BrokerEpoch(10), lambda _: partition, link.changes, threading.Lock()
    )
    loops = LoopThreads(lambda call: link.call(call.message, timeout_ms=call.timeout_ms, lane=call.lane))
    loops.start("isr-proposals", sender.loop)
    yield sender, partition
    link.close()
    loops.close()


@pytest.mark.bug("B54")
def test_a_proposal_to_a_paused_controller_goes_to_the_next_one_as_soon_as_there_is_one(
    controllers, zookeeper, proposals
) -> None:
    sender, partition = proposals
    controllers[0].is_paused = True
    sender.propose(TP, PROPOSAL)
    assert controllers[0].asked.acquire(timeout=60)
    began = time.monotonic()
    zookeeper.set(CONTROLLER, controllers[1].node)
    assert partition.told.wait(5)
    assert time.monotonic() - began < 0.9, "it must not wait for its own time-out"


@pytest.mark.bug("B54", "away", "A lost ISR proposal waits 30 s, and delays all others of its broker.")
def test_a_proposal_whose_answer_was_lost_is_sent_again_within_about_a_second(controllers, proposals) -> None:
    sender, partition = proposals
    controllers[0].is_paused = True
    sender.propose(TP, PROPOSAL)
    assert controllers[0].asked.acquire(timeout=60)
    controllers[0].is_paused = False
    assert partition.told.wait(2)


@pytest.mark.bug("B54")
def test_what_waits_long_on_one_lane_holds_up_no_other(controllers, link) -> None:
    controllers[0].is_paused = True
    slow = threading.Thread(target=_call_in_vain, args=(link,))
    slow.start()
    assert controllers[0].asked.acquire(timeout=60)
    controllers[0].is_paused = False
    answer = link.call(AlterPartitionRequest(broker_id=1), timeout_ms=2_000, lane="another")
    assert answer.error_code is ErrorCode.none
    link.close()
    slow.join(5)
    assert not slow.is_alive()


def _call_in_vain(link) -> None:
    with pytest.raises(ConnectionError):
        link.call(AlterPartitionRequest(broker_id=1), timeout_ms=30_000)


def test_a_connection_that_the_controller_closed_as_idle_fails_no_call(controllers, link) -> None:
    first = controllers[0]
    request = AlterPartitionRequest(broker_id=1, broker_epoch=10, topics=[])
    link.call(request, timeout_ms=5_000)
    (connection,) = link._connections.values()
    port = first.reactor.ports[0]
    first.reactor.stop()
    first.reactor = Reactor([Listener("127.0.0.1", port)], first.handle)
    first.reactor.start()
    link.call(request, timeout_ms=5_000)
    assert not connection.is_open


def test_a_controller_is_found_after_an_entry_that_nobody_can_read(controllers, zookeeper, link) -> None:
    """As another release may write it during a rolling upgrade."""
    with link.changes.signalled() as changed:
        zookeeper.set(CONTROLLER, b"not JSON")
        until_given(changed)
        zookeeper.set(CONTROLLER, controllers[1].node)
        until_given(changed)
    link.call(AlterPartitionRequest(broker_id=1, broker_epoch=10, topics=[]), timeout_ms=5_000)
    assert controllers[1].asked.acquire(blocking=False)


def test_a_request_waits_for_a_controller_that_can_be_reached(controllers, zookeeper, link) -> None:
    controllers[0].reactor.stop()
    answers = []

    def ask() -> None:
        answers.append(link.call_when_reachable(NOTHING, timeout_ms=60_000))

    asking = threading.Thread(target=ask)
    asking.start()
    zookeeper.set(CONTROLLER, controllers[1].node)
    asking.join(60)
    assert controllers[1].asked.acquire(timeout=0)
    assert [answer.topics[0].topic_id for answer in answers] == [TOPIC_ID]


def test_a_request_that_was_sent_is_lost_with_its_controller_and_not_sent_again(
    controllers, zookeeper, link
) -> None:
    controllers[0].is_paused = True
    losses = []

    def ask() -> None:
        with pytest.raises(ConnectionError) as loss:
            link.call_when_reachable(NOTHING, timeout_ms=60_000)
        losses.append(loss.value)

    asking = threading.Thread(target=ask)
    asking.start()
    assert controllers[0].asked.acquire(timeout=60)
    zookeeper.set(CONTROLLER, controllers[1].node)
    asking.join(60)
    assert not isinstance(losses.pop(), NotSentError)
    assert not controllers[1].asked.acquire(timeout=0)


def test_a_request_that_reaches_no_controller_in_time_was_not_sent(controllers, link) -> None:
    controllers[0].reactor.stop()
    with pytest.raises(NotSentError):
        link.call_when_reachable(NOTHING, timeout_ms=300)
