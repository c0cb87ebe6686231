"""DescribeGroups: state and members of groups; a group that does not exist is Dead, without an error."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask_coordinator_of_each
from sparklog.core.group.requests import DescribeGroup
from sparklog.core.group.responses import DescribedMember, DescribeGroupAnswer
from sparklog.core.security.acl import ResourceType
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.groups.describe_groups import (
    OPERATIONS_NOT_ASKED,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def handle(call: Call, request: DescribeGroupsRequest) -> None:
    describes = [DescribeGroup(group_id=group_id) for group_id in request.groups]

    def operations(group_id: str) -> int:
        if not request.include_authorized_operations:
            return OPERATIONS_NOT_ASKED
        return call.operations(ResourceType.group, group_id)

    ask_coordinator_of_each(
        call,
        describes,
        lambda responses: DescribeGroupsResponse(
            groups=[_group(one, operations(one.group_id)) for one in responses]
        ),
    )


def _group(described: DescribeGroupAnswer, operations: int) -> DescribedGroup:
    return DescribedGroup(
        error_code=described.error,
        group_id=described.group_id,
        group_state=described.state,
        protocol_type=described.protocol_type,
        protocol_data=described.protocol,
        members=[_member(one) for one in described.members],
        authorized_operations=operations if described.error is ErrorCode.none else OPERATIONS_NOT_ASKED,
    )


def _member(member: DescribedMember) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
    )
