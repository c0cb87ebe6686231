"""A broker and a controller that judge rights, asked without sockets by whomever a test wants to be."""

import threading
from typing import Any

import pytest

from sparklog.core.apis.api import Api, ListenerKind
from sparklog.core.apis.api_table import APIS
from sparklog.core.security.acl import ResourceType, Right
from sparklog.core.security.rule_book import RuleBook
from sparklog.core.security.rules import CLUSTER_NAME, Pattern, PatternType, Rule
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC
from sparklog.model.parts import read_parts
from sparklog.model.time import MonotonicMs
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.testing import InProcessCluster
from sparklog.wire.codec import decode_response, encode_request
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.discovery.find_coordinator import (
    GROUP_KEY,
    TRANSACTION_KEY,
    FindCoordinatorRequest,
)
from tests.broker.access.samples import (
    APP,
    GROUP,
    OTHER_USER,
    OWN_WRITE,
    TOPIC,
    TRANSACTION,
)
from tests.waiting import until

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "true",
    "listeners": "PLAINTEXT://:0,OUTSIDE://:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
}
WAIT_S = 20

PREFIXED = PatternType.prefixed
_INTERNAL = Pattern(ResourceType.topic, GROUP_OFFSETS_TOPIC)
PATTERNS = {
    ResourceType.topic: (Pattern(ResourceType.topic, "matrix-", PREFIXED), _INTERNAL),
    ResourceType.group: (Pattern(ResourceType.group, GROUP),),
    ResourceType.cluster: (Pattern(ResourceType.cluster, CLUSTER_NAME),),
    ResourceType.transactional_id: tuple(
        Pattern(ResourceType.transactional_id, name) for name in (TRANSACTION, OWN_WRITE, APP)
    ),
    ResourceType.user: (Pattern(ResourceType.user, OTHER_USER),),
    ResourceType.delegation_token: (Pattern(ResourceType.delegation_token, "token"),),
}
"""Patterns of the resources that the samples name, by type."""


class CLOSED:
    """The answer of a connection that was closed."""


class _Path:
    """Where an exchange sends its reply."""

    def __init__(self):
        self.answered = threading.Event()
        self.reply: Any = None

    def send_reply(self, exchange, parts, throttle_ms):
        self.reply = read_parts(parts)
        self.answered.set()

    def let_next_begin(self, exchange):
        pass

    def disconnect(self):
        self.reply = CLOSED
        self.answered.set()


class Servers:
    """One broker and the controller; rules are given to both at once."""

    def __init__(self, cluster):
        self.cluster = cluster
        (broker,) = cluster.brokers.values()
        self.context = broker.body.context
        self.dispatcher = broker.body.dispatcher
        self.controller = cluster.controller._handlers.handle
        self.controls = [self.context.access_control, cluster.controller._access_control]

    def grant(self, principal: str, rights: "list[Right]", host: str = "*") -> None:
        """Rules that give ``principal`` these rights on all that the samples name, and nothing else."""
        self.grant_each({principal: rights}, host)

    def grant_each(self, rights_of: "dict[str, list[Right]]", host: str = "*") -> None:
        book = RuleBook()
        for principal, rights in rights_of.items():
            for right in rights:
                for pattern in PATTERNS[right.resource]:
                    rule = Rule(principal, right.operation, host=host)
                    book.put(pattern, book.rules_of(pattern) | {rule})
        for control in self.controls:
            control.authorizer.book = book

    def topic_id(self):
        """The id of the topic that the samples name, which is there."""
        metadata = self.context.metadata
        if metadata.topic(TOPIC) is None:
            self.cluster.create_topic(TOPIC)
            self.cluster.wait_for_leader(TOPIC)
        return metadata.topic_id(TOPIC)

    def has_coordinator(self, key_type) -> bool:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[GROUP, TRANSACTION])
        found = self.ask(APIS[10], request, 4, "User:ANONYMOUS").coordinators
        return all(one.error_code is ErrorCode.none for one in found)

    def ask(self, api: Api, request, version: int, principal: str, *, listener: str = "PLAINTEXT"):
        """The response to ``principal``; CLOSED if there is none."""
        frame = encode_request(request, version, 7, "matrix")[FRAME_PREFIX.size :]
        reply = self.reply_to(api, frame, principal, listener=listener)
        if reply is CLOSED:
            return CLOSED
        return decode_response(api.key, version, reply[FRAME_PREFIX.size :])[1]

    def reply_to(self, api: Api, frame: bytes, principal: str, *, listener: str = "PLAINTEXT"):
        """The same in bytes."""
        path = _Path()
        at_controller = api.listeners == frozenset({ListenerKind.controller})
        if at_controller:
            listener = "CONTROLLER"
        context = RequestContext(1, "127.0.0.1", listener, MonotonicMs(0), principal)
        exchange = Exchange(memoryview(bytearray(frame)), context, path)
        (self.controller if at_controller else self.dispatcher)(exchange)
        assert path.answered.wait(WAIT_S), (api.name, principal)
        return path.reply


@pytest.fixture(scope="package")
def servers():
    with InProcessCluster(brokers=1, settings=SETTINGS) as cluster:
        servers = Servers(cluster)
        servers.topic_id()
        for key_type in (GROUP_KEY, TRANSACTION_KEY):
            until(lambda key_type=key_type: servers.has_coordinator(key_type), "a coordinator")
        yield servers
