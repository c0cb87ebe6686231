"""A broker with a listener for clients and another for brokers and the controller."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from sparklog.broker.life.server import BrokerServer
from sparklog.core.apis.api import ListenerKind
from sparklog.core.apis.api_table import APIS
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.dialing.connection import Connection
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from tests.broker.server_harness import TIMEOUT_MS
from tests.wire.least_request import least_request

pytestmark = pytest.mark.integration

SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}

FOR_BROKERS_ALONE = sorted(
    key for key, api in APIS.items() if api.listeners == frozenset({ListenerKind.brokers})
)


@pytest.fixture
def two(options):
    server = BrokerServer(replace(options, config=BrokerConfig.parse(SETTINGS)))
    server.start()
    yield server
    server.stop(clean=False)


@contextmanager
def connected(server, listener):
    port = server.ports[listener]
    connection = Connection.open("127.0.0.1", port, client_id="test", timeout_ms=TIMEOUT_MS)
    try:
        yield connection
    finally:
        connection.close()


@pytest.mark.parametrize("listener", ["CLIENTS", "BROKERS"])
def test_a_client_is_served_on_both(two, listener) -> None:
    with connected(two, listener) as connection:
        response = connection.call(ApiVersionsRequest(), timeout_ms=TIMEOUT_MS)
    assert response.error_code is ErrorCode.none


@pytest.mark.parametrize("key", FOR_BROKERS_ALONE)
def test_what_controller_and_brokers_ask_closes_the_connection_of_a_client(two, key) -> None:
    with connected(two, "CLIENTS") as connection, pytest.raises(ConnectionError):
        connection.call(least_request(key), version=APIS[key].max, timeout_ms=TIMEOUT_MS)


def test_the_controller_is_served_on_the_brokers_listener(two) -> None:
    epoch = two.broker.epoch
    update = UpdateMetadataRequest(
        controller_id=-1, controller_epoch=1, broker_epoch=epoch, topic_states=[], live_brokers=[]
    )
    stop = StopReplicaRequest(controller_id=-1, controller_epoch=1, broker_epoch=epoch, topic_states=[])
    with connected(two, "BROKERS") as connection:
        for request in (update, stop):
            response = connection.call(request, timeout_ms=TIMEOUT_MS)
            assert response.error_code is ErrorCode.none
