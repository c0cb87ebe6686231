"""Rules as a server reads them from ZooKeeper, without a cluster around it."""

import logging
import time

import pytest

from sparklog.controller.notification_purge import KEPT_MS, NotificationPurge
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.requester import Requester
from sparklog.core.security.rule_nodes import (
    LITERAL_CHANGES,
    PREFIXED_CHANGES,
    RULE_PATHS,
    change_path,
    encode_change,
    encode_rules,
    rules_path,
)
from sparklog.core.security.rules import Pattern, PatternType, Rule
from sparklog.model.loops import Await, go_on
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.model.zookeeper import Create, ZooKeeperError
from sparklog.testing.memory_zookeeper import MemoryZooKeeperServer
from sparklog.zookeeper.rule_watch import RuleWatch

ALICE = Requester("User:alice", "10.0.0.1")
READ, TOPIC = AclOperation.read, ResourceType.topic
RULES = encode_rules(frozenset({Rule("User:alice", READ)}))


class HandClock:
    def __init__(self) -> None:
        self.now_ms = 0

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


@pytest.fixture
def server():
    server = MemoryZooKeeperServer()
    with server.client() as client:
        for path in RULE_PATHS:
            client.ensure_path(path)
    return server


@pytest.fixture
def zookeeper(server):
    with server.client(operation_timeout_ms=50) as client:
        yield client


def pattern(name: str, kind: PatternType = PatternType.literal) -> Pattern:
    return Pattern(TOPIC, name, kind)


def write(zookeeper, *patterns: Pattern) -> None:
    for one in patterns:
        notification = Create(change_path(one.kind), encode_change(one), sequential=True)
        zookeeper.multi([Create(rules_path(one), RULES), notification])


@pytest.mark.proof
def test_a_hundred_thousand_rules_are_read_within_seconds(server, zookeeper) -> None:
    for kind in PatternType:
        zookeeper.multi([Create(rules_path(pattern(f"t{n}", kind)), RULES) for n in range(50_000)])
    authorizer = Authorizer()
    began = time.perf_counter()
    with server.client() as patient:
        RuleWatch(patient, authorizer).read_all()
    assert time.perf_counter() - began < 30
    assert len(authorizer.book) == 100_000
    assert authorizer.allows(ALICE, READ, TOPIC, "t49999-and-more")


def test_a_server_that_is_cut_off_keeps_its_rules_and_says_so(zookeeper, caplog) -> None:
    authorizer, changed = Authorizer(), []
    watch = RuleWatch(zookeeper, authorizer, changed.append)
    write(zookeeper, pattern("a"))
    loop = watch.loop()
    assert isinstance(go_on(loop), Await)
    zookeeper.lose_connection()
    with caplog.at_level(logging.INFO):
        assert go_on(loop).timeout_ms is not None, "it looks again by itself"
    assert "going on with those known" in caplog.text
    assert authorizer.allows(ALICE, READ, TOPIC, "a")
    zookeeper.restore_connection()
    assert go_on(loop).timeout_ms is None
    assert [set(one) for one in changed] == [{pattern("a")}, {pattern("a")}]


def test_notifications_name_what_is_read_again(zookeeper) -> None:
    authorizer, changed = Authorizer(), []
    watch = RuleWatch(zookeeper, authorizer, changed.append)
    loop = watch.loop()
    go_on(loop)
    named = [pattern("a"), pattern("b", PatternType.prefixed)]
    write(zookeeper, *named)
    go_on(loop)
    assert set(changed[-1]) == set(named)
    assert authorizer.book.patterns() == named
    zookeeper.delete(rules_path(named[0]))
    notification = Create(change_path(named[0].kind), encode_change(named[0]), sequential=True)
    zookeeper.multi([notification])
    go_on(loop)
    assert authorizer.book.patterns() == named[1:]


def test_a_notification_that_cannot_be_read_has_everything_read_again(zookeeper, caplog) -> None:
    authorizer = Authorizer()
    loop = RuleWatch(zookeeper, authorizer).loop()
    go_on(loop)
    zookeeper.create(rules_path(pattern("a")), RULES)
    zookeeper.multi([Create(change_path(PatternType.literal), b"gibberish", sequential=True)])
    go_on(loop)
    assert "reading all access rules" in caplog.text
    assert authorizer.allows(ALICE, READ, TOPIC, "a")


def test_a_start_without_zookeeper_fails_instead_of_serving_without_rules(zookeeper) -> None:
    zookeeper.lose_connection()
    with pytest.raises(ZooKeeperError):
        RuleWatch(zookeeper, Authorizer()).read_all()


@pytest.mark.parametrize("is_in_office", [True, False])
def test_the_controller_in_office_deletes_notifications_after_fifteen_minutes(
    zookeeper, is_in_office
) -> None:
    clock = HandClock()
    purge = NotificationPurge(zookeeper, [LITERAL_CHANGES, PREFIXED_CHANGES], clock, lambda: is_in_office)
    write(zookeeper, pattern("a"))
    purge.purge()
    clock.now_ms = KEPT_MS - 1
    write(zookeeper, pattern("b"))
    purge.purge()
    assert len(zookeeper.children(LITERAL_CHANGES)) == 2
    clock.now_ms = KEPT_MS
    purge.purge()
    assert len(zookeeper.children(LITERAL_CHANGES)) == (1 if is_in_office else 2)
