"""From a frame to its handler: by API, by listener, by what the broker knows."""

import importlib
import pkgutil
import threading

import pytest

from sparklog.broker import handlers
from sparklog.broker.apis import HANDLERS
from sparklog.broker.client_quotas import ClientQuotas
from sparklog.broker.context import BrokerContext
from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.dispatch import IN_PLACE_BYTES_MAX, Dispatcher, works_in_place
from sparklog.broker.forwarding import forward
from sparklog.broker.metadata.departed_brokers import DepartedBrokers
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.metadata.first_report import FirstReport
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.replicas.controller_fence import ControllerFence
from sparklog.broker.to_controller.report_copy import ReportCopy
from sparklog.broker.to_controller.schema_cache import Schemas
from sparklog.core.apis.api import Code
from sparklog.core.apis.api_table import ROWS
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.model.errors import ErrorCode
from sparklog.model.parts import read_parts
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.wire.codec import decode_response, encode_request, encode_response
from sparklog.wire.commands.command_apis import COMMAND_APIS
from sparklog.wire.messages.admin.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sparklog.wire.messages.control.controlled_shutdown import ControlledShutdownRequest
from sparklog.wire.messages.control.envelope import EnvelopeResponse
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from sparklog.wire.messages.discovery.describe_cluster import DescribeClusterRequest
from sparklog.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from sparklog.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from sparklog.wire.versions import KNOWN_VERSIONS
from tests.broker.conftest import ManualClock, ManualTimer
from tests.wire.least_request import least_request

ALICE = "User:alice"
STOP = StopReplicaRequest(controller_id=-1, controller_epoch=1, broker_epoch=1, topic_states=[])
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t")], timeout_ms=7)


class Connection:
    """A client's connection on a listener, which keeps what it is sent."""

    def __init__(self, listener):
        self.listener = listener
        self.replies = []
        self.is_closed = False

    def send_reply(self, exchange, parts, throttle_ms):
        self.replies.append(read_parts(parts)[4:])

    def let_next_begin(self, exchange):
        pass

    def disconnect(self):
        self.is_closed = True


class Controller:
    """Answers envelopes with what it is given, or not at all."""

    def __init__(self):
        self.envelopes = []
        self.answer = None

    def call_when_reachable(self, message, *, timeout_ms):
        self.envelopes.append((message, timeout_ms))
        if self.answer is None:
            raise ConnectionError("no controller is elected")
        return self.answer


class AtOnce:
    def submit(self, work):
        work()


class Served:
    """A broker with a listener for clients, and another for brokers."""

    def __init__(self):
        self.controller = Controller()
        self.metadata, self.timer = MetadataCache(threading.Lock()), ManualTimer()
        self.dispatcher = Dispatcher(
            BrokerContext(
                broker_id=1,
                cluster_id="c",
                brokers_listener="INTERNAL",
                metadata=self.metadata,
                first_report=FirstReport(self.metadata, self.timer),
                doubted_leaders=DoubtedLeaders(ManualClock()),
                departed_brokers=DepartedBrokers(ManualClock()),
                schemas=Schemas(self.metadata, self.controller, threading.Lock()),
                report=ReportCopy(self.controller, ManualClock(), threading.Lock()),
                own_report=None,
                columns=None,
                clock=ManualClock(),
                settings=CurrentSettings(BrokerConfig()),
                replicas=None,
                roles=None,
                # It does not know its epoch yet: requests of controllers close the connection.
                fence=ControllerFence(threading.Lock()),
                log_dirs=None,
                appends=None,
                deletions=None,
                refusals=None,
                fetches=None,
                fetch_sessions=None,
                fetches_in_progress=None,
                controller=self.controller,
                producer_ids=None,
                coordinators=None,
                internal_topics=None,
                markers=None,
                verifier=None,
                new_guard=threading.Lock,
                waiting_room=AtOnce(),
                conversions=None,
                quotas=ClientQuotas(Windows(), ManualClock(), threading.Lock()),
            )
        )

    def ask(self, request, listener="EXTERNAL", version=None):
        connection = Connection(listener)
        version = KNOWN_VERSIONS[request.API_KEY].max if version is None else version
        frame = encode_request(request, version, 42, "client")[4:]
        context = RequestContext(1, "10.0.0.9", listener, 0, ALICE)
        self.dispatcher(Exchange(memoryview(bytearray(frame)), context, connection))
        return connection


@pytest.fixture
def served():
    return Served()


def report(served):
    """The controller's, of a cluster without brokers and topics."""
    served.metadata.update(
        UpdateMetadataRequest(
            controller_id=-1, controller_epoch=1, broker_epoch=1, push=1, type_=1, topic_states=[]
        )
    )


@pytest.mark.bug(
    "B81", "away", "A broker that has just started fails a client's request that no client sends twice."
)
def test_what_needs_the_controller_s_report_waits_for_the_first(served):
    asked = [served.ask(DescribeClusterRequest()) for _ in range(3)]
    assert not any(one.replies or one.is_closed for one in asked)
    report(served)
    assert [len(one.replies) for one in asked] == [1, 1, 1]
    served.timer.fire()
    assert not any(one.is_closed for one in asked)
    assert len(served.ask(DescribeClusterRequest()).replies) == 1
    assert not served.timer.waiting


@pytest.mark.bug("B81")
def test_a_broker_to_which_no_controller_reports_closes_the_connection_in_the_end(served):
    asked = served.ask(DescribeClusterRequest())
    served.timer.fire()
    assert asked.is_closed
    assert not served.metadata._waiting, "nothing is kept of a request that was given up"
    report(served)
    assert not asked.replies


def test_a_broker_has_exactly_the_handlers_that_the_rows_say():
    forwarded = {key for key, handler in HANDLERS.items() if handler is forward}
    assert forwarded == {api.key for api in ROWS if Code.forward in api.code}
    assert HANDLERS.keys() - forwarded == {api.key for api in ROWS if Code.handler in api.code}
    handlers = [handler for handler in HANDLERS.values() if handler is not forward]
    assert len(set(handlers)) == len(handlers), "each API has a handler of its own"


def test_no_handler_is_without_a_row():
    written = {
        function
        for module in pkgutil.walk_packages(handlers.__path__, f"{handlers.__name__}.")
        for name, function in vars(importlib.import_module(module.name)).items()
        if name.split("_")[0] == "handle" and function.__module__ == module.name
    }
    assert written == set(HANDLERS.values()) - {forward}


@pytest.mark.parametrize(
    ("request_", "versions"),
    [
        (SaslHandshakeRequest(mechanism="PLAIN"), (0, 1)),
        (SaslAuthenticateRequest(auth_bytes=b"x"), (0, 1, 2)),
    ],
)
def test_a_listener_without_sasl_says_so_to_a_client_that_authenticates(served, request_, versions):
    for version in versions:
        [reply] = served.ask(request_, version=version).replies
        response = decode_response(request_.API_KEY, version, reply)[1]
        assert response.error_code is ErrorCode.illegal_sasl_state


@pytest.mark.parametrize("listener", ["EXTERNAL", "INTERNAL"])
def test_both_listeners_serve_clients(served, listener):
    connection = served.ask(ApiVersionsRequest(), listener)
    assert len(connection.replies) == 1
    assert not connection.is_closed


def test_a_client_cannot_outrank_the_controller_by_its_epoch_on_the_clients_listener(served):
    tell = UpdateMetadataRequest(
        controller_id=1, controller_epoch=2**31 - 1, broker_epoch=1, topic_states=[], live_brokers=[]
    )
    assert served.ask(tell, "EXTERNAL").is_closed
    assert not served.metadata.is_received
    report(served)
    assert served.metadata.is_received


def test_the_controllers_requests_are_refused_on_the_clients_listener(served, caplog):
    assert served.ask(STOP, "EXTERNAL").is_closed
    assert "StopReplica is not served on listener EXTERNAL" in caplog.text
    caplog.clear()
    served.ask(STOP, "INTERNAL")
    assert "is not served" not in caplog.text


@pytest.mark.parametrize("listener", ["EXTERNAL", "INTERNAL"])
def test_what_only_a_controller_serves_is_refused_on_both(served, listener, caplog):
    assert served.ask(ControlledShutdownRequest(broker_id=1, broker_epoch=1), listener).is_closed
    assert "ControlledShutdown is not served by brokers" in caplog.text


def test_a_forwarded_request_names_its_client_and_waits_longer_than_that(served):
    result = CreatableTopicResult(name="t", num_partitions=3)
    response = read_parts(encode_response(CreateTopicsResponse(topics=[result]), 7, 42))[4:]
    served.controller.answer = EnvelopeResponse(response_data=response)
    (reply,) = served.ask(CREATE).replies
    ((envelope, timeout_ms),) = served.controller.envelopes
    assert (envelope.request_principal, envelope.client_host_address) == (b"User:alice", b"10.0.0.9")
    assert timeout_ms > CREATE.timeout_ms
    correlation_id, answer = decode_response(CreateTopicsResponse, 7, reply)
    assert (correlation_id, answer.topics) == (42, [result])


@pytest.mark.parametrize(
    "answer",
    [
        None,
        EnvelopeResponse(error_code=ErrorCode.invalid_request),
        EnvelopeResponse(response_data=None),
        EnvelopeResponse(response_data=b"nonsense"),
    ],
)
def test_without_the_controllers_word_a_request_has_timed_out(served, answer):
    served.controller.answer = answer
    (reply,) = served.ask(CREATE).replies
    correlation_id, refused = decode_response(CreateTopicsResponse, 7, reply)
    assert correlation_id == 42
    assert refused.topics[0].error_code is ErrorCode.request_timed_out
    assert "try again" in refused.topics[0].error_message


@pytest.mark.parametrize("key", sorted(HANDLERS.keys() & COMMAND_APIS.keys()))
def test_every_forwarded_api_can_be_refused_in_every_version(served, key):
    request = least_request(key)
    for version in range(KNOWN_VERSIONS[key].min, KNOWN_VERSIONS[key].max + 1):
        (reply,) = served.ask(request, version=version).replies
        decode_response(key, version, reply)


def test_processors_work_on_small_produces_and_fetches_only():
    keys = {"produce": 0, "fetch": 1, "metadata": 3, "join group": 11, "write markers": 27}
    frames = {name: memoryview(key.to_bytes(2, "big") + b"\0" * 100) for name, key in keys.items()}
    assert [name for name, frame in frames.items() if works_in_place(frame)] == ["produce", "fetch"]
    just_small = bytearray(IN_PLACE_BYTES_MAX)
    assert works_in_place(memoryview(just_small))
    assert not works_in_place(memoryview(just_small + b"x"))
