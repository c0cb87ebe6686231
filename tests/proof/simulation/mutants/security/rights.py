"""Holes of access rules: what beats what, which names a pattern covers, and who asks."""

import threading
from collections.abc import Sequence
from typing import Any, Final

from simulation.mutants.mutant import Switch
from simulation.mutants.security.checked_mutant import CheckedMutant
from sparklog.controller import handlers as controller_handlers
from sparklog.controller.handlers import ControllerHandlers
from sparklog.core.controller.commands.controller_command import Command
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.requester import Requester
from sparklog.core.security.rule_book import RuleBook
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule, Rules
from sparklog.model.parts import Part
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import MonotonicMs
from sparklog.network.access.access_control import AccessControl
from sparklog.network.clock import SystemClock
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.wire.codec import encode_request
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.admin.create_topics import CreatableTopic, CreateTopicsRequest
from sparklog.wire.messages.control.envelope import EnvelopeRequest
from sparklog.wire.messages.discovery.cluster_report import ClusterReportResponse

_ALICE: Final = "User:alice"
_BROKER: Final = "User:broker"
_READ: Final = AclOperation.read
_TOPIC: Final = ResourceType.topic


def _allows_first(switch: Switch) -> None:
    """What any rule allows is allowed, whatever another denies."""

    def verdict(original: Any) -> Any:
        def mutated(self: RuleBook, *question: Any) -> bool | None:
            kept = dict(self._indexes)
            for pattern, index in kept.items():
                self._indexes[pattern] = {
                    principal: tuple(rule for rule in rules if rule.permission is Permission.allow)
                    for principal, rules in index.items()
                }
            allowed: bool | None = original(self, *question)
            self._indexes.update(kept)
            return allowed or original(self, *question)

        return mutated

    switch.method(RuleBook, "verdict", verdict)


def _check_denials() -> None:
    authorizer = Authorizer()
    authorizer.book.put(
        Pattern(_TOPIC, "sales"), frozenset({Rule(_ALICE, _READ), Rule(_ALICE, _READ, Permission.deny)})
    )
    assert not authorizer.allows(Requester(_ALICE, "h"), _READ, _TOPIC, "sales")


def _prefixes_are_names(switch: Switch) -> None:
    """A rule for a prefix is about the one name that is the prefix."""

    def put(original: Any) -> Any:
        def mutated(self: RuleBook, pattern: Pattern, rules: Rules) -> None:
            original(self, Pattern(pattern.resource, pattern.name), rules)

        return mutated

    switch.method(RuleBook, "put", put)


def _check_prefixes() -> None:
    authorizer = Authorizer()
    authorizer.book.put(Pattern(_TOPIC, "sales-", PatternType.prefixed), frozenset({Rule(_ALICE, _READ)}))
    requester = Requester(_ALICE, "h")
    assert authorizer.allows(requester, _READ, _TOPIC, "sales-orders")
    assert not authorizer.allows(requester, _READ, _TOPIC, "stock-orders")


def _the_broker_asks(switch: Switch) -> None:
    """The controller judges a forwarded request by the broker that forwards it."""
    switch.instead(controller_handlers, "decode_requester", lambda *_: Requester(_BROKER, "h"))


class _Connection:
    """The connection of a broker."""

    def __init__(self) -> None:
        self.answers = 0

    def send_reply(self, exchange: Exchange, parts: Sequence[Part], throttle_ms: int) -> None:
        self.answers += 1

    def let_next_begin(self, exchange: Exchange) -> None: ...

    def disconnect(self) -> None: ...

    def send_last(self, exchange: Exchange, parts: Sequence[Part], delay_ms: int) -> None: ...

    def identify(self, principal: str) -> None: ...

    def admits(self, exchange: Exchange) -> bool:
        return True


def _check_envelopes() -> None:
    """Alice may create nothing; the broker that forwards her request may do everything."""
    submitted: list[Command] = []
    control = AccessControl(Authorizer(super_users=frozenset({_BROKER})), SystemClock(), threading.Lock())
    handlers = ControllerHandlers(
        BrokerConfig(),
        lambda command, answer: submitted.append(command),
        lambda request: ClusterReportResponse(),
        access_control=control,
    )
    wish = CreateTopicsRequest(topics=[CreatableTopic(name="mine")])
    envelope = EnvelopeRequest(
        request_data=_frame(wish, 7), request_principal=_ALICE.encode(), client_host_address=b"10.0.0.1"
    )
    context = RequestContext(1, "10.0.0.2", "CONTROLLER", MonotonicMs(0), _BROKER)
    connection = _Connection()
    handlers.handle(Exchange(memoryview(bytearray(_frame(envelope, 0))), context, connection))
    assert submitted == []
    assert connection.answers == 1


def _frame(message: Any, version: int) -> bytes:
    return bytes(encode_request(message, version, 7, "a-client"))[FRAME_PREFIX.size :]


RIGHTS: Final = (
    CheckedMutant(
        "deny-after-allow",
        "KIP-11",
        "a rule that allows beats one that denies",
        _allows_first,
        _check_denials,
    ),
    CheckedMutant(
        "prefix-as-literal",
        "KIP-290",
        "a rule for names that begin so is about one name, and closes or opens no other",
        _prefixes_are_names,
        _check_prefixes,
    ),
    CheckedMutant(
        "envelope-principal-not-read",
        "KIP-590",
        "whoever may reach a broker may do what the broker may",
        _the_broker_asks,
        _check_envelopes,
    ),
)
