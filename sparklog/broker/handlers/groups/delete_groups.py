"""DeleteGroups: remove groups that have no members, with their offsets; each group has its own error."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask_coordinator_of_each, without_repetitions
from sparklog.core.group.requests import DeleteGroup
from sparklog.wire.messages.groups.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(call: Call, request: DeleteGroupsRequest) -> None:
    group_ids = without_repetitions(request.groups_names)
    ask_coordinator_of_each(
        call,
        [DeleteGroup(group_id=group_id) for group_id in group_ids],
        lambda responses: DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=group_id, error_code=response.error)
                for group_id, response in zip(group_ids, responses, strict=True)
            ]
        ),
    )
