"""What readers and writers do as a task unpickles them: acknowledge, and exempt modules from collections."""

import gc
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparklog_datasource import task_start
from sparklog_datasource.task_start import QUICK_ACK, StartsTasks, begin_task

pytestmark = pytest.mark.skipif(QUICK_ACK is None, reason="TCP_QUICKACK is Linux's")


class Sent(StartsTasks):
    """What Spark would pickle to a task."""

    def __init__(self) -> None:
        self.options = {"topic": "t"}


@pytest.fixture(autouse=True)
def _leave_this_process_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    """A task's end of its connection to the JVM."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as end,
    ):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        yield end


def acknowledges_at_once(connection: socket.socket) -> bool:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) != 0


def test_what_is_unpickled_in_a_task_acknowledges_at_once_and_is_whole(connection: socket.socket) -> None:
    sent = pickle.dumps(Sent())
    assert not acknowledges_at_once(connection)
    assert pickle.loads(sent).options == {"topic": "t"}
    assert acknowledges_at_once(connection)


def test_files_and_other_sockets_are_left_alone(connection: socket.socket) -> None:
    left, right = socket.socketpair()
    with left, right, socket.socket(), socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.connect(connection.getpeername())
        begin_task()
        left.sendall(b"x")
        assert right.recv(1) == b"x"
    assert acknowledges_at_once(connection)


def test_a_default_time_out_of_users_code_leaves_sparks_connection_blocking(
    connection: socket.socket,
) -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(5)
    try:
        begin_task()
    finally:
        socket.setdefaulttimeout(before)
    assert os.get_blocking(connection.fileno())
    assert not acknowledges_at_once(connection)


def test_a_task_begins_where_there_is_no_proc(
    connection: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_start, "OPEN_FILES", Path("/nowhere"))
    begin_task()
    assert not acknowledges_at_once(connection)


def test_the_first_task_of_a_worker_alone_exempts_what_is_there_from_collections() -> None:
    script = (
        "import gc; from sparklog_datasource.task_start import begin_task\n"
        "counts = [gc.get_freeze_count()]\n"
        "for _ in range(2):\n"
        "    begin_task(); later = [[] for _ in range(100)]; counts.append(gc.get_freeze_count())\n"
        "print(counts[0] == 0, counts[1] > 1_000, counts[2] == counts[1])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]
