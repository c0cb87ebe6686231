"""The controller's listener, without a network."""

import dataclasses

import pytest

from sparklog.controller.handlers import SIZE_PREFIX_BYTES, ControllerHandlers
from sparklog.core.apis.api import Code, ListenerKind
from sparklog.core.apis.api_table import APIS, ROWS
from sparklog.core.controller.commands.config_commands import ConfigResult, ConfigsResult
from sparklog.core.controller.commands.partition_commands import ElectLeaders
from sparklog.core.security.requester import ANONYMOUS, Requester
from sparklog.model.errors import ErrorCode
from sparklog.model.parts import read_parts
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.wire.codec import decode_response, encode_request
from sparklog.wire.messages.admin.elect_leaders import ElectLeadersRequest
from sparklog.wire.messages.admin.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from sparklog.wire.messages.control.controlled_shutdown import ControlledShutdownRequest
from sparklog.wire.messages.control.envelope import EnvelopeRequest, EnvelopeResponse
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest
from sparklog.wire.messages.discovery.cluster_report import ClusterReportResponse
from tests.wire.least_request import least_request


class Replies:
    """The connection of a broker, which keeps what it is sent."""

    def __init__(self):
        self.frames = []
        self.is_closed = False

    def send_reply(self, exchange, parts, throttle_ms):
        self.frames.append(read_parts(parts)[SIZE_PREFIX_BYTES:])

    def let_next_begin(self, exchange):
        pass

    def disconnect(self):
        self.is_closed = True


class Controller:
    """The handlers, and the commands that they submitted."""

    def __init__(self):
        self.submitted = []
        self.handlers = ControllerHandlers(
            BrokerConfig(),
            lambda command, answer: self.submitted.append((command, answer)),
            lambda request: ClusterReportResponse(),
        )

    def ask(self, request, version=0):
        """The connection on which a broker at 10.0.0.2 sent ``request``."""
        replies = Replies()
        frame = encode_request(request, version, 8, "broker")[SIZE_PREFIX_BYTES:]
        context = RequestContext(1, "10.0.0.2", "CONTROLLER", 0)
        self.handlers.handle(Exchange(memoryview(bytearray(frame)), context, replies))
        return replies


@pytest.fixture
def controller():
    return Controller()


@pytest.mark.parametrize("api", ROWS, ids=lambda api: api.name)
def test_the_controller_does_with_each_request_what_its_row_says(controller, api):
    replies = controller.ask(least_request(api.key), api.max)
    assert len(controller.submitted) == (Code.command in api.code)
    assert len(replies.frames) == (Code.built_in in api.code)
    assert replies.is_closed is (ListenerKind.controller not in api.listeners)


def in_envelope(request, version, principal=b"User:alice", address=b"10.0.0.9"):
    inner = encode_request(request, version, 7, "client")[SIZE_PREFIX_BYTES:]
    return EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=address)


def error_of(replies):
    (frame,) = replies.frames
    return decode_response(EnvelopeResponse, 0, frame)[1].error_code


def test_a_forwarded_request_is_its_clients_command_and_not_the_brokers(controller):
    controller.ask(in_envelope(ElectLeadersRequest(topic_partitions=None), 2))
    ((command, _),) = controller.submitted
    assert command.requester == Requester("User:alice", "10.0.0.9")
    assert command.request == ElectLeaders(unclean=False)


def test_a_brokers_own_request_is_its_own_command(controller):
    controller.ask(ControlledShutdownRequest(broker_id=2, broker_epoch=5), 3)
    ((command, _),) = controller.submitted
    assert command.requester == Requester(ANONYMOUS, "10.0.0.2")


@pytest.mark.parametrize(
    ("principal", "address"), [(None, b"10.0.0.9"), (b"alice", b"10.0.0.9"), (b"User:alice", b"")]
)
def test_an_envelope_without_a_requester_is_refused(controller, principal, address):
    envelope = in_envelope(ElectLeadersRequest(topic_partitions=None), 2, principal, address)
    assert error_of(controller.ask(envelope)) is ErrorCode.invalid_request
    assert controller.submitted == []


def test_a_client_cannot_have_a_request_forwarded_that_is_for_brokers_only(controller):
    shutdown = ControlledShutdownRequest(broker_id=2, broker_epoch=5)
    for request, version in ((shutdown, 3), (in_envelope(shutdown, 3), 0)):
        assert error_of(controller.ask(in_envelope(request, version))) is ErrorCode.invalid_request
    assert controller.submitted == []


@pytest.mark.parametrize("api", ROWS, ids=lambda api: api.name)
def test_an_envelope_may_have_inside_what_brokers_forward_and_nothing_else(controller, api):
    replies = controller.ask(in_envelope(least_request(api.key), api.max))
    is_forwarded = api.is_for_clients and ListenerKind.controller in api.listeners
    if is_forwarded and Code.command in api.code:
        assert len(controller.submitted) == 1
    else:
        assert error_of(replies) is ErrorCode.invalid_request
        assert controller.submitted == []


def test_the_listeners_of_its_row_are_what_closes_a_request_s_connection(controller, caplog, monkeypatch):
    elsewhere = dataclasses.replace(APIS[43], listeners=frozenset({ListenerKind.brokers}))
    monkeypatch.setattr("sparklog.controller.handlers.APIS", {**APIS, 43: elsewhere})
    assert controller.ask(ElectLeadersRequest(topic_partitions=None), 2).is_closed
    assert controller.submitted == []
    assert "ElectLeaders is not served on the controller's listener" in caplog.text


def test_a_request_for_brokers_alone_closes_the_connection(controller, caplog):
    assert controller.ask(
        StopReplicaRequest(controller_id=1, controller_epoch=1, topic_states=[]), 4
    ).is_closed
    assert "StopReplica is not served on the controller's listener" in caplog.text


def test_an_answer_that_its_version_cannot_carry_costs_its_client_alone(controller):
    change = IncrementallyAlterableConfig(name="x", config_operation=0, value="1")
    resource = IncrementalAlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    replies = controller.ask(in_envelope(IncrementalAlterConfigsRequest(resources=[resource]), 0))
    ((_, answer),) = controller.submitted
    refused = ConfigResult(2, "t" * 32_768, ErrorCode.invalid_config, "no resource has so long a name")
    answer(ConfigsResult((refused,)))
    assert error_of(replies) is ErrorCode.unknown_server_error
