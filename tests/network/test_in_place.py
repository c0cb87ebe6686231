"""Short requests that a processor works on itself, over real sockets."""

import logging
import queue
import threading
import time

import pytest

from sparklog.network import in_place
from sparklog.network.clock import SystemClock
from sparklog.network.processor import IN_PLACE_EVENTS_MAX, Processor
from tests.network.frames import frame
from tests.network.held_handlers import Gate
from tests.waiting import until

SHORT, LONG, HELD, FIRST = b"short", b"long", b"held", b"first"


def is_short(request: memoryview) -> bool:
    return bytes(request) != LONG


class Threads:
    """Answers each request with the name of its thread; holds ``HELD`` until it is told otherwise."""

    def __init__(self) -> None:
        self.gate = Gate(self.answer)
        self.holder = ""

    def __call__(self, exchange) -> None:
        if exchange.frame == HELD:
            self.holder = threading.current_thread().name
            self.gate(exchange)
        else:
            self.answer(exchange)

    def answer(self, exchange) -> None:
        exchange.reply([frame(threading.current_thread().name.encode())])

    def hold(self, client) -> None:
        """Have the processor hold a request; it leaves that to a handler if it has something else to do."""
        while True:
            self.gate.open.clear()
            client.send(HELD)
            assert self.gate.entered.acquire(timeout=60)
            if "processor" in self.holder:
                return
            self.gate.open.set()
            client.read_frame()


@pytest.fixture
def handle(cleanups):
    made = Threads()
    cleanups.actions.append(made.gate.open.set)
    return made


@pytest.fixture
def start(start_reactor, handle):
    """One processor and one handler, unless a test says otherwise."""

    def start_one(**settings):
        return start_reactor(
            handle, **{"processors": 1, "handlers": 1, "works_in_place": is_short, "name": "r", **settings}
        )

    return start_one


def is_by_processor(answer: bytes) -> bool:
    return b"processor" in answer


def await_end_of_pause(client) -> None:
    until(lambda: is_by_processor(client.call(SHORT)), "the pause to end")


def test_a_short_request_is_worked_on_by_the_processor_and_a_long_one_by_a_handler(start, connect) -> None:
    client = connect(start())
    answers = [client.call(request) for request in (SHORT, LONG, SHORT, SHORT)]
    assert [is_by_processor(answer) for answer in answers] == [True, False, True, True]


def test_pipelined_requests_are_answered_in_order(start, connect) -> None:
    client = connect(start())
    requests = [LONG if number % 3 else SHORT for number in range(60)]
    client.send_raw(b"".join(map(frame, requests)))
    answers = [client.read_frame() for _ in requests]
    assert not any(
        is_by_processor(answer) for answer, one in zip(answers, requests, strict=True) if one is LONG
    )


def test_a_short_request_leaves_a_processor_that_others_wait_for_to_a_handler(start, connect, handle) -> None:
    """The handler is busy, and another request waits for it: a third must not overtake that."""
    reactor = start()
    busy, waiting, third = (connect(reactor) for _ in range(3))
    slow = handle.answer
    entered, release = threading.Event(), threading.Event()

    def answer(exchange) -> None:
        if exchange.frame == LONG and not entered.is_set():
            entered.set()
            release.wait(60)
        slow(exchange)

    handle.answer = answer
    busy.send(LONG)
    assert entered.wait(60)
    waiting.send(LONG)
    until(lambda: len(reactor._requests) == 1, "a request in the queue")
    third.send(SHORT)
    until(lambda: len(reactor._requests) == 2, "the short request behind it")
    release.set()
    assert not is_by_processor(third.read_frame())


class Together:
    """Requests that the processor finds together, because it was held meanwhile."""

    def __init__(self, handle, first, monkeypatch) -> None:
        self.release = threading.Event()
        self._is_held_up = in_place.InPlace._is_held_up
        self._patch = monkeypatch
        entered, answer = threading.Event(), handle.answer

        def answer_or_wait(exchange) -> None:
            if exchange.frame == FIRST:
                entered.set()
                self.release.wait(60)
            answer(exchange)

        handle.answer = answer_or_wait
        monkeypatch.setattr(in_place.InPlace, "_is_held_up", lambda *_: False)
        first.send(FIRST)
        assert entered.wait(60)

    def find(self, *requests) -> None:
        """Send the requests, each by its client, and let the processor go on."""
        for client, request in requests:
            client.send(request)
        self._patch.setattr(in_place.InPlace, "_is_held_up", self._is_held_up)
        self.release.set()


@pytest.mark.parametrize("count", [IN_PLACE_EVENTS_MAX, IN_PLACE_EVENTS_MAX + 1])
def test_few_requests_at_once_are_worked_on_by_the_processor(
    count, start, connect, handle, monkeypatch
) -> None:
    reactor = start()
    first, clients = connect(reactor), [connect(reactor) for _ in range(count)]
    assert all(client.call(SHORT) for client in clients)  # the processor has all of them
    Together(handle, first, monkeypatch).find(*[(client, SHORT) for client in clients])
    answers = [is_by_processor(client.read_frame()) for client in clients]
    assert answers == [count <= IN_PLACE_EVENTS_MAX] * count


def test_what_arrived_with_a_request_that_hangs_is_served_by_the_next_processor(
    start, connect, handle, monkeypatch
) -> None:
    reactor = start()
    first, hanging, other = clients = [connect(reactor) for _ in range(3)]
    assert all(client.call(SHORT) for client in clients)  # the processor has all of them
    Together(handle, first, monkeypatch).find((hanging, HELD), (other, SHORT))
    assert handle.gate.entered.acquire(timeout=60)
    assert "processor" in handle.holder
    assert other.read_frame()
    assert not handle.gate.open.is_set()
    handle.gate.open.set()
    assert b"relieved" in hanging.read_frame()


def test_a_slow_request_holds_up_no_other_connection_for_long(start, connect, handle, caplog) -> None:
    caplog.set_level(logging.INFO)
    reactor = start()
    slow, other = connect(reactor), connect(reactor)
    handle.hold(slow)
    assert not is_by_processor(other.call(SHORT))
    assert not is_by_processor(other.call(SHORT))
    handle.gate.open.set()
    assert b"relieved" in slow.read_frame()
    assert "r-processor-0 is held up by a request of connection" in caplog.text


def test_a_connection_goes_on_after_its_slow_request(start, connect, handle) -> None:
    reactor = start()
    slow, other = connect(reactor), connect(reactor)
    handle.hold(slow)
    slow.send(LONG)
    other.call(LONG)
    handle.gate.open.set()
    assert b"relieved" in slow.read_frame()
    assert b"handler" in slow.read_frame()
    assert slow.call(LONG)


def test_a_request_that_hangs_costs_one_thread_however_long(start, connect, handle, monkeypatch) -> None:
    monkeypatch.setattr(in_place, "PAUSE_MS", 0)
    reactor = start(handlers=2)
    slow, other = connect(reactor), connect(reactor)
    handle.hold(slow)
    before = None
    for _ in range(20):
        assert not is_by_processor(other.call(SHORT))
        count = threading.active_count()
        assert before in (None, count)
        before = count
        time.sleep(2 * in_place.SLOW_MS / 1_000)  # long enough for the watch to look again
    handle.gate.open.set()
    assert slow.read_frame()
    await_end_of_pause(other)


def test_after_the_pause_a_processor_works_on_requests_again(start, connect, handle, monkeypatch) -> None:
    monkeypatch.setattr(in_place, "PAUSE_MS", 50)
    client = connect(start())
    handle.hold(client)
    time.sleep(5 * in_place.SLOW_MS / 1_000)  # until the watch has seen it twice
    handle.gate.open.set()
    client.read_frame()
    await_end_of_pause(client)


class NoThread(threading.Thread):
    """One too many for the system."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_a_processor_goes_on_after_a_slow_request_where_no_other_thread_can_be_started(
    start, connect, handle, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(in_place, "PAUSE_MS", 20)
    reactor = start()
    slow, other = connect(reactor), connect(reactor)
    assert other.call(SHORT)
    with monkeypatch.context() as without_threads:
        without_threads.setattr(Processor, "_new_thread", lambda _: NoThread())
        handle.hold(slow)
        until(lambda: "keeps its thread: no other can be started" in caplog.text, "the watch to find it slow")
    handle.gate.open.set()
    assert b"r-processor-0" in slow.read_frame()
    await_end_of_pause(other)
    handle.hold(slow)
    assert not is_by_processor(other.call(SHORT))  # another thread can be started again, and is


def test_a_failure_in_place_closes_only_its_own_connection(start_reactor, connect) -> None:
    def fail(exchange) -> None:
        if exchange.frame == SHORT:
            raise ValueError("a bug")
        exchange.reply([frame(b"fine")])

    reactor = start_reactor(fail, processors=1, works_in_place=lambda _: True)
    broken, other = connect(reactor), connect(reactor)
    broken.send(SHORT)
    assert broken.is_closed_by_peer()
    assert other.call(b"x") == b"fine"


def test_a_processor_that_is_held_up_has_received_nothing_since(start, connect, handle, monkeypatch) -> None:
    """A leader must not take a follower for late whose fetch waits in a socket."""
    monkeypatch.setattr(in_place, "SLOW_MS", 60_000)
    clock = SystemClock()
    reactor = start(clock=clock)
    handle.hold(connect(reactor))
    held_ms = clock.monotonic_ms()
    until(lambda: clock.monotonic_ms() > held_ms + 10, "time to pass")
    assert reactor.attentive_until() <= held_ms
    handle.gate.open.set()
    until(lambda: reactor.attentive_until() > held_ms, "the processor to go on")


def test_a_processor_that_is_held_up_after_its_events_has_received_nothing_since(start, connect) -> None:
    """The rest of a long reply, off a slow disk, for one."""
    clock = SystemClock()
    reactor = start(clock=clock)
    assert connect(reactor).call(SHORT)
    entered, release = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        release.wait(60)

    (processor,) = reactor._processors
    processor.postpone(0, hold)
    assert entered.wait(60)
    held_ms = clock.monotonic_ms()
    until(lambda: clock.monotonic_ms() > held_ms + 10, "time to pass")
    assert reactor.attentive_until() <= held_ms
    release.set()
    until(lambda: reactor.attentive_until() > held_ms, "the processor to go on")


def test_what_waits_since_the_turn_began_was_not_received_by_any_of_its_requests(
    start, connect, handle, monkeypatch
) -> None:
    """The third of them may be the fetch of a follower, while the processor works on the second."""
    clock = SystemClock()
    reactor = start(clock=clock)
    clients = [connect(reactor) for _ in range(4)]
    assert all(client.call(SHORT) for client in clients)  # the processor has all of them
    together = Together(handle, clients[0], monkeypatch)
    release, answer = threading.Event(), handle.answer
    entered: queue.SimpleQueue[int] = queue.SimpleQueue()

    def hold(exchange) -> None:
        if exchange.frame == SHORT:
            entered.put(reactor.attentive_until())
            assert release.wait(60)
            release.clear()
        answer(exchange)

    handle.answer = hold
    monkeypatch.setattr(together, "_is_held_up", lambda *_: False)
    together.find(*[(client, SHORT) for client in clients[1:]])
    seen: set[int] = set()
    for _ in clients[1:]:
        seen.add(entered.get(timeout=60))
        seen.add(reactor.attentive_until())
        until(lambda: clock.monotonic_ms() > max(seen) + 5, "time to pass")
        release.set()
    assert len(seen) == 1
    assert all(client.read_frame() for client in clients[1:])
    until(lambda: reactor.attentive_until() > max(seen), "the processor to go on")


def test_stop_waits_for_a_slow_request_and_its_reply_goes_out(start, connect, handle, monkeypatch) -> None:
    monkeypatch.setattr(in_place, "SLOW_MS", 60_000)
    reactor = start()
    client = connect(reactor)
    handle.hold(client)
    stopping = threading.Thread(target=reactor.stop)
    stopping.start()
    handle.gate.open.set()
    assert is_by_processor(client.read_frame())
    stopping.join(60)
    assert not stopping.is_alive()


def test_stop_leaves_a_request_behind_that_hangs_and_names_its_thread(start, connect, handle, caplog) -> None:
    reactor = start()
    client = connect(reactor)
    handle.hold(client)
    with caplog.at_level(logging.ERROR):
        reactor.stop(timeout_ms=50)
    assert "r-processor-0-relieved did not end within 50 ms" in caplog.text
    assert client.is_closed_by_peer()
    handle.gate.open.set()


def test_a_request_in_place_can_stop_the_reactor(start_reactor, connect) -> None:
    reactors = []
    reactor = start_reactor(lambda _: reactors[0].stop(), processors=1, works_in_place=lambda _: True)
    reactors.append(reactor)
    client = connect(reactor)
    client.send(SHORT)
    assert client.is_closed_by_peer()


def test_an_idle_watch_sleeps(start, connect) -> None:
    reactor = start()
    client = connect(reactor)
    client.call(SHORT)
    (processor,) = reactor._processors
    until(lambda: not processor._in_place._is_watched, "the watch to sleep")
    assert is_by_processor(client.call(SHORT))
    assert processor._in_place._is_watched


def test_what_a_processor_leaves_for_itself_needs_no_other_event(start, connect, monkeypatch) -> None:
    """Here at the end of a throttle, which it looks for after the queue of channels to attend to."""
    reactor = start()
    client = connect(reactor)
    client.call(LONG)
    (processor,) = reactor._processors
    (channel,) = processor._channels.values()
    left, attended, attend = [channel], threading.Event(), processor._attend

    def take(_):
        return [lambda: processor.attend(left.pop())] if left else []

    monkeypatch.setattr(processor._due, "take", take)

    def note(one, events) -> None:
        if not left and events == 0:
            attended.set()
        attend(one, events)

    monkeypatch.setattr(processor, "_attend", note)
    client.call(LONG)
    assert attended.wait(60)
