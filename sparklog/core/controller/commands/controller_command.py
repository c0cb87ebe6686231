"""What the controller is asked, and what it answers. The wire's versions and layouts are not known here.

A command is a request and its requester. It travels with a ``CommandId`` that its shell chose; the machine
returns the id with the result, at once or after writes and acknowledgements, exactly once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NewType

from sparklog.core.controller.commands.acl_commands import (
    AclResult,
    AclResults,
    CreateAcls,
    DeleteAcls,
    DescribeAcls,
    DescribedAcls,
)
from sparklog.core.controller.commands.broker_commands import (
    AllocateProducerIds,
    AllocateProducerIdsResult,
    ControlledShutdown,
    ControlledShutdownResult,
    LoseLogs,
    LoseLogsResult,
)
from sparklog.core.controller.commands.config_commands import (
    ChangeConfigs,
    ConfigResult,
    ConfigsResult,
)
from sparklog.core.controller.commands.operation_commands import (
    CancelOperation,
    OperateBrokers,
    OperationResult,
    RefusedOperation,
)
from sparklog.core.controller.commands.partition_commands import (
    AlterPartition,
    AlterPartitionResult,
    AlterReassignments,
    ElectLeaders,
    ListReassignments,
    PartitionsResult,
    ReassignmentsResult,
)
from sparklog.core.controller.commands.quota_commands import (
    AlterQuotas,
    DescribedQuotas,
    DescribeQuotas,
    QuotaResult,
    QuotasResult,
)
from sparklog.core.controller.commands.topic_commands import (
    AlteredSchema,
    AlterSchema,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DescribedSchema,
    DescribedSchemas,
    DescribeSchemas,
    TopicResult,
    TopicsResult,
)
from sparklog.core.controller.commands.user_commands import (
    AlterUsers,
    DescribedUsers,
    DescribeUsers,
    UserResult,
    UsersResult,
)
from sparklog.core.security.requester import Requester
from sparklog.model.errors import ErrorCode

CommandId = NewType("CommandId", int)

NAMES_SHOWN_MAX: Final = 3
NAME_CHARACTERS_MAX: Final = 60

Request = (
    AlterPartition
    | CreateTopics
    | DeleteTopics
    | CreatePartitions
    | ChangeConfigs
    | AlterQuotas
    | DescribeQuotas
    | CreateAcls
    | DeleteAcls
    | DescribeAcls
    | AlterUsers
    | DescribeUsers
    | DescribeSchemas
    | AlterSchema
    | ElectLeaders
    | AlterReassignments
    | ListReassignments
    | ControlledShutdown
    | AllocateProducerIds
    | LoseLogs
    | OperateBrokers
    | CancelOperation
    | RefusedOperation
)
Result = (
    AlterPartitionResult
    | TopicsResult
    | ConfigsResult
    | QuotasResult
    | DescribedQuotas
    | AclResults
    | DescribedAcls
    | UsersResult
    | DescribedUsers
    | DescribedSchemas
    | AlteredSchema
    | PartitionsResult
    | ReassignmentsResult
    | ControlledShutdownResult
    | AllocateProducerIdsResult
    | LoseLogsResult
    | OperationResult
)


@dataclass(frozen=True, slots=True)
class Command:
    """A request, and who sent it: a broker, or the client whose request a broker forwarded."""

    request: Request
    requester: Requester
    client_id: str = ""
    is_strict: bool = False
    """Whether the client understands THROTTLING_QUOTA_EXCEEDED."""
    asked_ms: int = 0
    """When it came, in milliseconds since 1970."""


def describe_change(request: Request) -> str | None:
    """What an administrator's request is to change, as part of a log line; None if it changes nothing.

    Values of settings are left out, because some are secrets.
    """
    match request:
        case CreateTopics(topics, _, False):
            return f"create topics {_some([topic.name for topic in topics])}"
        case DeleteTopics(doomed):
            return f"delete topics {_some([one.name or str(one.id) for one in doomed])}"
        case CreatePartitions(increases, _, False):
            return f"add partitions to topics {_some([one.topic for one in increases])}"
        case AlterSchema(topic, version):
            return f"change the columns of topic {_some([topic])} after version {version}"
        case ChangeConfigs(resources, False):
            return f"change settings of {_some([one.name or 'all brokers' for one in resources])}"
        case AlterQuotas(alterations, False):
            return f"change quotas of {_some([str(one.entity) for one in alterations])}"
        case CreateAcls(bindings):
            patterns = [one if isinstance(one, str) else str(one.pattern) for one in bindings]
            return f"create access rules of {_some(patterns)}"
        case DeleteAcls(filters):
            return f"delete the access rules that {len(filters)} filters take"
        case AlterUsers():
            return f"change passwords of {_some(list(map(repr, request.users())))}"
        case ElectLeaders(unclean, partitions):
            kind = "unclean" if unclean else "preferred"
            return f"elect {kind} leaders of {'all' if partitions is None else len(partitions)} partitions"
        case AlterReassignments(moves, throttle):
            limit = f" with at most {throttle} bytes a second" if throttle else ""
            return f"move {_some([str(move.partition) for move in moves])}{limit}"
        case OperateBrokers(kind, brokers, _, is_all):
            return f"{kind} {'all brokers' if is_all else 'brokers ' + _some(list(map(str, brokers)))}"
        case CancelOperation(operation):
            return f"cancel operation {operation}"
    return None


def _some(names: Sequence[str]) -> str:
    """The first few of ``names``, which anybody may have sent, in a form that is safe in a log."""
    shown = ", ".join(repr(name[:NAME_CHARACTERS_MAX]) for name in names[:NAMES_SHOWN_MAX])
    more = len(names) - NAMES_SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def refusal(request: Request, error: ErrorCode, message: str = "") -> Result:
    """The result of ``request`` that says ``error`` and nothing else."""
    match request:
        case AlterPartition():
            return AlterPartitionResult(error)
        case ControlledShutdown() | AllocateProducerIds() | LoseLogs():
            return _refusal_of_brokers(request, error)
        case CreateTopics(topics):
            return TopicsResult(tuple(TopicResult(topic.name, error, message) for topic in topics))
        case CreatePartitions(increases):
            return TopicsResult(tuple(TopicResult(one.topic, error, message) for one in increases))
        case ElectLeaders() | AlterReassignments():
            return PartitionsResult(error=error, message=message)
        case ListReassignments():
            return ReassignmentsResult(error=error, message=message)
        case ChangeConfigs(resources):
            return ConfigsResult(tuple(ConfigResult(one.kind, one.name, error, message) for one in resources))
        case CreateAcls() | DeleteAcls() | DescribeAcls():
            return _refusal_of_acls(request, error, message)
        case AlterQuotas() | DescribeQuotas() | AlterUsers() | DescribeUsers():
            return _refusal_of_entities(request, error, message)
        case OperateBrokers() | CancelOperation() | RefusedOperation():
            return OperationResult(error, message)
        case DescribeSchemas(names):
            return DescribedSchemas(tuple(DescribedSchema(name, error, message) for name in names))
        case AlterSchema():
            return AlteredSchema(error, message)
        case DeleteTopics(doomed):
            return TopicsResult(tuple(TopicResult(one.name or "", error, message, one.id) for one in doomed))


def _refusal_of_brokers(
    request: ControlledShutdown | AllocateProducerIds | LoseLogs, error: ErrorCode
) -> Result:
    match request:
        case ControlledShutdown():
            return ControlledShutdownResult(error)
        case AllocateProducerIds():
            return AllocateProducerIdsResult(error)
        case LoseLogs():
            return LoseLogsResult(error)


def _refusal_of_acls(
    request: CreateAcls | DeleteAcls | DescribeAcls, error: ErrorCode, message: str
) -> AclResults | DescribedAcls:
    if isinstance(request, DescribeAcls):
        return DescribedAcls(error=error, message=message)
    asked = request.bindings if isinstance(request, CreateAcls) else request.filters
    return AclResults(tuple(AclResult(error, message) for _ in asked))


def _refusal_of_entities(
    request: AlterQuotas | DescribeQuotas | AlterUsers | DescribeUsers, error: ErrorCode, message: str
) -> Result:
    match request:
        case AlterQuotas(alterations):
            return QuotasResult(tuple(QuotaResult(one.entity, error, message) for one in alterations))
        case DescribeQuotas():
            return DescribedQuotas(error=error, message=message)
        case AlterUsers():
            return UsersResult(tuple(UserResult(user, error, message) for user in request.users()))
        case DescribeUsers():
            return DescribedUsers(error=error, message=message)
