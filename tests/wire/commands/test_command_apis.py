"""What the controller decides on, from request to response."""

import uuid

import pytest

from sparklog.core.apis.api import Code
from sparklog.core.apis.api_table import ROWS
from sparklog.core.controller.commands.controller_command import refusal
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.config import BrokerConfig
from sparklog.wire.codec import message_class
from sparklog.wire.commands.command_apis import COMMAND_APIS, DEFAULT_TIMEOUT_MS, refuse
from sparklog.wire.messages.admin.alter_configs import AlterConfigsRequest, AlterConfigsResource
from sparklog.wire.messages.admin.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from sparklog.wire.messages.admin.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sparklog.wire.messages.admin.create_topics import CreatableTopic, CreateTopicsRequest
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sparklog.wire.messages.admin.elect_leaders import ElectLeadersRequest
from sparklog.wire.messages.admin.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from sparklog.wire.messages.admin.list_partition_reassignments import ListPartitionReassignmentsRequest
from sparklog.wire.messages.control.allocate_producer_ids import AllocateProducerIdsRequest
from tests.wire.least_request import least_request

TOPIC_ID = uuid.UUID(int=7)
REASON = "no controller answered"


def test_the_conversions_are_exactly_those_that_the_rows_say_in_the_rows_order():
    assert list(COMMAND_APIS) == [api.key for api in ROWS if Code.command in api.code]


@pytest.mark.parametrize(
    ("request_", "errors"),
    [
        (CreateTopicsRequest(topics=[CreatableTopic(name="t")]), lambda answer: answer.topics),
        (
            CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=2)]),
            lambda answer: answer.results,
        ),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), lambda answer: answer.responses),
        (DeleteTopicsRequest(topic_names=["t"]), lambda answer: answer.responses),
        (
            AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=2, resource_name="t")]),
            lambda answer: answer.responses,
        ),
        (
            IncrementalAlterConfigsRequest(
                resources=[IncrementalAlterConfigsResource(resource_type=2, resource_name="t")]
            ),
            lambda answer: answer.responses,
        ),
    ],
)
def test_a_refusal_names_everything_that_was_asked_for(request_, errors, answered):
    (refused,) = errors(answered(refuse(request_, ErrorCode.request_timed_out, REASON, BrokerConfig())))
    name = getattr(refused, "name", None) or refused.resource_name
    assert (name, refused.error_code, refused.error_message) == ("t", ErrorCode.request_timed_out, REASON)


@pytest.mark.parametrize(
    "request_",
    [
        ElectLeadersRequest(topic_partitions=None),
        AlterPartitionReassignmentsRequest(topics=[]),
        ListPartitionReassignmentsRequest(topics=None),
        AllocateProducerIdsRequest(broker_id=1, broker_epoch=2),
    ],
)
def test_a_refusal_of_a_whole_request_stands_in_its_response(request_, answered):
    response = answered(refuse(request_, ErrorCode.request_timed_out, REASON, BrokerConfig()))
    assert response.error_code == ErrorCode.request_timed_out


def test_the_refusal_of_a_deletion_by_id_names_the_id(answered):
    request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=TOPIC_ID)])
    (refused,) = answered(refuse(request, ErrorCode.request_timed_out, REASON, BrokerConfig())).responses
    assert (refused.name, refused.topic_id) == (None, TOPIC_ID)


@pytest.mark.parametrize("key", COMMAND_APIS)
def test_every_row_makes_a_response_of_its_own_api(key, answered):
    request = least_request(key)
    api = COMMAND_APIS[key]
    result = refusal(api.to_request(request, lambda: TOPIC_ID), ErrorCode.not_controller)
    assert type(api.to_response(result, BrokerConfig())) is message_class(key, "response")


def test_a_request_waits_as_long_as_it_says_or_a_little_less_than_clients_do():
    def timeout_ms(request):
        return COMMAND_APIS[request.API_KEY].timeout_ms(request)

    assert timeout_ms(CreateTopicsRequest(topics=[], timeout_ms=7)) == 7
    assert timeout_ms(AlterConfigsRequest(resources=[])) == DEFAULT_TIMEOUT_MS
