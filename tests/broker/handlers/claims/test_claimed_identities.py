"""Whoever names an identity that is not its own is refused, and the identity's owner goes on."""

import re

import pytest

from sparklog.wire.schema import Schema, load_schema
from sparklog.wire.versions import API_VERSIONS, KNOWN_VERSIONS, OWN_VERSIONS
from tests.broker.handlers.claims.table import TABLE

NAMES_SOMEBODY = re.compile(
    "producer_id|producer_epoch|member_id|group_instance_id|generation_id.*|session_id|session_epoch|"
    "replica_id|replica_epoch|current_leader_epoch|broker_id|broker_epoch|controller_epoch|run|winners|hmac"
)
"""Fields of requests."""

BELIEVED = [(row, claim) for row in TABLE for claim in row.believed]


def fields_of(schema: Schema) -> set[str]:
    names = {field.name for field in schema.fields}
    return names.union(*(fields_of(field.entity) for field in schema.fields if field.entity))


def test_the_table_has_every_request_of_a_client_that_names_somebody():
    naming = {
        KNOWN_VERSIONS[key].name
        for key, api in (API_VERSIONS | OWN_VERSIONS).items()
        for version in range(api.min, api.max + 1)
        if any(NAMES_SOMEBODY.fullmatch(name) for name in fields_of(load_schema(key, version, "request")))
    }
    in_batches = {"Produce"}
    assert {row.request.__name__.removesuffix("Request") for row in TABLE} == naming | in_batches


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_a_claim_is_answered_by_the_table_and_its_owner_goes_on(cluster, wire, row):
    owner = row.owner(cluster, wire)
    answers = {claim: getattr(owner, row.ask)(claim).name for claim in row.answers}
    assert answers == row.answers
    owner.goes_on()


@pytest.mark.parametrize(("row", "claim"), BELIEVED, ids=str)
def test_what_is_believed_is_answered_as_its_owner_s(cluster, wire, row, claim):
    owner = row.owner(cluster, wire)
    assert getattr(owner, row.ask)(claim).name in ("none", "MEMBER", "COMMITTED")
