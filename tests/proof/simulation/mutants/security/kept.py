"""Holes of what ZooKeeper keeps: rules that are read too seldom, and passwords that are written over."""

import threading
from typing import Any, Final

from simulation.mutants.mutant import Switch
from simulation.mutants.security.checked_mutant import CheckedMutant
from sparklog.core.controller.commands.controller_command import CommandId
from sparklog.core.controller.commands.quota_commands import AlterQuotas, QuotaAlteration, QuotaChange
from sparklog.core.controller.quotas.quota_changes import decide_quotas
from sparklog.core.controller.state import entity_writes
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.quota_nodes import quota_path
from sparklog.core.controller.state.znodes import encode_configs
from sparklog.core.controller.steps import ApplyQuotas, Decision
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.requester import Requester
from sparklog.core.security.rule_nodes import (
    LITERAL_CHANGES,
    RULE_PATHS,
    change_path,
    encode_change,
    encode_rules,
    rules_path,
)
from sparklog.core.security.rules import Pattern, Rule
from sparklog.model.ids import ControllerEpoch
from sparklog.model.loops import go_on
from sparklog.model.quota_entity import USER, QuotaEntity
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ANY_VERSION, Create, Delete, MultiFailed, SessionEvent, SetData
from sparklog.testing.memory_zookeeper import MemoryZooKeeperServer
from sparklog.zookeeper.notified_nodes import NotifiedNodes
from sparklog.zookeeper.rule_watch import RuleWatch

_PATIENCE_S: Final = 60
_ALICE: Final = "User:alice"
_READ: Final = AclOperation.read
_SALES: Final = Pattern(ResourceType.topic, "sales")
_BY_PASSWORD: Final = {"SCRAM-SHA-256": "salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096"}
_BEFORE: Final = {"consumer_byte_rate": "1000"}


def _trust_notifications(switch: Switch) -> None:
    """After a reconnect only what notifications name is read, and old ones have been deleted."""

    def on_session(original: Any) -> Any:
        def mutated(self: NotifiedNodes, event: SessionEvent) -> None:
            must_read_all = self._must_read_all
            original(self, event)
            self._must_read_all = must_read_all

        return mutated

    switch.method(NotifiedNodes, "_on_session", on_session)


def _check_rules_after_a_reconnect() -> None:
    """A rule is taken away, and its notification purged, while a broker is cut off."""
    server = MemoryZooKeeperServer()
    with server.client() as controller, server.client() as session:
        for path in RULE_PATHS:
            controller.ensure_path(path)
        notification = Create(change_path(_SALES.kind), encode_change(_SALES), sequential=True)
        rules = encode_rules(frozenset({Rule(_ALICE, _READ)}))
        controller.multi([Create(rules_path(_SALES), rules), notification])
        authorizer = Authorizer()
        loop = RuleWatch(session, authorizer).loop()
        go_on(loop)
        is_connected = threading.Event()
        session.on_session(lambda event: is_connected.set() if event == "connected" else None)
        alice = Requester(_ALICE, "10.0.0.1")
        assert authorizer.allows(alice, _READ, ResourceType.topic, _SALES.name)
        session.lose_connection()
        controller.multi([Delete(rules_path(_SALES)), notification])
        for name in controller.children(LITERAL_CHANGES):
            controller.delete(f"{LITERAL_CHANGES}/{name}")
        session.restore_connection()
        assert is_connected.wait(_PATIENCE_S)
        go_on(loop)
        assert not authorizer.allows(alice, _READ, ResourceType.topic, _SALES.name)


def _write_from_memory(switch: Switch) -> None:
    """A changed quota is written over whatever the user's node has."""

    def set_data(original: Any) -> Any:
        return lambda path, data, version: original(path, data, ANY_VERSION)

    switch.method(entity_writes, "SetData", set_data)


def _check_credentials_beside_quotas() -> None:
    """Another tool gives alice a password between the controller's reading and its writing."""
    entity = QuotaEntity(((USER, "alice"),))
    path = quota_path(entity)
    with MemoryZooKeeperServer().client() as zookeeper:
        for parent in ("/config/changes", "/config/users"):
            zookeeper.ensure_path(parent)
        zookeeper.multi([Create(path, encode_configs(_BEFORE))])
        image = ClusterImage(BrokerConfig(), ControllerEpoch(1), 0)
        image.quotas = {"/config/users": {}, path: _BEFORE}
        image.quota_versions = {"/config/users": 0, path: 0}
        zookeeper.multi([SetData(path, encode_configs({**_BEFORE, **_BY_PASSWORD}), 0)])
        change = QuotaAlteration(entity, (QuotaChange("consumer_byte_rate", 2_000.0),))
        decision = decide_quotas(image, ApplyQuotas(CommandId(1), AlterQuotas((change,))))
        assert isinstance(decision, Decision)
        try:
            zookeeper.multi(decision.operations)
        except MultiFailed:
            return  # the controller reads the node again, and decides anew
        node = zookeeper.get(path)
        assert node is not None
        assert b"SCRAM-SHA-256" in node.data


KEPT: Final = (
    CheckedMutant(
        "stale-rules-after-reconnect",
        "KIP-11",
        "a right that was taken away while a broker was cut off stays with its user",
        _trust_notifications,
        _check_rules_after_a_reconnect,
    ),
    CheckedMutant(
        "credentials-overwritten",
        "KIP-554",
        "a changed quota takes the password away that another tool has set",
        _write_from_memory,
        _check_credentials_beside_quotas,
    ),
)
