"""Which requests are acts of administration, and what each is said to change."""

from dataclasses import replace

import pytest

from sparklog.core.apis.api import Api, Code, ListenerKind
from sparklog.core.apis.api_table import APIS, ROWS
from sparklog.core.security.acl import AclOperation
from sparklog.core.security.audit import Act
from sparklog.wire.access.acts import ACTS, act_at_broker, act_at_controller
from sparklog.wire.messages.admin import alter_client_quotas as quotas
from sparklog.wire.messages.admin import alter_partition_reassignments as moves
from sparklog.wire.messages.admin import elect_leaders as elections
from sparklog.wire.messages.admin import incremental_alter_configs as configs
from sparklog.wire.messages.admin.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from sparklog.wire.messages.admin.alter_schema import AlterSchemaChange, AlterSchemaRequest
from sparklog.wire.messages.admin.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sparklog.wire.messages.admin.create_topics import CreatableTopic, CreateTopicsRequest
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sparklog.wire.messages.admin.operate_brokers import OperateBrokersRequest
from sparklog.wire.messages.data import delete_records as deletions
from sparklog.wire.messages.groups import offset_delete as offsets
from sparklog.wire.messages.groups.delete_groups import DeleteGroupsRequest
from sparklog.wire.messages.security import alter_user_scram_credentials as users
from sparklog.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from sparklog.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from sparklog.wire.messages.transactions import write_txn_markers as markers
from tests.wire.least_request import least_request

CHANGING = {
    AclOperation.create, AclOperation.delete, AclOperation.alter, AclOperation.alter_configs,
}  # fmt: skip
NOT_ADMINISTRATION = {
    "Metadata": "topics that it creates are created by CreateTopics",
    "BrokerReport": "it reads lines of a log",
}
"""Requests with such a right that are no acts, each with its reason."""

CASES = [
    (CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="b")]), ["a", "b"]),
    (DeleteTopicsRequest(topic_names=["a"], topics=[DeleteTopicState(name="b")]), ["a", "b"]),
    (
        AlterSchemaRequest(
            topic="a",
            from_version=1,
            changes=[AlterSchemaChange(operation="add-column", text="b int")],
        ),
        ["a: add-column b int"],
    ),
    (OperateBrokersRequest(action="drain", brokers=[2, 3]), ["drain of broker 2", "drain of broker 3"]),
    (OperateBrokersRequest(action="restart", is_all=True), ["restart of all brokers"]),
    (OperateBrokersRequest(action="cancel", operation=7), ["cancel of operation 7"]),
    (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=7)]), ["a to 7 partitions"]),
    (
        AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=2,
                    resource_name="a",
                    configs=[AlterableConfig(name="retention.ms", value="of-no-concern")],
                )
            ]
        ),
        ["topic 'a': retention.ms"],
    ),
    (
        CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=2, resource_name="sales-", resource_pattern_type=4,
                    principal="User:alice", host="*", operation=3, permission_type=3,
                )
            ]
        ),
        ["allow User:alice from * READ on prefixed topic 'sales-'"],
    ),
    (
        DeleteAclsRequest(
            filters=[DeleteAclsFilter(resource_type_filter=1, operation=99, permission_type=1)]
        ),
        ["any any from any 99 on literal any any"],
    ),
    (
        quotas.AlterClientQuotasRequest(
            entries=[
                quotas.EntryData(
                    entity=[
                        quotas.EntityData(entity_type="user", entity_name="alice"),
                        quotas.EntityData(entity_type="client-id"),
                    ],
                    ops=[
                        quotas.OpData(key="producer_byte_rate", value=1e6),
                        quotas.OpData(key="request_percentage", remove=True),
                    ],
                )
            ]
        ),
        ["user 'alice', client-id None: producer_byte_rate=1e+06, -request_percentage"],
    ),
    (
        users.AlterUserScramCredentialsRequest(
            deletions=[users.ScramCredentialDeletion(name="bob", mechanism=1)],
            upsertions=[
                users.ScramCredentialUpsertion(
                    name="alice", mechanism=2, iterations=4_096, salt=b"the-salt", salted_password=b"secret"
                )
            ],
        ),
        ["-'bob': SCRAM-SHA-256", "'alice': SCRAM-SHA-512"],
    ),
    (
        moves.AlterPartitionReassignmentsRequest(
            topics=[
                moves.ReassignableTopic(
                    name="a",
                    partitions=[
                        moves.ReassignablePartition(partition_index=0, replicas=[1, 2]),
                        moves.ReassignablePartition(partition_index=1, replicas=None),
                    ],
                )
            ]
        ),
        ["a-0 to 1,2", "a-1 cancelled"],
    ),
    (elections.ElectLeadersRequest(topic_partitions=None), ["every partition"]),
    (
        elections.ElectLeadersRequest(
            topic_partitions=[elections.ElectLeadersTopicPartitions(topic="a", partitions=[0, 1])]
        ),
        ["a-0", "a-1"],
    ),
    (
        deletions.DeleteRecordsRequest(
            topics=[
                deletions.DeleteRecordsTopic(
                    name="a", partitions=[deletions.DeleteRecordsPartition(partition_index=0, offset=17)]
                )
            ]
        ),
        ["a-0 before 17"],
    ),
    (DeleteGroupsRequest(groups_names=["g"]), ["g"]),
    (
        offsets.OffsetDeleteRequest(
            group_id="g",
            topics=[
                offsets.OffsetDeleteRequestTopic(
                    name="a", partitions=[offsets.OffsetDeleteRequestPartition(partition_index=3)]
                )
            ],
        ),
        ["'g': a-3"],
    ),
    (
        markers.WriteTxnMarkersRequest(
            markers=[
                markers.WritableTxnMarker(
                    producer_id=7, producer_epoch=0, transaction_result=False, coordinator_epoch=0,
                    topics=[markers.WritableTxnMarkerTopic(name="a", partition_indexes=[2])],
                )
            ]
        ),
        ["producer 7 aborts in a-2"],
    ),
]  # fmt: skip
BOTH_KINDS = configs.IncrementalAlterConfigsRequest(
    resources=[
        configs.IncrementalAlterConfigsResource(
            resource_type=kind,
            resource_name="1",
            configs=[configs.IncrementallyAlterableConfig(name="x", config_operation=operation, value="v")],
        )
        for kind, operation in ((4, 0), (8, 1))
    ]
)


def api_of(request) -> Api:
    return APIS[request.API_KEY]


@pytest.mark.parametrize(("request_", "subjects"), CASES, ids=lambda one: type(one).__name__)
def test_an_act_is_named_once_where_it_is_decided(request_, subjects) -> None:
    found = (act_at_broker(api_of(request_), request_), act_at_controller(api_of(request_), request_))
    decided_by_controller = Code.command in api_of(request_).code
    assert found[decided_by_controller] == Act(tuple(subjects), 0)
    assert found[not decided_by_controller] is None


def test_settings_of_loggers_are_the_brokers_and_all_others_the_controllers() -> None:
    api = api_of(BOTH_KINDS)
    assert act_at_broker(api, BOTH_KINDS) == Act(("loggers of broker '1': -x",), 0)
    assert act_at_controller(api, BOTH_KINDS) == Act(("broker '1': x",), 0)
    without_loggers = replace(BOTH_KINDS, resources=BOTH_KINDS.resources[:1])
    assert act_at_broker(api, without_loggers) is None


def test_a_trial_is_no_act() -> None:
    trial = CreateTopicsRequest(topics=[CreatableTopic(name="a")], validate_only=True)
    assert act_at_controller(api_of(trial), trial) is None
    assert act_at_broker(api_of(BOTH_KINDS), replace(BOTH_KINDS, validate_only=True)) is None


def test_each_request_that_needs_a_right_to_change_is_an_act_or_has_its_reason() -> None:
    changing = {
        api.name
        for api in ROWS
        if ListenerKind.clients in api.listeners
        and any(one.operation in CHANGING for right in api.rights for one in right.alternatives)
    }
    assert changing - ACTS.keys() == NOT_ADMINISTRATION.keys()


@pytest.mark.parametrize("name", sorted(ACTS))
def test_the_least_request_of_each_act_is_read(name) -> None:
    (api,) = (one for one in ROWS if one.name == name)
    act = (act_at_controller if Code.command in api.code else act_at_broker)(api, least_request(api.key))
    assert act is not None
