"""DescribeGroups, ListGroups and DeleteGroups: from each version to the coordinators and back."""

import pytest

from sparklog.broker.handlers.groups import delete_groups, describe_groups, list_groups
from sparklog.core.group.requests import DeleteGroup, DescribeGroup, ListGroups
from sparklog.core.group.responses import (
    DeleteGroupAnswer,
    DescribedMember,
    DescribeGroupAnswer,
    ListedGroup,
    ListGroupsAnswer,
)
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.groups.delete_groups import DeleteGroupsRequest
from sparklog.wire.messages.groups.describe_groups import (
    OPERATIONS_NOT_ASKED,
    DescribedGroupMember,
    DescribeGroupsRequest,
)
from sparklog.wire.messages.groups.list_groups import ListGroupsRequest

NONE = ErrorCode.none
READ_DELETE_DESCRIBE = 1 << 3 | 1 << 6 | 1 << 8


@pytest.mark.parametrize("version", range(6))
def test_groups_are_described_in_the_order_in_which_they_are_named(handled, version):
    exchanged = handled(describe_groups.handle, DescribeGroupsRequest(groups=["g", "gone"]), version)
    assert exchanged.coordinators.requests == [DescribeGroup(group_id="g"), DescribeGroup(group_id="gone")]
    member = DescribedMember("m", "i", "client", "/10.0.0.9", b"\x01", b"\x02")
    g, gone = exchanged.answer(
        DescribeGroupAnswer(NONE, "g", "Stable", "consumer", "range", (member,)),
        DescribeGroupAnswer(NONE, "gone", "Dead"),
    ).groups
    assert (g.group_id, g.group_state, g.protocol_type, g.protocol_data) == (
        "g",
        "Stable",
        "consumer",
        "range",
    )
    assert g.members == [
        DescribedGroupMember(
            member_id="m",
            group_instance_id="i" if version >= 4 else None,
            client_id="client",
            client_host="/10.0.0.9",
            member_metadata=b"\x01",
            member_assignment=b"\x02",
        )
    ]
    assert (gone.group_id, gone.group_state, gone.error_code, gone.members) == ("gone", "Dead", NONE, [])
    assert g.authorized_operations == OPERATIONS_NOT_ASKED


@pytest.mark.parametrize("version", range(3, 6))
def test_the_operations_on_a_group_are_described_if_asked_for(handled, version):
    request = DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True)
    g, h = (
        handled(describe_groups.handle, request, version)
        .answer(
            DescribeGroupAnswer(NONE, "g", "Empty"),
            DescribeGroupAnswer(ErrorCode.not_coordinator, "h"),
        )
        .groups
    )
    assert g.authorized_operations == READ_DELETE_DESCRIBE
    assert (h.authorized_operations, h.error_code) == (OPERATIONS_NOT_ASKED, ErrorCode.not_coordinator)


@pytest.mark.parametrize("version", range(5))
def test_the_groups_of_all_coordinators_are_listed_together(handled, version):
    states = {"states_filter": ["Stable", "empty"]} if version >= 4 else {}
    exchanged = handled(list_groups.handle, ListGroupsRequest(**states), version)
    assert exchanged.asked == ListGroups(states=frozenset(states.get("states_filter", ())))
    response = exchanged.answer(
        [
            ListGroupsAnswer(NONE, (ListedGroup("g", "consumer", "Stable"),)),
            ListGroupsAnswer(ErrorCode.coordinator_load_in_progress),
            ListGroupsAnswer(NONE, (ListedGroup("h", "", "Empty"),)),
        ]
    )
    assert response.error_code is ErrorCode.coordinator_load_in_progress
    assert [(group.group_id, group.protocol_type) for group in response.groups] == [
        ("g", "consumer"),
        ("h", ""),
    ]
    assert [group.group_state for group in response.groups] == (
        ["Stable", "Empty"] if version >= 4 else ["", ""]
    )


def test_a_broker_that_coordinates_nothing_lists_no_groups(handled):
    response = handled(list_groups.handle, ListGroupsRequest()).answer([])
    assert (response.error_code, response.groups) == (NONE, [])


@pytest.mark.parametrize("version", range(3))
def test_each_group_is_deleted_once_with_its_own_error(handled, version):
    exchanged = handled(delete_groups.handle, DeleteGroupsRequest(groups_names=["g", "h", "g"]), version)
    assert exchanged.coordinators.requests == [DeleteGroup(group_id="g"), DeleteGroup(group_id="h")]
    results = exchanged.answer(DeleteGroupAnswer(ErrorCode.non_empty_group), DeleteGroupAnswer(NONE)).results
    assert [(one.group_id, one.error_code) for one in results] == [
        ("g", ErrorCode.non_empty_group),
        ("h", NONE),
    ]


def test_to_delete_or_describe_no_group_is_answered_at_once(handled):
    assert handled(delete_groups.handle, DeleteGroupsRequest()).response.results == []
    assert handled(describe_groups.handle, DescribeGroupsRequest()).response.groups == []
