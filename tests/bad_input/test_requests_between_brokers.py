"""Clients that ask for what brokers and the controller ask of each other."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from sparklog.controller.handlers import SIZE_PREFIX_BYTES
from sparklog.core.apis.api_table import APIS
from sparklog.model.errors import ErrorCode
from sparklog.network.dialing.connection import Connection
from sparklog.testing import InProcessCluster
from sparklog.wire.codec import encode_request
from sparklog.wire.messages.control.alter_partition import AlterPartitionRequest
from sparklog.wire.messages.control.envelope import EnvelopeRequest
from sparklog.wire.messages.control.leader_and_isr import LeaderAndIsrRequest
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest
from tests.wire.least_request import least_request

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Logged = Callable[[str], str]

TIMEOUT_MS = 10_000
EPOCH_MAX = 2**31 - 1
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}
STOP = replace(least_request(StopReplicaRequest.API_KEY), controller_epoch=EPOCH_MAX)
LEAD = replace(least_request(LeaderAndIsrRequest.API_KEY), controller_epoch=EPOCH_MAX)
TELL = replace(least_request(UpdateMetadataRequest.API_KEY), controller_epoch=EPOCH_MAX)
SHRINK = least_request(AlterPartitionRequest.API_KEY)


@pytest.fixture(scope="module")
def cluster() -> Iterator[InProcessCluster]:
    """A listener for clients, and another for the broker and the controller."""
    with InProcessCluster(brokers=1, settings=SETTINGS) as running:
        yield running


@pytest.fixture(autouse=True)
def _the_controller_is_obeyed_afterwards(cluster: InProcessCluster) -> Iterator[None]:
    yield
    topic = f"after-{len(cluster.admin.list_topics())}"
    cluster.create_topic(topic)
    cluster.produce(topic, ["x"])
    assert [record.value for record in cluster.consume(topic)] == [b"x"]


def ask(port: int, request: Any) -> Any:
    with Connection.open("127.0.0.1", port, client_id="bad-input", timeout_ms=TIMEOUT_MS) as connection:
        return connection.call(request, timeout_ms=TIMEOUT_MS)


@pytest.mark.parametrize(
    ("wrong", "request_"),
    [
        ("a client that stops replicas", STOP),
        ("a client that tells brokers of a controller of its own", TELL),
    ],
)
def test_a_client_speaks_as_the_controller(
    cluster: InProcessCluster, wrong: str, request_: Any, case: Case, logged: Logged
) -> None:
    with pytest.raises(ConnectionError):
        ask(cluster.brokers[1].broker.endpoints["CLIENTS"].port, request_)
    do = "give brokers a [listener](settings.md#listeners) of their own"
    case(wrong, "broker's log", logged("is not served on listener CLIENTS"), do)


def test_a_client_speaks_to_the_controller_as_to_a_broker(
    cluster: InProcessCluster, case: Case, logged: Logged
) -> None:
    assert cluster.controller is not None
    with pytest.raises(ConnectionError):
        ask(cluster.controller.port, STOP)
    line = logged("is not served on the controller's listener")
    case("a request for brokers at the controller's port", "controller's log", line, "mend the client")


def in_envelope(request: Any) -> EnvelopeRequest:
    version = APIS[request.API_KEY].max
    return EnvelopeRequest(
        request_data=encode_request(request, version, 7, "client")[SIZE_PREFIX_BYTES:],
        request_principal=b"User:alice",
        client_host_address=b"10.0.0.9",
    )


@pytest.mark.parametrize(
    ("wrong", "inside"),
    [
        ("an Envelope inside an Envelope", in_envelope(SHRINK)),
        ("an Envelope with a proposal of a leader inside", SHRINK),
        ("an Envelope with a request for brokers inside", LEAD),
    ],
)
def test_an_envelope_has_inside_what_no_client_may_ask(
    cluster: InProcessCluster, wrong: str, inside: Any, case: Case, logged: Logged
) -> None:
    assert cluster.controller is not None
    response = ask(cluster.controller.port, in_envelope(inside))
    assert response.error_code is ErrorCode.invalid_request
    assert not response.response_data
    name = type(inside).__name__.removesuffix("Request")
    case(wrong, "controller's log", logged(f"asks for {name}, which is not forwarded"), "mend the client")
