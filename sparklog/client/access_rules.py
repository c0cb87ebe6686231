"""Access rules of a cluster with an authorizer: list, create, delete."""

from collections.abc import Iterable, Sequence
from typing import Final

from sparklog.client.cluster import ClusterClient
from sparklog.core.controller.commands.acl_commands import AclBinding, AclFilter
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.wire.messages.security.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from sparklog.wire.messages.security.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from sparklog.wire.messages.security.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

ANY: Final = 1
MATCH: Final = 2
_AGAIN: Final = (ErrorCode.not_controller, ErrorCode.network_exception)

_Answer = AclCreationResult | DeleteAclsFilterResult | DescribeAclsResponse
_RuleOnWire = AclDescription | DeleteAclsMatchingAcl


def list_rules(cluster: ClusterClient, filter_: AclFilter) -> list[AclBinding]:
    """The rules that the filter takes. Raises KafkaError, SECURITY_DISABLED without an authorizer."""
    request = DescribeAclsRequest(
        resource_type_filter=ANY if filter_.resource is None else filter_.resource,
        resource_name_filter=filter_.name,
        pattern_type_filter=_kind(filter_),
        principal_filter=filter_.principal,
        host_filter=filter_.host,
        operation=ANY if filter_.operation is None else filter_.operation,
        permission_type=ANY if filter_.permission is None else filter_.permission,
    )
    response: DescribeAclsResponse = cluster.call_controller(request, lambda answer: _retriable([answer]))
    _check([response])
    return [
        _binding(found.resource_type, found.resource_name, found.pattern_type, one)
        for found in response.resources
        for one in found.acls
    ]


def create_rules(cluster: ClusterClient, bindings: Sequence[AclBinding]) -> None:
    """Create all rules, or raise KafkaError with the first reason not to; the others may be there then."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=one.pattern.resource,
                resource_name=one.pattern.name,
                resource_pattern_type=one.pattern.kind,
                principal=one.rule.principal,
                host=one.rule.host,
                operation=one.rule.operation,
                permission_type=one.rule.permission,
            )
            for one in bindings
        ]
    )
    response: CreateAclsResponse = cluster.call_controller(request, lambda answer: _retriable(answer.results))
    _check(response.results)


def delete_rules(cluster: ClusterClient, bindings: Sequence[AclBinding]) -> list[AclBinding]:
    """Delete these rules; returns those that were there. Raises KafkaError."""
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=one.pattern.resource,
                resource_name_filter=one.pattern.name,
                pattern_type_filter=one.pattern.kind,
                principal_filter=one.rule.principal,
                host_filter=one.rule.host,
                operation=one.rule.operation,
                permission_type=one.rule.permission,
            )
            for one in bindings
        ]
    )
    response: DeleteAclsResponse = cluster.call_controller(
        request, lambda answer: _retriable(answer.filter_results)
    )
    _check(response.filter_results)
    return [
        _binding(one.resource_type, one.resource_name, one.pattern_type, one)
        for result in response.filter_results
        for one in result.matching_acls
    ]


def _kind(filter_: AclFilter) -> int:
    if isinstance(filter_.kind, PatternType):
        return filter_.kind
    return MATCH if filter_.kind == "match" else ANY


def _binding(resource_type: int, name: str, kind: int, rule: _RuleOnWire) -> AclBinding:
    return AclBinding(
        Pattern(ResourceType(resource_type), name, PatternType(kind)),
        Rule(rule.principal, AclOperation(rule.operation), Permission(rule.permission_type), rule.host),
    )


def _retriable(answers: Iterable[_Answer]) -> ErrorCode:
    """The code for which the whole request is sent again."""
    found = [one.error_code for one in answers]
    return found[0] if found and all(code in _AGAIN for code in found) else ErrorCode.none


def _check(answers: Iterable[_Answer]) -> None:
    for one in answers:
        if one.error_code is not ErrorCode.none:
            raise KafkaError(one.error_code, one.error_message or "")
