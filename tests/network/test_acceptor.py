import errno
import logging
import os
import resource
import socket

import pytest

from sparklog.network.acceptor import Acceptor, Listener, bind
from tests.waiting import until


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


@pytest.fixture
def no_more_descriptors():
    """Takes the last file descriptor away from this process, and gives them all back at the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def take():
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))

    def give_back():
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    yield take, give_back
    give_back()


def test_who_waits_while_there_are_really_no_descriptors_is_accepted_when_there_are(
    start_acceptor, no_more_descriptors, caplog
):
    caplog.set_level(logging.WARNING)
    take, give_back = no_more_descriptors
    acceptor, sock, accepted = start_acceptor()
    with socket.socket() as client:
        take()
        client.connect(("127.0.0.1", acceptor.port))
        until(lambda: sock.attempts >= 2, "the acceptor to try again")
        give_back()
        until(lambda: accepted, "the acceptor to accept")
    assert "Too many open files" in caplog.text


def test_an_acceptor_has_all_its_descriptors_before_its_thread_runs(cleanups, no_more_descriptors):
    """Its thread would end without a word, and nobody would ever be accepted."""
    take, give_back = no_more_descriptors
    accepted = []

    def welcome(client, host):
        accepted.append(host)
        client.close()

    sock = ExhaustedSocket(bind(Listener("127.0.0.1", 0)), ())
    acceptor = Acceptor(Listener("127.0.0.1", 0), sock, name="acceptor-under-test", welcome=welcome)
    cleanups.actions.append(acceptor.stop)
    with socket.socket() as client:
        take()
        acceptor.start()
        client.connect(("127.0.0.1", acceptor.port))
        until(lambda: sock.attempts, "the acceptor to try")
        give_back()
        until(lambda: accepted, "the acceptor to accept")


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
