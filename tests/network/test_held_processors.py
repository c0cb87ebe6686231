"""The watch of requests in place: a disk that hangs, and a busy machine.

Where time stands still, the watch decides by the thread's state alone.
"""

import os
import threading
from types import SimpleNamespace

import pytest

from sparklog.core.held_threads import HELD_MS_MAX, ThreadState
from sparklog.network import thread_state
from sparklog.network.in_place import InPlace
from sparklog.network.thread_state import read_thread_state
from tests.network.frames import frame
from tests.network.test_full_sockets import ManualClock

PATIENCE_S = 60
STARVED = ThreadState("R", 0, 1)

needs_proc = pytest.mark.skipif(not os.path.exists(thread_state.TASKS), reason="only Linux has /proc")


class Watched:
    """Requests in place on a thread of their own until ``is_over``, and a watch whose looks are counted."""

    def __init__(self, cleanups, work, state=read_thread_state) -> None:
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
        cleanups.actions.append(self.is_over.set)
        cleanups.actions.append(self.in_place.stop)
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


@pytest.fixture
def pipe(cleanups):
    read_end, write_end = os.pipe()
    cleanups.actions.append(lambda: os.close(read_end))
    cleanups.actions.append(lambda: os.close(write_end))
    return read_end, write_end


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
    read_end, write_end = pipe
    watched = Watched(cleanups, lambda: os.read(read_end, 1))
    cleanups.actions.append(lambda: os.write(write_end, b"x"))
    assert watched.is_relieved.wait(PATIENCE_S)
    assert all(watched.seen)


@needs_proc
def test_a_lock_that_hangs_loses_its_processor_too(cleanups) -> None:
    lock = threading.Event()
    watched = Watched(cleanups, lock.wait)
    cleanups.actions.append(lock.set)
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
    read_end, write_end = pipe
    watched = Watched(cleanups, lambda: os.read(read_end, 1), lambda _: STARVED)
    cleanups.actions.append(lambda: os.write(write_end, b"x"))
    watched.await_looks(5)
    assert not watched.is_relieved.is_set()
    watched.clock.now_ms += HELD_MS_MAX
    assert watched.is_relieved.wait(PATIENCE_S)


def test_without_proc_a_disk_that_hangs_loses_its_processor(pipe, cleanups) -> None:
    read_end, write_end = pipe
    watched = Watched(cleanups, lambda: os.read(read_end, 1), lambda _: None)
    cleanups.actions.append(lambda: os.write(write_end, b"x"))
    assert watched.is_relieved.wait(PATIENCE_S)


def test_a_connection_is_served_while_another_ones_disk_hangs(pipe, start_reactor, connect, cleanups) -> None:
    read_end, write_end = pipe
    entered = threading.Event()

    def work(exchange) -> None:
        if exchange.frame == b"slow":
            entered.set()
            os.read(read_end, 1)
        exchange.reply([frame(b"done")])

    reactor = start_reactor(work, processors=1, handlers=1, works_in_place=lambda _: True)
    slow, other = connect(reactor), connect(reactor)
    cleanups.actions.append(lambda: os.write(write_end, b"x"))
    slow.send(b"slow")
    assert entered.wait(PATIENCE_S)
    assert other.call(b"short") == b"done"
