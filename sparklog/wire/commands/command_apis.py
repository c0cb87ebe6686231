"""The requests that the controller decides on: each as a command's request, and each result as a response.

The controller serves them. A broker forwards those of clients. While no controller can be asked, it answers
them with ``refuse``, so that a refusal has the same layout from both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sparklog.core.apis.api import NEVER
from sparklog.core.apis.api_table import by_key
from sparklog.core.controller.commands.controller_command import Request, refusal
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId
from sparklog.model.settings.config import BrokerConfig
from sparklog.wire.codec import Message
from sparklog.wire.commands import (
    acl_requests,
    broker_requests,
    config_requests,
    operation_requests,
    partition_requests,
    quota_requests,
    topic_requests,
    user_requests,
)

NewTopicId = Callable[[], TopicId]

DEFAULT_TIMEOUT_MS: Final = 25_000
"""For requests that name no time-out of their own; below the 30 s that clients wait."""


@dataclass(frozen=True, slots=True)
class CommandApi:
    """How one API's request becomes what the controller is asked, and its result a response.

    A topic that is created needs an id, and is shown with all its settings; the other APIs need neither.
    """

    to_request: Callable[[Any, NewTopicId], Request]
    to_response: Callable[[Any, BrokerConfig], Message]
    timeout_ms: Callable[[Any], int]
    """How long the requester waits."""
    strict_from: int = NEVER
    """The first version whose clients understand THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def _row(
    to_request: Callable[[Any], Request],
    to_response: Callable[[Any], Message],
    timeout_ms: Callable[[Any], int] = lambda _: DEFAULT_TIMEOUT_MS,
    strict_from: int = NEVER,
) -> CommandApi:
    return CommandApi(
        lambda request, _: to_request(request), lambda result, _: to_response(result), timeout_ms, strict_from
    )


def _own_timeout_ms(request: Any) -> int:
    timeout_ms: int = request.timeout_ms
    return timeout_ms


COMMAND_APIS: Final[Mapping[int, CommandApi]] = by_key(
    {
        "ControlledShutdown": _row(
            broker_requests.controlled_shutdown, broker_requests.controlled_shutdown_response
        ),
        "CreateTopics": CommandApi(
            topic_requests.create_topics,
            topic_requests.create_topics_response,
            _own_timeout_ms,
            strict_from=6,
        ),
        "DeleteTopics": _row(
            topic_requests.delete_topics,
            topic_requests.delete_topics_response,
            _own_timeout_ms,
            strict_from=5,
        ),
        "DescribeAcls": _row(acl_requests.describe_acls, acl_requests.describe_acls_response),
        "CreateAcls": _row(acl_requests.create_acls, acl_requests.create_acls_response),
        "DeleteAcls": _row(acl_requests.delete_acls, acl_requests.delete_acls_response),
        "AlterConfigs": _row(config_requests.alter_configs, config_requests.alter_configs_response),
        "CreatePartitions": _row(
            topic_requests.create_partitions,
            topic_requests.create_partitions_response,
            _own_timeout_ms,
            strict_from=3,
        ),
        "ElectLeaders": _row(
            partition_requests.elect_leaders, partition_requests.elect_leaders_response, _own_timeout_ms
        ),
        "IncrementalAlterConfigs": _row(
            config_requests.incremental_alter_configs, config_requests.incremental_alter_configs_response
        ),
        "AlterPartitionReassignments": _row(
            partition_requests.alter_reassignments,
            partition_requests.alter_reassignments_response,
            _own_timeout_ms,
        ),
        "ListPartitionReassignments": _row(
            partition_requests.list_reassignments,
            partition_requests.list_reassignments_response,
            _own_timeout_ms,
        ),
        "DescribeClientQuotas": _row(quota_requests.describe_quotas, quota_requests.describe_quotas_response),
        "AlterClientQuotas": _row(quota_requests.alter_quotas, quota_requests.alter_quotas_response),
        "DescribeUserScramCredentials": _row(
            user_requests.describe_users, user_requests.describe_users_response
        ),
        "AlterUserScramCredentials": _row(user_requests.alter_users, user_requests.alter_users_response),
        "AlterPartition": _row(
            partition_requests.alter_partition, partition_requests.alter_partition_response
        ),
        "AllocateProducerIds": _row(
            broker_requests.allocate_producer_ids, broker_requests.allocate_producer_ids_response
        ),
        "AssignReplicasToDirs": _row(broker_requests.lose_logs, broker_requests.lose_logs_response),
        "OperateBrokers": _row(
            operation_requests.operate_brokers, operation_requests.operate_brokers_response
        ),
        "DescribeSchema": _row(topic_requests.describe_schema, topic_requests.describe_schema_response),
        "AlterSchema": _row(topic_requests.alter_schema, topic_requests.alter_schema_response),
    }
)


def refuse(message: Message, error: ErrorCode, reason: str, config: BrokerConfig) -> Message:
    """The response to the request ``message`` that says ``error`` about everything that it names."""
    api = COMMAND_APIS[message.API_KEY]
    request = api.to_request(message, lambda: NO_TOPIC_ID)
    return api.to_response(refusal(request, error, reason), config)
