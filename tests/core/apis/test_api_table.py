"""The table of APIs: its columns agree with each other, and versions with what Kafka 3.6 announces."""

import dataclasses

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from sparklog.core.apis.api import Api, Code, ListenerKind, Quota, Waits
from sparklog.core.apis.api_table import APIS, ROWS, by_key
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.conditions import Condition
from sparklog.wire.versions import API_VERSIONS, INTERNAL_VERSIONS, OWN_VERSIONS

BROKERS_CODE, CONTROLLERS_CODE = Code.handler | Code.forward, Code.command | Code.built_in
NOT_SERVED = {
    34: "AlterReplicaLogDirs",
    57: "UpdateFeatures",
}
"""APIs that a broker of Kafka 3.6 announces and ours does not (docs/differences.md)."""


def test_rows_are_sorted_by_key_and_neither_key_nor_name_is_there_twice():
    keys = [api.key for api in ROWS]
    assert keys == sorted(set(keys)) == list(APIS)
    assert len({api.name for api in ROWS}) == len(ROWS)


def test_clients_are_announced_what_a_broker_of_kafka_3_6_announces():
    kafka = {key: versions for key, versions in BROKER_API_VERSIONS[3, 6].items() if key not in NOT_SERVED}
    ours = {key: (api.min, api.max) for key, api in API_VERSIONS.items()}
    assert ours == {key: versions for key, versions in kafka.items() if key not in INTERNAL_VERSIONS}


def test_every_api_is_for_clients_or_internal_or_ours():
    assert APIS.keys() == {*API_VERSIONS, *INTERNAL_VERSIONS, *OWN_VERSIONS}
    assert len(APIS) == len(API_VERSIONS) + len(INTERNAL_VERSIONS) + len(OWN_VERSIONS)
    assert {api.family for api in INTERNAL_VERSIONS.values()} == {"control"}
    assert all(api.family != "control" for api in OWN_VERSIONS.values())
    (between_brokers,) = (api for api in OWN_VERSIONS.values() if not api.is_for_clients)
    assert (between_brokers.name, str(*between_brokers.rights)) == ("LeanFetch", "CLUSTER_ACTION on CLUSTER")


def test_brokers_may_ask_all_that_clients_may():
    for api in ROWS:
        assert not api.is_for_clients or ListenerKind.brokers in api.listeners, api


@pytest.mark.parametrize("api", ROWS, ids=lambda api: api.name)
def test_each_server_has_code_for_what_its_listeners_serve_and_for_nothing_else(api):
    assert bool(api.code & BROKERS_CODE) is (ListenerKind.brokers in api.listeners)
    assert bool(api.code & CONTROLLERS_CODE) is (ListenerKind.controller in api.listeners)
    assert BROKERS_CODE not in api.code
    assert CONTROLLERS_CODE not in api.code


def test_what_brokers_forward_is_decided_by_a_command_and_waits_for_the_controller():
    for api in ROWS:
        assert Code.forward not in api.code or Code.command in api.code, api
        if api.code & BROKERS_CODE and Code.command in api.code:
            assert api.waits is Waits.controller, api


def test_requests_between_brokers_and_controller_need_the_right_to_act_for_the_cluster():
    for api in INTERNAL_VERSIONS.values():
        (right,) = api.rights
        assert (right.operation, right.resource) == (AclOperation.cluster_action, ResourceType.cluster)
        assert api.quota is Quota.none


@pytest.mark.parametrize(
    ("name", "rights"),
    [
        (
            "InitProducerId",
            "WRITE on TRANSACTIONAL_ID (with a transactional id); IDEMPOTENT_WRITE on CLUSTER "
            "(without a transactional id), or else WRITE on any TOPIC",
        ),
        ("WriteTxnMarkers", "ALTER on CLUSTER, or else CLUSTER_ACTION on CLUSTER"),
        (
            "Metadata",
            "DESCRIBE on TOPIC; CREATE on CLUSTER (that is created automatically), or else CREATE on TOPIC; "
            "DESCRIBE on CLUSTER (to show the operations on it)",
        ),
        ("OffsetForLeaderEpoch", "CLUSTER_ACTION on CLUSTER, or else DESCRIBE on TOPIC"),
        ("DescribeTransactions", "DESCRIBE on TRANSACTIONAL_ID; DESCRIBE on TOPIC (that is listed)"),
        ("Agree", ""),
    ],
)
def test_rows_have_the_other_right_that_suffices_as_in_kafka(name: str, rights: str):
    (api,) = (api for api in ROWS if api.name == name)
    assert "; ".join(map(str, api.rights)) == rights


def test_no_request_needs_all_operations_and_each_condition_is_of_some_row():
    rights = [one for api in ROWS for right in api.rights for one in right.alternatives]
    assert AclOperation.all not in {right.operation for right in rights}
    assert {right.condition for right in rights} == set(Condition)


def test_every_request_of_clients_uses_up_a_quota():
    """But for what coordinators send to brokers, which a tool may send as well: Kafka exempts it, too."""
    free = [api.name for api in ROWS if api.is_for_clients and api.quota is Quota.none]
    assert free == ["WriteTxnMarkers"]


def test_an_api_contains_both_its_bounds():
    api = dataclasses.replace(ROWS[0], min=2, max=4, flexible_from=3)
    assert [version for version in range(7) if version in api] == [2, 3, 4]
    assert [version for version in range(7) if api.is_flexible(version)] == [3, 4, 5, 6]


def test_a_module_is_named_as_its_api():
    def module(name: str) -> str:
        api: Api = dataclasses.replace(ROWS[0], name=name)
        return api.module

    assert [module("InitProducerId"), module("Agree")] == ["init_producer_id", "agree"]


def test_code_is_found_by_key_and_a_name_without_a_row_is_refused():
    assert by_key({"Fetch": "f", "Produce": "p"}) == {0: "p", 1: "f"}
    with pytest.raises(KeyError, match="Fetches"):
        by_key({"Fetches": "f"})
