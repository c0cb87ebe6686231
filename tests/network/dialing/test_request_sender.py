"""A sender's loop, driven question by question."""

import threading

import pytest

from sparklog.model.cluster_facts import Node
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await, CallBroker, go_on
from sparklog.network.dialing.request_sender import BACKOFF_MAX_MS, BACKOFF_MS, RequestSender

PEER = BrokerId(1)


NODE = Node(PEER, "here", 1)
LANE = 4


class Bench:
    """A sender, and what its callbacks were given."""

    def __init__(self):
        self.outcomes, self.hung_up = [], 0
        self.sender = RequestSender(
            NODE, LANE, self.hang_up, guard=threading.Lock(), request_timeout_ms=1_000
        )
        self.loop = self.sender.loop()

    def hang_up(self):
        self.hung_up += 1

    def send(self, message):
        self.sender.send(message, self.outcomes.append)

    def fail(self):
        return go_on(self.loop, error=ConnectionError("lost"))


def call(message):
    return CallBroker(NODE, message, 1_000, LANE)


def test_requests_are_sent_in_order_one_under_way_at_a_time():
    bench = Bench()
    bench.send("a")
    bench.send("b")
    assert go_on(bench.loop) == call("a")
    assert go_on(bench.loop, "to a") == call("b")
    assert isinstance(go_on(bench.loop, "to b"), Await)
    assert bench.outcomes == ["to a", "to b"]


def test_a_request_is_sent_again_after_pauses_that_double_up_to_a_second():
    bench = Bench()
    bench.send("a")
    question, pauses_ms = go_on(bench.loop), []
    for _ in range(7):
        assert question == call("a")
        pauses_ms.append(bench.fail().timeout_ms)
        question = go_on(bench.loop, False)
    assert pauses_ms[:3] == [BACKOFF_MS, 2 * BACKOFF_MS, 4 * BACKOFF_MS]
    assert pauses_ms[-1] == BACKOFF_MAX_MS


def test_a_loop_that_begins_anew_sends_the_request_that_was_under_way_again_and_first():
    bench = Bench()
    bench.send("a")
    bench.send("b")
    go_on(bench.loop)
    bench.loop.close()
    bench.loop = bench.sender.loop()
    assert go_on(bench.loop) == call("a")
    assert go_on(bench.loop, "to a") == call("b")


def test_a_response_whose_callback_fails_is_not_asked_for_again():
    bench = Bench()
    bench.sender.send("a", lambda response: {}[response])
    bench.send("b")
    go_on(bench.loop)
    with pytest.raises(KeyError):
        go_on(bench.loop, "to a")
    bench.loop = bench.sender.loop()
    assert go_on(bench.loop) == call("b")


def test_a_closed_sender_forgets_what_waits_and_calls_nobody_back():
    bench = Bench()
    bench.send("a")
    bench.send("b")
    go_on(bench.loop)
    bench.sender.close()
    assert bench.hung_up == 1
    assert bench.fail() is None, "the loop has ended"
    assert bench.outcomes == []
    bench.send("c")
    assert go_on(bench.sender.loop()) is None, "nothing waits, and nothing is awaited"
