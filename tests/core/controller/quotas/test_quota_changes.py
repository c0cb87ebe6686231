"""Quotas are stored where Kafka stores them, and refused with Kafka's reasons."""

import json

import pytest

from sparklog.core.controller.commands.quota_commands import (
    AlterQuotas,
    DescribeQuotas,
    QuotaAlteration,
    QuotaChange,
)
from sparklog.core.controller.quotas.quota_changes import ALTERATIONS_MAX
from sparklog.model.errors import ErrorCode
from sparklog.model.quota_entity import QuotaEntity
from sparklog.model.zookeeper import Create


def entity(*parts):
    return QuotaEntity(parts)


ALICE = entity(("user", "alice"))
ALICE_AT_HOME = entity(("user", "alice"), ("client-id", "home"))


def alteration(of, **values):
    return QuotaAlteration(of, tuple(QuotaChange(key, value) for key, value in values.items()))


def alter(world, of, *, validate_only=False, **values):
    (result,) = world.command(AlterQuotas((alteration(of, **values),), validate_only)).results
    return result


def stored(world, path):
    node = world.zk.get(path)
    return None if node is None else node.data


def config(**values):
    return json.dumps({"version": 1, "config": values}, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (ALICE, "/config/users/alice"),
        (entity(("user", None)), "/config/users/<default>"),
        (entity(("client-id", "c")), "/config/clients/c"),
        (entity(("client-id", None)), "/config/clients/<default>"),
        (ALICE_AT_HOME, "/config/users/alice/clients/home"),
        (entity(("client-id", None), ("user", None)), "/config/users/<default>/clients/<default>"),
        (entity(("user", "<default>")), "/config/users/%3Cdefault%3E"),
        (entity(("user", "a b*/~ü")), "/config/users/a%20b%2A%2F%7E%C3%BC"),
    ],
)
def test_a_quota_is_stored_at_kafka_s_path_in_kafka_s_form(world, of, path):
    assert alter(world, of, producer_byte_rate=1000.0).error is ErrorCode.none
    assert stored(world, path) == config(producer_byte_rate="1000")


def test_an_address_has_a_quota_of_connections_alone(world):
    address = entity(("ip", "10.0.0.1"))
    assert alter(world, address, connection_creation_rate=7.0).error is ErrorCode.none
    assert stored(world, "/config/ips/10.0.0.1") == config(connection_creation_rate="7")
    assert alter(world, address, producer_byte_rate=1.0).message == (
        "Invalid configuration key producer_byte_rate"
    )
    refused = alter(world, ALICE, connection_creation_rate=7.0)
    assert refused.message == "Invalid configuration key connection_creation_rate"


def test_quotas_are_set_changed_and_removed_one_by_one(world):
    alter(world, ALICE, producer_byte_rate=5.0, request_percentage=12.5)
    alter(world, ALICE, producer_byte_rate=6.0, consumer_byte_rate=7.0)
    alter(world, ALICE, request_percentage=None, controller_mutation_rate=None)
    assert stored(world, "/config/users/alice") == config(producer_byte_rate="6", consumer_byte_rate="7")
    alter(world, ALICE, producer_byte_rate=None, consumer_byte_rate=None)
    assert stored(world, "/config/users/alice") == config()


def test_nodes_above_a_client_of_a_user_are_empty_until_they_get_quotas(world):
    alter(world, ALICE_AT_HOME, producer_byte_rate=5.0)
    assert stored(world, "/config/users/alice") == stored(world, "/config/users/alice/clients") == b""
    alter(world, ALICE, consumer_byte_rate=1.0)
    assert stored(world, "/config/users/alice") == config(consumer_byte_rate="1")


def test_credentials_beside_quotas_stay(world):
    path = "/config/users/alice"
    world.zk.multi([Create(path, config(**{"SCRAM-SHA-256": "salt=x"}))])
    world.activate()
    alter(world, ALICE, producer_byte_rate=5.0)
    assert stored(world, path) == config(**{"SCRAM-SHA-256": "salt=x", "producer_byte_rate": "5"})


def test_a_dry_run_writes_nothing(world):
    assert alter(world, ALICE, validate_only=True, producer_byte_rate=5.0).error is ErrorCode.none
    assert stored(world, "/config/users/alice") is None


def test_one_bad_alteration_does_not_keep_the_others_from_being_made(world):
    request = AlterQuotas((alteration(entity(), x=1.0), alteration(ALICE, producer_byte_rate=5.0)))
    results = world.command(request).results
    assert [one.error for one in results] == [ErrorCode.invalid_request, ErrorCode.none]
    assert stored(world, "/config/users/alice") == config(producer_byte_rate="5")


def test_alterations_of_one_entity_follow_one_another(world):
    first, second = alteration(ALICE, producer_byte_rate=5.0), alteration(ALICE, consumer_byte_rate=6.0)
    world.command(AlterQuotas((first, second)))
    assert stored(world, "/config/users/alice") == config(producer_byte_rate="5", consumer_byte_rate="6")


@pytest.mark.parametrize("lost", ["before", "after"])
def test_quotas_whose_write_got_lost_are_stored_once_and_the_next_controller_has_them(world, lost):
    world.lose_answers = [lost]
    assert alter(world, ALICE_AT_HOME, producer_byte_rate=5.0).error is ErrorCode.none
    world.activate()
    described = world.command(DescribeQuotas(())).entries
    assert described == ((ALICE_AT_HOME, {"producer_byte_rate": 5.0}),)
    assert alter(world, ALICE_AT_HOME, producer_byte_rate=6.0).error is ErrorCode.none


@pytest.mark.parametrize(
    ("of", "values", "words"),
    [
        (entity(), {}, "Invalid empty client quota entity"),
        (entity(("group", "g")), {}, "Unhandled client quota entity type: group"),
        (entity(("user", "")), {}, "Empty user not supported"),
        (entity(("user", "..")), {}, "cannot be a node of ZooKeeper"),
        (entity(("user", "u" * 1_001)), {}, "cannot be a node of ZooKeeper"),
        (entity(("user", "a"), ("user", "b")), {}, "names each type once"),
        (entity(("user", "a"), ("ip", "10.0.0.1")), {}, "IP entity should not be used with user/client ID"),
        (entity(("ip", "no.such.host")), {}, "no.such.host is not a valid IP or resolvable host."),
        (ALICE, {"producer_byte_rat": 1.0}, "Invalid configuration key producer_byte_rat"),
        (ALICE, {"SCRAM-SHA-256": 1.0}, "Invalid configuration key SCRAM-SHA-256"),
        (ALICE, {"producer_byte_rate": 1.5}, "Configuration producer_byte_rate must be a LONG value"),
        (entity(("ip", None)), {"connection_creation_rate": 0.5}, "must be a INT value"),
        (ALICE, {"producer_byte_rate": -1.0}, "not a finite number of at least 0"),
        (ALICE, {"request_percentage": float("nan")}, "not a finite number of at least 0"),
    ],
)
def test_an_illegal_quota_is_refused_with_its_reason_and_stored_nowhere(world, of, values, words):
    before = dict(world.zk.nodes)
    refused = alter(world, of, **values)
    assert (refused.error, words in refused.message) == (ErrorCode.invalid_request, True), refused
    assert world.zk.nodes == before


def test_more_alterations_than_one_write_takes_are_refused(world):
    many = tuple(alteration(entity(("user", f"u{n}")), x=None) for n in range(ALTERATIONS_MAX + 1))
    assert {one.error for one in world.command(AlterQuotas(many)).results} == {ErrorCode.invalid_request}
    wide = tuple(
        alteration(entity(("user", "ü" * 900 + str(n))), producer_byte_rate=1.0)
        for n in range(ALTERATIONS_MAX)
    )
    results = world.command(AlterQuotas(wide)).results
    assert "too large for one write" in results[0].message


def test_a_value_above_the_greatest_is_the_greatest(world):
    alter(world, ALICE, producer_byte_rate=1e30)
    assert stored(world, "/config/users/alice") == config(producer_byte_rate=str(2**63 - 1))
