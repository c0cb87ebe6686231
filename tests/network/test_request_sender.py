"""A sender's loop, driven question by question."""

import threading
from dataclasses import dataclass

import pytest

from sparklog.model.cluster import Node
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await, CallBroker, go_on
from sparklog.model.time import MonotonicMs
from sparklog.network.request_sender import BACKOFF_MAX_MS, BACKOFF_MS, RequestSender

PEER = BrokerId(1)


@dataclass
class Bench:
    """A sender with its peer's address, a clock, and what its callbacks were given."""

    node: Node | None = Node(PEER, "here", 1)  # noqa: RUF009 (frozen)
    now_ms: int = 0
    queue_max: int | None = None

    def __post_init__(self):
        self.outcomes, self.hung_up = [], 0
        self.sender = RequestSender(
            PEER, lambda _: self.node, self.hang_up, guard=threading.Lock(), clock=self,
            request_timeout_ms=1_000, queue_max=self.queue_max,
        )  # fmt: skip
        self.loop = self.sender.loop()

    def monotonic_ms(self):
        return MonotonicMs(self.now_ms)

    def hang_up(self, broker_id):
        self.hung_up += 1

    def send(self, message, deadline_ms=None):
        return self.sender.send(
            message, self.outcomes.append, on_failure=self.outcomes.append, deadline_ms=deadline_ms
        )

    def fail(self):
        return go_on(self.loop, error=ConnectionError("lost"))


def test_requests_are_sent_in_order_one_under_way_at_a_time():
    bench = Bench()
    assert bench.send("a")
    assert bench.send("b")
    assert go_on(bench.loop) == CallBroker(bench.node, "a", 1_000)
    assert go_on(bench.loop, "to a") == CallBroker(bench.node, "b", 1_000)
    assert isinstance(go_on(bench.loop, "to b"), Await)
    assert bench.outcomes == ["to a", "to b"]


def test_a_request_is_sent_again_after_pauses_that_double_up_to_a_second():
    bench = Bench()
    bench.send("a")
    question, pauses_ms = go_on(bench.loop), []
    for _ in range(7):
        assert question == CallBroker(bench.node, "a", 1_000)
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
    assert go_on(bench.loop) == CallBroker(bench.node, "a", 1_000)
    assert go_on(bench.loop, "to a") == CallBroker(bench.node, "b", 1_000)


def test_a_response_whose_callback_fails_is_not_asked_for_again():
    bench = Bench()
    bench.sender.send("a", lambda response: {}[response])
    bench.send("b")
    go_on(bench.loop)
    with pytest.raises(KeyError):
        go_on(bench.loop, "to a")
    bench.loop = bench.sender.loop()
    assert go_on(bench.loop) == CallBroker(bench.node, "b", 1_000)


def test_a_peer_that_moved_is_sent_to_at_its_new_address_at_once():
    bench = Bench()
    bench.send("a")
    go_on(bench.loop)
    bench.node = Node(PEER, "there", 2)
    bench.sender.moved()
    assert bench.hung_up == 1, "what waits at the old address ends"
    pause = bench.fail()
    assert pause.signal.is_given, "and the pause after that, too"
    assert go_on(bench.loop, pause.signal.take()) == CallBroker(bench.node, "a", 1_000)


def test_a_peer_without_a_known_address_is_waited_for():
    bench = Bench(node=None)
    bench.send("a")
    assert go_on(bench.loop).timeout_ms == BACKOFF_MS
    bench.node = Node(PEER, "here", 1)
    assert go_on(bench.loop, False) == CallBroker(bench.node, "a", 1_000)


def test_a_request_is_given_up_after_its_deadline_and_the_next_one_is_sent():
    bench = Bench()
    bench.send("a", deadline_ms=MonotonicMs(300))
    bench.send("b")
    assert go_on(bench.loop).timeout_ms == 300
    bench.now_ms = 290
    assert bench.fail().timeout_ms == 10
    bench.now_ms = 300
    assert go_on(bench.loop, False) == CallBroker(bench.node, "b", 1_000)
    (error,) = bench.outcomes
    assert isinstance(error, TimeoutError)


def test_a_full_queue_refuses_requests():
    bench = Bench(queue_max=2)
    assert [bench.send(message) for message in "abc"] == [True, True, False]


def test_a_closed_sender_forgets_what_waits_and_calls_nobody_back():
    bench = Bench()
    bench.send("a")
    bench.send("b")
    go_on(bench.loop)
    bench.sender.close()
    assert bench.hung_up == 1
    assert bench.fail() is None, "the loop has ended"
    assert bench.outcomes == []
    assert not bench.send("c")
