"""Handlers of groups with a coordinator that answers what the test says, when the test says so."""

import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.call import Call
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC
from sparklog.model.parts import read_parts
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.wire.codec import decode_request, decode_response, encode_request
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from sparklog.wire.versions import KNOWN_VERSIONS


class Connection:
    """Keeps what a client is sent."""

    def __init__(self):
        self.replies = []
        self.is_closed = False

    def send_reply(self, exchange, parts, throttle_ms):
        self.replies.append(read_parts(parts)[4:])

    def disconnect(self):
        self.is_closed = True


class Coordinators:
    """Keeps the requests, each with the function that answers it."""

    def __init__(self):
        self.requests = []
        self.replies = []

    def submit(self, topic, request, reply):
        assert topic == GROUP_OFFSETS_TOPIC
        self.requests.append(request)
        self.replies.append(reply)

    submit_to_every_host = submit


class Exchanged:
    """One request under way: what the coordinator was asked, and what the client was answered."""

    def __init__(self, request, version, client_id, coordinators, metadata, principal=ANONYMOUS):
        self.request = request
        self.version = KNOWN_VERSIONS[request.API_KEY].max if version is None else version
        self.coordinators = coordinators
        self.connection = Connection()
        frame = encode_request(request, self.version, 7, client_id)[4:]
        exchange = Exchange(
            memoryview(bytearray(frame)),
            RequestContext(1, "10.0.0.9", "EXTERNAL", 0, principal),
            self.connection,
        )
        broker = SimpleNamespace(coordinators=coordinators, metadata=metadata, new_guard=threading.Lock)
        header, body = decode_request(exchange.frame)
        self.call = Call(header, exchange, broker)
        self.body = body

    @property
    def asked(self):
        """The only request that the coordinator got."""
        (request,) = self.coordinators.requests
        return request

    @property
    def is_answered(self):
        return bool(self.connection.replies)

    @property
    def response(self):
        (frame,) = self.connection.replies
        correlation_id, response = decode_response(self.request.API_KEY, self.version, frame)
        assert correlation_id == 7
        return response

    def answer(self, *responses):
        """The coordinator answers its requests in their order; returns what the client gets."""
        for reply, response in zip(self.coordinators.replies, responses, strict=True):
            reply(response)
        return self.response


@pytest.fixture
def metadata():
    """The topic ``t`` with partitions 0 and 1."""
    cache = MetadataCache(threading.Lock())
    partitions = [
        UpdateMetadataPartitionState(
            partition_index=number, controller_epoch=1, leader=1, leader_epoch=0, zk_version=0
        )
        for number in (0, 1)
    ]
    topic = UpdateMetadataTopicState(topic_name="t", partition_states=partitions)
    cache.update(UpdateMetadataRequest(controller_id=1, controller_epoch=1, topic_states=[topic]))
    return cache


@pytest.fixture
def handled(metadata):
    """Passes a request to a handler as a frame of the wire."""

    def handle(handler, request, version=None, client_id="client"):
        exchanged = Exchanged(request, version, client_id, Coordinators(), metadata)
        handler(exchanged.call, exchanged.body)
        return exchanged

    return handle
