"""The watch of requests in place: a disk that hangs, and a busy machine.

Where time stands still, the watch decides by the thread's state alone.
"""

import os
import threading
from types import SimpleNamespace

import pytest

from sparklog.core.held_threads import HELD_MS_MAX, ThreadState
from sparklog.network import in_place, thread_state
from sparklog.network.in_place import InPlace
from sparklog.network.thread_state import read_thread_state
from tests.network.frames import frame
from tests.network.test_full_sockets import ManualClock

PATIENCE_S = 60
STARVED = ThreadState("R", 0, 1)

needs_proc = pytest.mark.skipif(not os.path.exists(thread_state.TASKS), reason="only Linux has /proc")


class Watched:
    """Requests in place on a thread of their own until ``is_over``, and a watch whose looks are counted."""

    def __init__(self, cleanups, work, state=read_thread_state, release=lambda: None) -> None:
        """``release`` ends what ``work`` waits for."""
        self.clock = ManualClock()
        self.is_relieved, self.is_over = threading.Event(), threading.Event()
        self.looks = threading.Semaphore(0)
        self.seen = []
        self._state = state
        self.in_place = InPlace(
            lambda _: work(),
            lambda _: True,
            self.is_relieved.set,
            name="p",
            clock=self.clock,
            holder=lambda: self.thread.native_id,
            thread_state=self._look,
        )
        self.thread = threading.Thread(target=self._run)
        cleanups.actions.append(self.thread.join)
        cleanups.actions.append(self.in_place.stop)
        cleanups.actions.append(release)
        cleanups.actions.append(self.is_over.set)
        self.in_place.start()
        self.thread.start()

    def _run(self) -> None:
        while not (self.is_over.is_set() or self.is_relieved.is_set()):
            self.in_place.run(SimpleNamespace(context=SimpleNamespace(connection_id=1)))

    def _look(self, native_id):
        self.seen.append(self._state(native_id))
        self.looks.release()
        return self.seen[-1]

    def await_looks(self, count: int) -> None:
        for _ in range(count):
            assert self.looks.acquire(timeout=PATIENCE_S), "the watch has ceased to look"


class Pipe:
    """Stands for a disk that hangs: a read ends when the test says so."""

    def __init__(self) -> None:
        self.ends = os.pipe()

    def read(self) -> None:
        os.read(self.ends[0], 1)

    def release(self) -> None:
        os.write(self.ends[1], b"x")

    def close(self) -> None:
        for end in self.ends:
            os.close(end)


@pytest.fixture
def pipe(cleanups):
    made = Pipe()
    cleanups.actions.append(made.close)
    return made


@pytest.fixture
def spinners(cleanups) -> None:
    """Four threads that want the interpreter's lock all the time."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            pass

    threads = [threading.Thread(target=spin) for _ in range(4)]
    for thread in threads:
        thread.start()
        cleanups.actions.append(thread.join)
    cleanups.actions.append(stop.set)


@needs_proc
def test_a_disk_that_hangs_loses_its_processor_by_the_threads_state_alone(pipe, cleanups) -> None:
    watched = Watched(cleanups, pipe.read, release=pipe.release)
    assert watched.is_relieved.wait(PATIENCE_S)
    assert all(watched.seen)


@needs_proc
def test_a_lock_that_hangs_loses_its_processor_too(cleanups) -> None:
    lock = threading.Event()
    watched = Watched(cleanups, lock.wait, release=lock.set)
    assert watched.is_relieved.wait(PATIENCE_S)
    assert all(watched.seen)


@needs_proc
def test_a_busy_machine_costs_no_processor_that_works_on_a_request(spinners, cleanups) -> None:
    """After each write a request waits for the interpreter's lock; it uses little CPU."""
    target = os.open(os.devnull, os.O_WRONLY)
    cleanups.actions.append(lambda: os.close(target))

    def write() -> None:
        for _ in range(50):
            os.write(target, b"x")

    watched = Watched(cleanups, write)
    watched.await_looks(10)
    assert not watched.is_relieved.is_set(), watched.seen


def test_a_starved_thread_keeps_its_processor_until_its_time_is_up(pipe, cleanups) -> None:
    watched = Watched(cleanups, pipe.read, lambda _: STARVED, release=pipe.release)
    watched.await_looks(in_place._IDLE_LOOKS_MAX + 5)  # the watch of an idle processor would sleep by then
    assert not watched.is_relieved.is_set()
    watched.clock.now_ms += HELD_MS_MAX
    assert watched.is_relieved.wait(PATIENCE_S)


def test_a_watch_that_is_about_to_sleep_sees_the_request_that_begins_meanwhile(
    pipe, cleanups, monkeypatch
) -> None:
    monkeypatch.setattr(in_place, "_IDLE_LOOKS_MAX", 1)
    is_relieved, entered = threading.Event(), threading.Event()
    first, hanging = (SimpleNamespace(context=SimpleNamespace(connection_id=number)) for number in (1, 2))

    def work(request) -> None:
        if request is hanging:
            entered.set()
            pipe.read()

    class Late(InPlace):
        """The second request begins when the watch has just looked, and found none."""

        @property
        def under_way(self):
            found = self.found
            if found is None and threading.current_thread() is self._watch and not entered.is_set():
                thread.start()
                assert entered.wait(PATIENCE_S)
            return found

        @under_way.setter
        def under_way(self, request) -> None:
            self.found = request

    late = Late(
        work, lambda _: True, is_relieved.set, name="p", clock=ManualClock(), holder=lambda: 1,
        thread_state=lambda _: None,
    )  # fmt: skip
    thread = threading.Thread(target=late.run, args=(hanging,))
    cleanups.actions.append(thread.join)
    cleanups.actions.append(late.stop)
    cleanups.actions.append(pipe.release)
    late.start()
    late.run(first)
    assert is_relieved.wait(PATIENCE_S)


def test_without_proc_a_disk_that_hangs_loses_its_processor(pipe, cleanups) -> None:
    watched = Watched(cleanups, pipe.read, lambda _: None, release=pipe.release)
    assert watched.is_relieved.wait(PATIENCE_S)


def test_a_connection_is_served_while_another_ones_disk_hangs(pipe, start_reactor, connect, cleanups) -> None:
    entered = threading.Event()

    def work(exchange) -> None:
        if exchange.frame == b"slow":
            entered.set()
            pipe.read()
        exchange.reply([frame(b"done")])

    reactor = start_reactor(work, processors=1, handlers=1, works_in_place=lambda _: True)
    slow, other = connect(reactor), connect(reactor)
    cleanups.actions.append(pipe.release)
    slow.send(b"slow")
    assert entered.wait(PATIENCE_S)
    assert other.call(b"short") == b"done"
