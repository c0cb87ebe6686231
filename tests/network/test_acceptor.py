import errno
import logging
import socket
import subprocess
import sys

import pytest

from sparklog.network.acceptor import Acceptor, Listener, bind
from tests.waiting import PATIENCE_S, until


class ExhaustedSocket:
    """A listening socket whose accept fails a few times, as if the process were out of descriptors."""

    def __init__(self, sock, failures):
        self.sock = sock
        self.failures = list(failures)
        self.attempts = 0

    def accept(self):
        self.attempts += 1
        if self.failures:
            raise OSError(self.failures.pop(0), "made up")
        return self.sock.accept()

    def __getattr__(self, name):
        return getattr(self.sock, name)


@pytest.fixture
def start_acceptor(cleanups):
    def start(failures=()):
        accepted = []
        sock = ExhaustedSocket(bind(Listener("127.0.0.1", 0)), failures)

        def welcome(client, host):
            accepted.append(host)
            client.close()

        acceptor = Acceptor(Listener("127.0.0.1", 0), sock, name="acceptor-under-test", welcome=welcome)
        cleanups.actions.append(acceptor.stop)
        acceptor.start()
        return acceptor, sock, accepted

    return start


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_out_of_descriptors_the_acceptor_pauses_and_then_goes_on(start_acceptor, connect, caplog, code):
    caplog.set_level(logging.WARNING)
    acceptor, sock, accepted = start_acceptor([code, code])
    assert connect(acceptor.port).is_closed_by_peer()
    assert accepted == ["127.0.0.1"]
    assert "accepts nobody for 0.05 s" in caplog.text
    assert "accepts nobody for 0.10 s" in caplog.text
    assert sock.attempts < 10  # a loop without a pause would have tried thousands of times


@pytest.mark.bug(
    "B61", "away", "A broker that lacked file descriptors for a moment never accepts a connection again."
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_client_that_waits_while_there_are_no_descriptors_is_accepted_when_there_are(when):
    """``when`` the last one goes: before the acceptor's thread begins, which must not end without a word."""
    command = [sys.executable, "-m", "tests.network.out_of_descriptors", when]
    ran = subprocess.run(command, capture_output=True, check=False, text=True, timeout=2 * PATIENCE_S)
    assert (ran.returncode, ran.stdout) == (0, "127.0.0.1\n"), ran.stderr
    assert "Too many open files" in ran.stderr


def test_stop_does_not_wait_for_the_pause_to_end(start_acceptor, connect):
    acceptor, sock, _ = start_acceptor([errno.EMFILE] * 1_000)
    connect(acceptor.port)
    until(lambda: sock.attempts >= 2, "the acceptor to fail")
    acceptor.stop()


def test_a_connection_lost_before_it_was_accepted_costs_nothing(start_acceptor, connect):
    acceptor, _, accepted = start_acceptor([errno.ECONNABORTED])
    assert connect(acceptor.port).is_closed_by_peer()
    assert accepted == ["127.0.0.1"]


def test_a_taken_port_is_named_with_the_remedy():
    with bind(Listener("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            OSError, match=rf"cannot listen on 127.0.0.1:{port}.*choose a free port"
        ) as caught:
            bind(Listener("127.0.0.1", port))
        assert caught.value.errno == errno.EADDRINUSE


def test_an_unknown_host_is_named():
    with pytest.raises(OSError, match=r"listener EXTERNAL cannot use no-such-host\.invalid:9092"):
        bind(Listener("no-such-host.invalid", 9092, "EXTERNAL"))


def test_a_listener_can_use_ipv6():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 on this machine")
    try:
        sock = bind(Listener("::1", 0))
    except OSError as error:
        pytest.skip(f"IPv6 is switched off: {error}")
    assert sock.family is socket.AF_INET6
    sock.close()
