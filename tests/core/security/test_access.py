"""What an authorizer says beside its rules: super users, what no rule is about, operations, denials."""

import pytest

from sparklog.core.security.access import Access, every_operation
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.authorizer import Authorizer, authorizer_of
from sparklog.core.security.denials import KINDS_MAX, Denials
from sparklog.core.security.requester import Requester
from sparklog.core.security.rules import CLOSED, Pattern, Permission, Rule
from sparklog.model.errors import ConfigError
from sparklog.model.settings.access_settings import AUTHORIZERS, super_users
from sparklog.model.settings.config import BrokerConfig

ALICE = Requester("User:alice", "10.0.0.1")
ADMIN = Requester("User:admin", "10.0.0.1")
TOPIC = ResourceType.topic
READ = AclOperation.read


def test_a_super_user_may_do_what_rules_deny() -> None:
    authorizer = Authorizer(frozenset({"User:admin"}))
    authorizer.book.put(Pattern(TOPIC, "t"), CLOSED)
    assert authorizer.allows(ADMIN, READ, TOPIC, "t")
    assert authorizer.allows_any(ADMIN, READ, TOPIC)
    assert not authorizer.allows(ALICE, READ, TOPIC, "t")


@pytest.mark.parametrize("allows", [True, False])
def test_what_no_rule_is_about_is_as_the_setting_says(allows: bool) -> None:
    authorizer = Authorizer(allows_without_rules=allows)
    authorizer.book.put(Pattern(TOPIC, "t"), frozenset({Rule("User:bob", READ)}))
    assert authorizer.allows(ALICE, READ, TOPIC, "other") is allows
    assert (
        authorizer.allows(ALICE, AclOperation.cluster_action, ResourceType.cluster, "kafka-cluster") is allows
    )
    assert authorizer.allows_any(ALICE, READ, TOPIC) is allows
    assert not authorizer.allows(ALICE, READ, TOPIC, "t")
    authorizer.book.put(Pattern(TOPIC, "*"), frozenset({Rule("User:alice", READ, Permission.deny)}))
    assert not authorizer.allows_any(ALICE, READ, TOPIC)


@pytest.mark.parametrize("name", AUTHORIZERS)
def test_both_of_kafkas_authorizers_mean_ours(name: str) -> None:
    settings = {"authorizer.class.name": name, "super.users": "User:a; User:CN=b,O=c"}
    authorizer = authorizer_of(BrokerConfig.parse(settings))
    assert authorizer is not None
    assert authorizer.super_users == {"User:a", "User:CN=b,O=c"}
    assert authorizer_of(BrokerConfig.parse({})) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("admin", "no type"),
        ("User:", "no type"),
        (":admin", "no type"),
        ("User:a,User:b", "semicolon"),
        ("User:a, User:b", "semicolon"),
    ],
)
def test_super_users_without_type_or_with_a_comma_between_two_are_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        super_users(text)


def test_denials_are_reported_and_what_a_list_leaves_out_is_not() -> None:
    told: list[str] = []
    access = Access(Authorizer(), ALICE, lambda who, what, kind, name: told.append(name))
    assert not access.allows(READ, TOPIC, "t")
    assert access.filter(READ, TOPIC, ["u", "v"]) == frozenset()
    assert not access.sees(READ, TOPIC, "w")
    assert told == ["t"]


def test_operations_are_the_bits_of_their_numbers() -> None:
    authorizer = Authorizer()
    authorizer.book.put(Pattern(TOPIC, "t"), frozenset({Rule("User:alice", AclOperation.write)}))
    access = Access(authorizer, ALICE, lambda *_: None)
    assert access.operations(TOPIC, "t") == 1 << AclOperation.write | 1 << AclOperation.describe
    assert every_operation(ResourceType.group) == 1 << 3 | 1 << 6 | 1 << 8


def test_a_denial_is_told_once_a_second_with_how_often_it_happened() -> None:
    denials = Denials()

    def deny(now_ms: int, name: str = "t") -> str | None:
        return denials.on_denial(ALICE, READ, TOPIC, name, now_ms)

    assert deny(0) == "User:alice at 10.0.0.1 is denied READ on TOPIC 't'"
    assert [deny(1), deny(999)] == [None, None]
    assert deny(999, "u") is not None
    assert deny(1_000) == "User:alice at 10.0.0.1 is denied READ on TOPIC 't' (3 times since the last line)"
    assert deny(2_000) == "User:alice at 10.0.0.1 is denied READ on TOPIC 't'"


def test_a_stranger_who_names_ever_other_resources_fills_no_log() -> None:
    denials = Denials()
    lines = [denials.on_denial(ALICE, READ, TOPIC, f"t{n}", 0) for n in range(5 * KINDS_MAX)]
    assert sum(line is not None for line in lines) == KINDS_MAX + 1
    assert denials.on_denial(ALICE, READ, TOPIC, "t\n\x1b[31m", 5_000) == (
        "User:alice at 10.0.0.1 is denied READ on TOPIC 't\\n\\x1b[31m'"
    )
