"""What the kernel says of threads, asked of real ones and read out of written files."""

import os
import threading

import pytest

from sparklog.core.held_threads import ThreadState
from sparklog.network import thread_state
from sparklog.network.thread_state import read_thread_state
from tests.waiting import until

needs_proc = pytest.mark.skipif(not os.path.exists(thread_state.TASKS), reason="only Linux has /proc")


@needs_proc
def test_a_thread_that_waits_for_a_pipe_sleeps_and_has_no_more_turns() -> None:
    read_end, write_end = os.pipe()
    thread = threading.Thread(target=os.read, args=(read_end, 1))
    thread.start()
    try:
        first = until(
            lambda: (seen := read_thread_state(thread.native_id)) and seen.letter == "S" and seen, "sleep"
        )
        assert read_thread_state(thread.native_id) == first
    finally:
        os.write(write_end, b"x")
        thread.join()
        os.close(read_end)
        os.close(write_end)


@needs_proc
def test_a_thread_that_computes_uses_cpu_and_is_runnable() -> None:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            pass

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        first = read_thread_state(thread.native_id)
        until(lambda: read_thread_state(thread.native_id).cpu_ns > first.cpu_ns, "CPU")
        until(lambda: read_thread_state(thread.native_id).letter == "R", "the thread's turn")
    finally:
        stop.set()
        thread.join()


@needs_proc
def test_nothing_is_said_of_a_thread_that_has_ended() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    until(lambda: read_thread_state(thread.native_id) is None, "the kernel to forget it")


@pytest.mark.parametrize(
    ("stat", "schedstat", "expected"),
    [
        ("7 (r) x (S)) D 1 2 3", "1000 20 3\n", ThreadState("D", 1000, 3)),
        ("7 (sparklog) R 1 2 3", "0 0 0\n", None),
        ("7 (sparklog) R 1 2 3", "", None),
        ("7 (sparklog)", "1000 20 3\n", None),
        ("", "1000 20 3\n", None),
        ("7 (sparklog) R 1 2 3", None, None),
        (None, None, None),
    ],
    ids=["a name with brackets", "no counts", "no times", "no state", "empty", "no schedstat", "no proc"],
)
def test_what_the_kernel_has_written(tmp_path, monkeypatch, stat, schedstat, expected) -> None:
    monkeypatch.setattr(thread_state, "TASKS", str(tmp_path))
    (tmp_path / "7").mkdir()
    for name, text in (("stat", stat), ("schedstat", schedstat)):
        if text is not None:
            (tmp_path / "7" / name).write_text(text)
    assert read_thread_state(7) == expected
