"""DescribeClientQuotas takes the entities that all filters take."""

import pytest

from sparklog.core.controller.commands.quota_commands import (
    AlterQuotas,
    DescribeQuotas,
    QuotaAlteration,
    QuotaChange,
    QuotaFilter,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.quota_entity import QuotaEntity
from sparklog.model.zookeeper import Create

ENTITIES = {
    "alice": QuotaEntity((("user", "alice"),)),
    "bob": QuotaEntity((("user", "bob"),)),
    "any user": QuotaEntity((("user", None),)),
    "home": QuotaEntity((("client-id", "home"),)),
    "alice at home": QuotaEntity((("user", "alice"), ("client-id", "home"))),
    "alice anywhere": QuotaEntity((("user", "alice"), ("client-id", None))),
    "here": QuotaEntity((("ip", "127.0.0.1"),)),
}


@pytest.fixture
def world_with_quotas(world):
    alterations = tuple(
        QuotaAlteration(
            entity,
            (
                QuotaChange(
                    "connection_creation_rate" if name == "here" else "producer_byte_rate", float(number)
                ),
            ),
        )
        for number, (name, entity) in enumerate(ENTITIES.items())
    )
    results = world.command(AlterQuotas(alterations)).results
    assert {one.error for one in results} == {ErrorCode.none}
    return world


def described(world, *filters, is_strict=False):
    result = world.command(DescribeQuotas(tuple(QuotaFilter(*one) for one in filters), is_strict))
    assert result.error is ErrorCode.none, result
    names = {entity: name for name, entity in ENTITIES.items()}
    return {names[entity] for entity, _ in result.entries}


@pytest.mark.parametrize(
    ("filters", "is_strict", "expected"),
    [
        ([], False, set(ENTITIES)),
        ([], True, set()),
        ([("user", "exact", "alice")], False, {"alice", "alice at home", "alice anywhere"}),
        ([("user", "exact", "alice")], True, {"alice"}),
        ([("user", "default")], True, {"any user"}),
        ([("user", "any")], True, {"alice", "bob", "any user"}),
        ([("user", "any")], False, {"alice", "bob", "any user", "alice at home", "alice anywhere"}),
        ([("client-id", "exact", "home")], True, {"home"}),
        ([("client-id", "exact", "home")], False, {"home", "alice at home"}),
        ([("user", "exact", "alice"), ("client-id", "default")], True, {"alice anywhere"}),
        ([("user", "any"), ("client-id", "any")], False, {"alice at home", "alice anywhere"}),
        ([("ip", "any")], True, {"here"}),
        ([("ip", "exact", "10.0.0.9")], False, set()),
        ([("ip", "default")], False, set()),
    ],
)
def test_filters_take_entities_by_kafka_s_rules(world_with_quotas, filters, is_strict, expected):
    assert described(world_with_quotas, *filters, is_strict=is_strict) == expected


def test_values_are_described_as_they_were_set(world_with_quotas):
    found = world_with_quotas.command(DescribeQuotas((QuotaFilter("user", "exact", "bob"),)))
    assert found.entries == ((ENTITIES["bob"], {"producer_byte_rate": 1.0}),)


def test_entities_whose_last_quota_was_removed_are_not_described(world_with_quotas):
    removal = QuotaAlteration(ENTITIES["bob"], (QuotaChange("producer_byte_rate", None),))
    world_with_quotas.command(AlterQuotas((removal,)))
    assert "bob" not in described(world_with_quotas)


def test_what_other_tools_stored_and_is_no_quota_is_left_out(world):
    data = b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x","producer_byte_rate":"fast"}}'
    world.zk.multi([Create("/config/users/carol", data)])
    world.activate()
    assert world.command(DescribeQuotas(())).entries == ()


@pytest.mark.parametrize(
    ("filters", "error", "words"),
    [
        ([("", "any")], ErrorCode.invalid_request, "Unexpected empty filter component entity type"),
        ([("group", "any")], ErrorCode.unsupported_version, "Custom entity type 'group' not supported"),
        ([("user", "any"), ("user", "default")], ErrorCode.invalid_request, "Duplicate user filter"),
        ([("user", "any"), ("ip", "any")], ErrorCode.invalid_request, "IP filter component should not"),
        ([("user", None)], ErrorCode.invalid_request, "Unexpected match type of user"),
    ],
)
def test_a_filter_without_sense_is_refused(world, filters, error, words):
    refused = world.command(DescribeQuotas(tuple(QuotaFilter(*one) for one in filters)))
    assert (refused.error, refused.entries) == (error, ())
    assert words in refused.message
