"""Loops driven by events, and a broker's calls to the controller."""

import pytest

from simulation.machines.network import Network
from simulation.machines.tasks import BrokerLoops
from simulation.schedule import US_PER_MS, Process, Schedule
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.model.cluster_facts import Node
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await, CallBroker, CallController, Pause, Signal
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataResponse

PEER = Node(BrokerId(2), "peer", 9092)
CONTROLLER = ControllerNode("controller-a", 9091, 1, "application")


class Bench:
    """A process with loops, and a peer and a controller that answer unless they are silent."""

    def __init__(self) -> None:
        self.schedule, self.is_silent, self.outcomes = Schedule(), False, []
        self.network = Network(self.schedule, 1, (1.0, 2.0))
        for host in ("peer", "controller-a"):
            self.network.listen(host, Process(self.schedule, host), self.serve)
        self.loops = BrokerLoops(Process(self.schedule, "asks"), "asks", self.network)

    def serve(self, exchange) -> None:
        if not self.is_silent:
            header = decode_request(exchange.frame).header
            exchange.reply(encode_response(MetadataResponse(), header.api_version, header.correlation_id))

    def ask(self, question) -> None:
        """Start a loop that asks once and notes when it learnt what."""

        def loop():
            try:
                outcome = yield question
            except OSError as error:
                outcome = error
            self.outcomes.append((outcome, self.schedule.now_ms))

        self.loops.start("a-loop-under-test", loop)
        self.run(0)

    def run(self, ms) -> None:
        self.schedule.run_until(self.schedule.now_us + ms * US_PER_MS)

    @property
    def outcome(self):
        ((outcome, _when_ms),) = self.outcomes
        return outcome


@pytest.fixture
def bench():
    return Bench()


def test_a_call_is_answered_with_the_response(bench) -> None:
    bench.ask(CallBroker(PEER, MetadataRequest(), 100))
    bench.run(10)
    assert isinstance(bench.outcome, MetadataResponse)


def test_hanging_up_ends_the_calls_to_that_broker_only(bench) -> None:
    bench.is_silent = True
    bench.ask(CallBroker(PEER, MetadataRequest(), 1_000))
    bench.loops.hang_up(BrokerId(3))
    bench.run(1)
    assert bench.outcomes == []
    bench.loops.hang_up(PEER.id)
    bench.run(1)
    assert isinstance(bench.outcome, ConnectionError)


def test_a_pause_takes_as_long_as_it_says(bench) -> None:
    bench.ask(Pause(70))
    bench.run(1_000)
    assert bench.outcomes[0][1] == 70


def test_a_signal_ends_a_wait_and_is_taken(bench) -> None:
    signal = Signal()
    bench.ask(Await(signal))
    bench.run(5_000)
    assert bench.outcomes == []
    signal.give()
    bench.run(1)
    assert bench.outcome is True
    assert not signal.is_given


def test_a_wait_for_a_signal_that_nobody_gives_ends_with_its_time_out(bench) -> None:
    bench.ask(Await(Signal(), 70))
    bench.run(1_000)
    assert bench.outcomes == [(False, 70)]


def test_a_call_to_the_controller_waits_until_there_is_one(bench) -> None:
    bench.ask(CallController(MetadataRequest(), 1_000))
    bench.run(500)
    assert bench.outcomes == []
    bench.loops.link.lead_to(CONTROLLER)
    bench.run(10)
    assert isinstance(bench.outcome, MetadataResponse)


def test_a_call_to_the_controller_ends_when_there_is_none_in_time(bench) -> None:
    bench.ask(CallController(MetadataRequest(), 100))
    bench.run(200)
    assert isinstance(bench.outcome, ConnectionError)
    bench.loops.link.lead_to(CONTROLLER)


def test_a_change_of_the_controller_ends_the_calls_to_the_one_before(bench) -> None:
    bench.is_silent = True
    bench.loops.link.lead_to(CONTROLLER)
    bench.ask(CallController(MetadataRequest(), 5_000))
    bench.run(10)
    bench.loops.link.lead_to(None)
    bench.run(10)
    assert isinstance(bench.outcome, ConnectionError)
