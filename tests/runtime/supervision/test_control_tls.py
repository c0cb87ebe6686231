"""The control channel over TLS: the driver's port, and broker processes that dial it."""

import contextlib
import queue
import signal
import socket
import threading

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.dialing.peer_refused import TlsRefused
from sparklog.network.listener_tls import inter_broker_client, inter_broker_server
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.broker_process.broker_task import run_broker_process
from sparklog_runtime.broker_process.control_channel import ControlConnection
from sparklog_runtime.broker_process.control_handshake import join
from sparklog_runtime.supervision import control_listener
from sparklog_runtime.supervision.control_listener import ControlListener
from tests.certificates import Authority
from tests.waiting import until

TOKEN = "the-token-of-this-run"
HELLO = {"type": "hello", "slot": 0, "pid": 1, "found": []}


@pytest.fixture
def settings(tmp_path):
    authority = Authority(tmp_path)
    return {
        "listeners": "SSL://:0",
        "security.inter.broker.protocol": "SSL",
        **authority.settings(authority.issue("broker"), client_auth="required"),
    }


@pytest.fixture
def driver(settings):
    """A driver's port; it sends back what a broker process says, and notes what it has admitted."""
    admitted = queue.Queue()

    def serve(connection, hello):
        admitted.put(hello)
        while (message := connection.receive()) is not None:
            connection.send(message)

    listener = ControlListener(TOKEN, serve, inter_broker_server(BrokerConfig.parse(settings)))
    port = listener.open("127.0.0.1", 0)
    yield port, admitted
    listener.close()


def dial(settings, port):
    return ControlConnection.open("127.0.0.1", port, 10, inter_broker_client(BrokerConfig.parse(settings)))


def test_messages_pass_both_ways_whole_and_at_once(driver, settings):
    port, admitted = driver
    broker = dial(settings, port)
    join(broker, TOKEN)
    broker.send(HELLO)
    assert admitted.get(timeout=60) == HELLO
    messages = [{"type": "recovering", "text": str(number) * 60_000} for number in range(10)]
    sending = threading.Thread(target=lambda: [broker.send(message) for message in messages])
    sending.start()
    assert [broker.receive(60) for _ in messages] == messages
    sending.join()
    broker.close()


def test_the_end_of_the_driver_reads_as_none(driver, settings):
    broker = dial(settings, driver[0])
    join(broker, TOKEN)
    broker.send({**HELLO, "type": "registered"})  # which ends the connection
    assert broker.receive(60) is None
    broker.close()


def test_a_peer_in_the_clear_is_refused_and_the_next_one_served(driver, settings):
    with socket.create_connection(("127.0.0.1", driver[0])) as stranger:
        stranger.sendall(b'{"type":"hello","slot":0}\n')
        assert b"challenge" not in stranger.makefile("rb").read()
    test_messages_pass_both_ways_whole_and_at_once(driver, settings)


def test_a_peer_that_stops_in_its_handshake_is_disconnected(driver, monkeypatch, caplog):
    monkeypatch.setattr(control_listener, "TIMEOUT_S", 0.05)
    with socket.create_connection(("127.0.0.1", driver[0])) as stranger:
        stranger.sendall(b"\x16\x03\x01")
        with contextlib.suppress(ConnectionResetError):  # its bytes may not have been read
            assert stranger.recv(1) == b""
    until(lambda: "its TLS handshake has not ended within 0.05 s" in caplog.text, "the driver's log")


def test_a_broker_of_another_authority_is_refused(driver, settings, tmp_path, caplog):
    other = Authority(tmp_path / "other")
    theirs = {**settings, "ssl.keystore.location": str(other.issue("broker"))}
    broker = dial(theirs, driver[0])  # in TLS 1.3 the refusal comes with the first answer
    with pytest.raises((OSError, control_listener.ControlError)):
        join(broker, TOKEN)
    broker.close()
    assert driver[1].empty()


def test_a_driver_of_another_authority_is_refused_with_what_to_do(driver, settings, tmp_path):
    other = Authority(tmp_path / "other")
    with pytest.raises(TlsRefused, match=r"is not trusted here: put the authority's certificate into"):
        dial({**settings, "ssl.truststore.location": str(other.file)}, driver[0])


def plan(settings, port):
    return BrokerPlan(
        slot=0,
        supervisor_host="127.0.0.1",
        supervisor_port=port,
        token=TOKEN,
        has_control_tls=True,
        zookeeper="",
        host="127.0.0.1",
        log_dir_patterns=(),
        log_file_pattern="",
        settings=settings,
    )


def test_a_process_that_cannot_dial_for_good_leaves_the_worker_as_it_was_and_says_why(
    driver, settings, tmp_path
):
    """Spark delivers the error, as there is no other way to the driver."""
    handler = signal.getsignal(signal.SIGTERM)
    away = {**settings, "ssl.keystore.location": str(tmp_path / "away.pem")}
    with pytest.raises(
        ConfigError, match=r"ssl.keystore.location.*away.pem cannot be read here: No such file"
    ):
        run_broker_process(plan(away, driver[0]))
    strange = {**settings, "ssl.truststore.location": str(Authority(tmp_path / "other").file)}
    with pytest.raises(TlsRefused, match="is not trusted here"):
        run_broker_process(plan(strange, driver[0]))
    assert signal.getsignal(signal.SIGTERM) is handler
    for one in threading.enumerate():
        if one.name == "parent-watch":
            one.join(60)
    assert "parent-watch" not in [one.name for one in threading.enumerate()]
