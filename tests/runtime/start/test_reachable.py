"""Servers that a start needs are asked first, and what is wrong with each is said in words."""

import socket
import threading

import pytest

from sparklog_runtime.start.reachable import master_problem_now, zookeeper_problems


@pytest.fixture
def answering():
    """A server that answers every question with the bytes that it was made with; returns its address."""
    servers = []

    def make(answer: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.recv(4)
                    client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield make
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture
def closed():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_one_zookeeper_server_that_serves_is_enough(answering, closed):
    serving = answering(b"Zookeeper version: 3.9.5\nMode: follower\n")
    assert zookeeper_problems(f"{closed},{serving}/chroot") == []


def test_servers_without_a_majority_are_told_from_servers_that_are_not_there(answering, closed):
    half = answering(b"This ZooKeeper instance is not currently serving requests\n")
    assert zookeeper_problems(f"{half},{closed}") == [
        f"{half} does not serve: it has no majority of its ensemble",
        f"{closed} cannot be reached (Connection refused)",
    ]


def test_a_server_that_may_not_answer_the_question_is_taken_to_serve(answering):
    assert zookeeper_problems(answering(b"srvr is not executed because it is not in the whitelist.\n")) == []


def test_a_master_that_is_not_there_is_named_with_the_remedy(closed, answering):
    assert master_problem_now(f"spark://{closed}") == (
        f"no Spark master answers at spark://{closed}: start it, or correct --master"
    )
    assert master_problem_now(f"spark://{closed},{answering(b'')}") is None
    assert master_problem_now("yarn") is None
