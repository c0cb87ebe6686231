"""The driver's port for the brokers' processes."""

import socket

import pytest

from sparklog_runtime.supervision.control_listener import ControlListener
from sparklog_runtime.supervision.tcp_ports import PortInUse


@pytest.fixture
def listener():
    made = ControlListener("token", lambda connection, hello: None)
    yield made
    made.close()


def test_it_listens_on_the_port_that_is_asked_for(listener, free_port):
    assert listener.open("127.0.0.1", free_port) == free_port
    with socket.create_connection(("127.0.0.1", free_port), timeout=5):
        pass


def test_a_port_that_another_has_is_refused_with_the_setting_that_names_it(listener):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use.*supervisor.port"):
            listener.open("127.0.0.1", port)
