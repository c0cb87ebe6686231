"""Access rules: requests as commands, results as responses. Numbers are Kafka's: 0 is unknown, 1 is any."""

import enum
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TypeVar

from sparklog.core.controller.commands.acl_commands import (
    AclBinding,
    AclFilter,
    AclResults,
    CreateAcls,
    DeleteAcls,
    DescribeAcls,
    DescribedAcls,
    PatternMatch,
)
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule
from sparklog.wire.messages.security import create_acls as create
from sparklog.wire.messages.security import delete_acls as delete
from sparklog.wire.messages.security import describe_acls as describe

ANY: Final = 1
MATCH: Final = 2

E = TypeVar("E", bound=enum.IntEnum)


def create_acls(request: create.CreateAclsRequest) -> CreateAcls:
    return CreateAcls(tuple(_binding(one) for one in request.creations))


def _binding(asked: create.AclCreation) -> AclBinding | str:
    try:
        pattern = Pattern(
            ResourceType(asked.resource_type), asked.resource_name, PatternType(asked.resource_pattern_type)
        )
        operation, permission = AclOperation(asked.operation), Permission(asked.permission_type)
    except ValueError as error:
        return f"no rule has this: {error}"
    return AclBinding(pattern, Rule(asked.principal, operation, permission, asked.host))


def create_acls_response(results: AclResults) -> create.CreateAclsResponse:
    return create.CreateAclsResponse(
        results=[
            create.AclCreationResult(error_code=one.error, error_message=one.message or None)
            for one in results.results
        ]
    )


def delete_acls(request: delete.DeleteAclsRequest) -> DeleteAcls:
    return DeleteAcls(tuple(_filter(one) for one in request.filters))


def delete_acls_response(results: AclResults) -> delete.DeleteAclsResponse:
    return delete.DeleteAclsResponse(
        filter_results=[
            delete.DeleteAclsFilterResult(
                error_code=one.error,
                error_message=one.message or None,
                matching_acls=[_matching(binding) for binding in one.deleted],
            )
            for one in results.results
        ]
    )


def _matching(binding: AclBinding) -> delete.DeleteAclsMatchingAcl:
    pattern, rule = binding.pattern, binding.rule
    return delete.DeleteAclsMatchingAcl(
        resource_type=pattern.resource,
        resource_name=pattern.name,
        pattern_type=pattern.kind,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def describe_acls(request: describe.DescribeAclsRequest) -> DescribeAcls:
    return DescribeAcls(_filter(request))


def describe_acls_response(described: DescribedAcls) -> describe.DescribeAclsResponse:
    return describe.DescribeAclsResponse(
        error_code=described.error,
        error_message=described.message or None,
        resources=list(_resources(described.bindings)),
    )


def _resources(bindings: Iterable[AclBinding]) -> Iterator[describe.DescribeAclsResource]:
    for pattern, of_pattern in groupby(bindings, key=lambda one: one.pattern):
        yield describe.DescribeAclsResource(
            resource_type=pattern.resource,
            resource_name=pattern.name,
            pattern_type=pattern.kind,
            acls=[
                describe.AclDescription(
                    principal=one.rule.principal,
                    host=one.rule.host,
                    operation=one.rule.operation,
                    permission_type=one.rule.permission,
                )
                for one in of_pattern
            ],
        )


def _filter(asked: describe.DescribeAclsRequest | delete.DeleteAclsFilter) -> AclFilter | str:
    try:
        return AclFilter(
            _unless_any(ResourceType, asked.resource_type_filter),
            asked.resource_name_filter,
            _kind(asked.pattern_type_filter),
            asked.principal_filter,
            asked.host_filter,
            _unless_any(AclOperation, asked.operation),
            _unless_any(Permission, asked.permission_type),
        )
    except ValueError as error:
        return f"no rule has this: {error}"


def _unless_any(numbers: type[E], number: int) -> E | None:
    return None if number == ANY else numbers(number)


def _kind(number: int) -> PatternMatch:
    if number == ANY:
        return "any"
    return "match" if number == MATCH else PatternType(number)
