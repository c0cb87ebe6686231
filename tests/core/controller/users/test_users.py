"""Users' passwords: Kafka's rules and words, and what other tools write into the same nodes meanwhile."""

import json

import pytest

from sparklog.core.controller.commands.quota_commands import AlterQuotas, QuotaAlteration, QuotaChange
from sparklog.core.controller.commands.user_commands import (
    AlterUsers,
    CredentialDeletion,
    CredentialUpsertion,
    DescribeUsers,
)
from sparklog.core.controller.users.user_changes import CHANGES_MAX, SALT_BYTES_MAX
from sparklog.core.security.login.scram import SHA_256, SHA_512, parse_credential
from sparklog.model.errors import ErrorCode
from sparklog.model.quota_entity import QuotaEntity
from sparklog.model.zookeeper import Create, Delete, SetData

ALICE = "/config/users/alice"
SALT = b"salt of alice"
SHA_256_NUMBER, SHA_512_NUMBER = 1, 2


def upsertion(user="alice", mechanism=SHA_256_NUMBER, iterations=4_096, salt=SALT, salted=None):
    size = 64 if mechanism == SHA_512_NUMBER else 32
    return CredentialUpsertion(user, mechanism, iterations, salt, b"p" * size if salted is None else salted)


def alter(world, *upsertions, delete=()):
    deletions = tuple(CredentialDeletion(user, mechanism) for user, mechanism in delete)
    results = world.command(AlterUsers(deletions, upsertions)).results
    return {one.user: (one.error, one.message) for one in results}


def described(world, *users):
    found = world.command(DescribeUsers(users)).users
    return {one.user: one.credentials or (one.error, one.message) for one in found}


def configs(world, path=ALICE):
    return json.loads(world.zk.get(path).data)["config"]


def notifications(world):
    names = world.zk.children("/config/changes")
    return [json.loads(world.zk.get(f"/config/changes/{name}").data) for name in names]


def set_quota(world, value=1_000.0):
    alteration = QuotaAlteration(
        QuotaEntity((("user", "alice"),)), (QuotaChange("producer_byte_rate", value),)
    )
    (result,) = world.command(AlterQuotas((alteration,))).results
    return result.error


def test_a_password_is_stored_in_kafkas_form_and_announced(world):
    assert alter(world, upsertion()) == {"alice": (ErrorCode.none, "")}
    stored = parse_credential(SHA_256, configs(world)["SCRAM-SHA-256"])
    assert (stored.salt, stored.iterations) == (SALT, 4_096)
    assert notifications(world) == [{"version": 2, "entity_path": "users/alice"}]
    assert b"pppp" not in world.zk.get(ALICE).data


def test_a_user_may_have_both_mechanisms_and_lose_one(world):
    alter(world, upsertion(), upsertion(mechanism=SHA_512_NUMBER, iterations=8_192))
    assert described(world) == {"alice": ((1, 4_096), (2, 8_192))}
    assert alter(world, delete=[("alice", SHA_256_NUMBER)]) == {"alice": (ErrorCode.none, "")}
    assert described(world, "alice") == {"alice": ((2, 8_192),)}
    assert parse_credential(SHA_512, configs(world)["SCRAM-SHA-512"]).iterations == 8_192


def test_quotas_and_passwords_of_a_user_leave_each_other_alone(world):
    set_quota(world)
    alter(world, upsertion())
    set_quota(world, 2_000.0)
    assert configs(world).keys() == {"producer_byte_rate", "SCRAM-SHA-256"}
    alter(world, delete=[("alice", SHA_256_NUMBER)])
    assert configs(world) == {"producer_byte_rate": "2000"}


def test_what_another_tool_has_written_meanwhile_is_kept(world):
    """Before the controller reads, and between its reading and its write."""
    alter(world, upsertion())
    theirs = {**configs(world), "SCRAM-SHA-512": "salt=…", "consumer_byte_rate": "5"}
    data = json.dumps({"version": 1, "config": theirs}).encode()
    world.zk.multi([SetData(ALICE, data, 0)])
    world.before_write = [lambda: world.zk.multi([SetData(ALICE, data.replace(b'"5"', b'"6"'), 1)])]
    assert set_quota(world) is ErrorCode.none
    assert configs(world) == {**theirs, "consumer_byte_rate": "6", "producer_byte_rate": "1000"}


def test_a_user_whom_another_tool_creates_or_deletes_meanwhile(world):
    data = json.dumps({"version": 1, "config": {"consumer_byte_rate": "5"}}).encode()
    world.before_write = [lambda: world.zk.multi([Create(ALICE, data)])]
    assert alter(world, upsertion()) == {"alice": (ErrorCode.none, "")}
    assert configs(world).keys() == {"consumer_byte_rate", "SCRAM-SHA-256"}
    world.before_write = [lambda: world.zk.multi([Delete(ALICE)])]
    assert alter(world, upsertion(mechanism=SHA_512_NUMBER)) == {"alice": (ErrorCode.none, "")}
    assert configs(world).keys() == {"SCRAM-SHA-512"}


def test_a_node_that_cannot_be_read_costs_nothing_but_itself(world):
    world.zk.multi([Create(ALICE, b"no json"), Create("/config/users/bob", b'{"version":1,"config":{}}')])
    assert described(world) == {}
    assert alter(world, upsertion()) == {"alice": (ErrorCode.none, "")}
    assert described(world) == {"alice": ((1, 4_096),)}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"iterations": 4_095}, ErrorCode.unacceptable_credential, "Too few iterations"),
        ({"iterations": 16_385}, ErrorCode.unacceptable_credential, "Too many iterations"),
        ({"user": ""}, ErrorCode.unacceptable_credential, "Username must not be empty"),
        ({"mechanism": 3}, ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism"),
        ({"salt": b""}, ErrorCode.unacceptable_credential, "a salt has 1 to 1024 bytes"),
        (
            {"salt": b"s" * (SALT_BYTES_MAX + 1)},
            ErrorCode.unacceptable_credential,
            "a salt has 1 to 1024 bytes",
        ),
        (
            {"salted": b"short"},
            ErrorCode.unacceptable_credential,
            "a salted password of SCRAM-SHA-256 has 32 bytes",
        ),
        (
            {"user": "a\nb"},
            ErrorCode.unacceptable_credential,
            "the name is too long, or has characters that cannot be printed: nobody could log in by it",
        ),
    ],
)
def test_a_password_that_cannot_be_is_refused_and_others_are_not(world, change, error, message):
    results = alter(world, upsertion(**change), upsertion("bob"))
    assert results == {change.get("user", "alice"): (error, message), "bob": (ErrorCode.none, "")}
    assert list(described(world)) == ["bob"]


def test_a_user_of_whom_one_change_is_refused_is_not_changed_at_all(world):
    refused = alter(world, upsertion(), upsertion(mechanism=SHA_512_NUMBER, iterations=1))
    assert refused == {"alice": (ErrorCode.unacceptable_credential, "Too few iterations")}
    assert described(world) == {}


def test_what_is_named_twice_or_is_not_there(world):
    twice = ErrorCode.duplicate_resource, "A user credential cannot be altered twice in the same request"
    assert alter(world, upsertion(), upsertion()) == {"alice": twice}
    missing = ErrorCode.resource_not_found, "Attempt to delete a user credential that does not exist"
    assert alter(world, delete=[("alice", SHA_256_NUMBER)]) == {"alice": missing}
    alter(world, upsertion())
    assert alter(world, upsertion(), delete=[("alice", SHA_256_NUMBER)]) == {"alice": twice}
    assert described(world, "alice", "alice", "bob", "") == {
        "alice": (
            ErrorCode.duplicate_resource,
            "Cannot describe SCRAM credentials for the same user twice in a single request: alice",
        ),
        "bob": (
            ErrorCode.resource_not_found,
            "Attempt to describe a user credential that does not exist: bob",
        ),
        "": (ErrorCode.resource_not_found, "Username must not be empty"),
    }


def test_a_request_has_a_bounded_number_of_changes(world):
    many = [upsertion(f"user-{number}") for number in range(CHANGES_MAX + 1)]
    assert {error for error, _ in alter(world, *many).values()} == {ErrorCode.invalid_request}


def test_no_password_is_among_the_recent_events(world):
    alter(world, upsertion(salted=b"planted-salted-password-of-alice"))
    assert "planted" not in "\n".join(world.machine.events.lines)
    assert "'alice'" in "\n".join(world.machine.events.lines)
