"""ListGroups: the groups that this broker coordinates.

While a coordinator of this broker reads its log, the answer has the groups of the others, and
COORDINATOR_LOAD_IN_PROGRESS.
"""

from sparklog.broker.call import Call
from sparklog.core.group.requests import ListGroups
from sparklog.core.group.responses import ListGroupsAnswer
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC
from sparklog.wire.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(call: Call, request: ListGroupsRequest) -> None:
    call.broker.coordinators.submit_to_every_host(
        GROUP_OFFSETS_TOPIC,
        ListGroups(states=frozenset(request.states_filter)),
        lambda responses: call.carefully(lambda: call.reply(_response(responses))),
    )


def _response(responses: list[ListGroupsAnswer]) -> ListGroupsResponse:
    errors = (one.error for one in responses if one.error is not ErrorCode.none)
    return ListGroupsResponse(
        error_code=next(errors, ErrorCode.none),
        groups=[
            ListedGroup(group_id=group.group_id, protocol_type=group.protocol_type, group_state=group.state)
            for one in responses
            for group in one.groups
        ],
    )
