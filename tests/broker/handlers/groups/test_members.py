"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: from each version to the coordinator and back."""

import pytest

from sparklog.broker.handlers.groups import heartbeat, join_group, leave_group, sync_group
from sparklog.core.group.requests import (
    Assignment,
    Heartbeat,
    JoinGroup,
    JoinProtocol,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from sparklog.core.group.responses import (
    HeartbeatAnswer,
    JoinedMember,
    JoinGroupAnswer,
    LeaveGroupAnswer,
    LeftMember,
    SyncGroupAnswer,
)
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest
from sparklog.wire.messages.groups.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
)
from sparklog.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse
from sparklog.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

NONE = ErrorCode.none
LONG_NAME = "n" * 32_704


def join_request(**changes):
    fields = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\x01")],
    }
    return JoinGroupRequest(**(fields | changes))


# JoinGroup


@pytest.mark.parametrize("version", range(10))
def test_a_join_of_each_version_asks_for_what_that_version_can_do(handled, version):
    rebalance = {"rebalance_timeout_ms": 60_000} if version >= 1 else {}
    exchanged = handled(join_group.handle, join_request(**rebalance), version)
    suffix = exchanged.asked.member_id_suffix
    assert len(suffix) == 36
    assert exchanged.asked == JoinGroup(
        group_id="g",
        member_id="",
        client_id="client",
        client_host="/10.0.0.9",
        protocol_type="consumer",
        protocols=(JoinProtocol("range", b"\x01"),),
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000 if version >= 1 else 10_000,
        requires_member_id=version >= 4,
        supports_skip_assignment=version >= 9,
        member_id_suffix=suffix,
    )
    assert not exchanged.is_answered


def test_a_static_member_needs_no_member_id_before_it_joins(handled):
    asked = handled(join_group.handle, join_request(group_instance_id="i", reason="why")).asked
    assert (asked.group_instance_id, asked.requires_member_id, asked.reason) == ("i", False, "why")


def test_two_joins_get_different_suffixes_and_a_client_without_id_an_empty_one(handled):
    one, two = (handled(join_group.handle, join_request(), client_id=None).asked for _ in range(2))
    assert one.member_id_suffix != two.member_id_suffix
    assert one.client_id == ""


@pytest.mark.parametrize("version", range(10))
def test_a_leader_is_answered_with_the_members_of_its_generation(handled, version):
    joined = JoinGroupAnswer(
        NONE, "m", 4, "consumer", "range", "m", version >= 9, (JoinedMember("m", None, b"\x01"),)
    )
    response = handled(join_group.handle, join_request(), version).answer(joined)
    assert (response.error_code, response.generation_id, response.leader) == (NONE, 4, "m")
    assert (response.protocol_name, response.member_id) == ("range", "m")
    assert response.protocol_type == ("consumer" if version >= 7 else None)
    assert response.skip_assignment == (version >= 9)
    assert response.members == [JoinGroupResponseMember(member_id="m", metadata=b"\x01")]


@pytest.mark.parametrize("version", range(10))
def test_an_error_of_a_join_has_a_protocol_name_that_its_version_can_carry(handled, version):
    refused = JoinGroupAnswer(ErrorCode.member_id_required, "m-1")
    response = handled(join_group.handle, join_request(), version).answer(refused)
    assert (response.error_code, response.member_id) == (ErrorCode.member_id_required, "m-1")
    assert response.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"group_id": LONG_NAME}, ErrorCode.invalid_group_id),
        ({"group_instance_id": LONG_NAME}, ErrorCode.invalid_request),
        ({"protocol_type": LONG_NAME}, ErrorCode.invalid_request),
        ({"protocols": [JoinGroupRequestProtocol(name=LONG_NAME, metadata=b"")]}, ErrorCode.invalid_request),
    ],
)
def test_a_name_that_could_not_be_stored_is_refused_before_the_coordinator(handled, changes, error):
    exchanged = handled(join_group.handle, join_request(**changes))
    assert exchanged.response.error_code is error
    assert exchanged.coordinators.requests == []


def test_a_client_id_that_leaves_no_room_for_a_member_id_is_refused(handled):
    exchanged = handled(join_group.handle, join_request(), client_id=LONG_NAME)
    assert exchanged.response.error_code is ErrorCode.invalid_request


# SyncGroup


@pytest.mark.parametrize("version", range(6))
def test_a_leader_brings_all_assignments_and_gets_its_own(handled, version):
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    instance = {"group_instance_id": "i"} if version >= 3 else {}
    request = SyncGroupRequest(
        group_id="g",
        generation_id=4,
        member_id="m",
        assignments=[SyncGroupRequestAssignment(member_id="m", assignment=b"\x01")],
        **protocol,
        **instance,
    )
    exchanged = handled(sync_group.handle, request, version)
    assert exchanged.asked == SyncGroup(
        group_id="g",
        generation_id=4,
        member_id="m",
        group_instance_id=instance.get("group_instance_id"),
        protocol_type=protocol.get("protocol_type"),
        protocol=protocol.get("protocol_name"),
        assignments=(Assignment("m", b"\x01"),),
    )
    response = exchanged.answer(SyncGroupAnswer(NONE, "consumer", "range", b"\x01"))
    assert (response.error_code, response.assignment) == (NONE, b"\x01")
    assert response.protocol_name == ("range" if version >= 5 else None)


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_a_sync_of_version_5_that_names_no_protocol_is_inconsistent(handled, missing):
    names = {"protocol_type": "consumer", "protocol_name": "range"} | {missing: None}
    request = SyncGroupRequest(group_id="g", generation_id=4, member_id="m", **names)
    exchanged = handled(sync_group.handle, request)
    assert exchanged.response.error_code is ErrorCode.inconsistent_group_protocol
    assert exchanged.coordinators.requests == []


# Heartbeat


@pytest.mark.parametrize("version", range(5))
def test_a_heartbeat_is_passed_on_with_the_error_of_its_coordinator(handled, version):
    instance = {"group_instance_id": "i"} if version >= 3 else {}
    request = HeartbeatRequest(group_id="g", generation_id=4, member_id="m", **instance)
    exchanged = handled(heartbeat.handle, request, version)
    assert exchanged.asked == Heartbeat(
        group_id="g", generation_id=4, member_id="m", group_instance_id=instance.get("group_instance_id")
    )
    answered = exchanged.answer(HeartbeatAnswer(ErrorCode.rebalance_in_progress))
    assert answered.error_code is ErrorCode.rebalance_in_progress


# LeaveGroup


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("left", "error"),
    [
        (LeaveGroupAnswer(NONE, (LeftMember("m", None, NONE),)), NONE),
        (
            LeaveGroupAnswer(NONE, (LeftMember("m", None, ErrorCode.unknown_member_id),)),
            ErrorCode.unknown_member_id,
        ),
        (LeaveGroupAnswer(ErrorCode.not_coordinator), ErrorCode.not_coordinator),
    ],
)
def test_old_versions_let_one_member_leave_and_have_one_error(handled, version, left, error):
    exchanged = handled(leave_group.handle, LeaveGroupRequest(group_id="g", member_id="m"), version)
    assert exchanged.asked == LeaveGroup(group_id="g", members=(LeavingMember("m"),))
    response = exchanged.answer(left)
    assert (response.error_code, response.members) == (error, [])


@pytest.mark.parametrize("version", range(3, 6))
def test_several_members_leave_with_an_error_for_each(handled, version):
    reason = {"reason": "tired"} if version >= 5 else {}
    request = LeaveGroupRequest(
        group_id="g",
        members=[
            MemberIdentity(member_id="m", **reason),
            MemberIdentity(member_id="", group_instance_id="i"),
        ],
    )
    exchanged = handled(leave_group.handle, request, version)
    assert exchanged.asked.members == (
        LeavingMember("m", None, reason.get("reason")),
        LeavingMember("", "i"),
    )
    left = (LeftMember("m", None, NONE), LeftMember("", "i", ErrorCode.unknown_member_id))
    response = exchanged.answer(LeaveGroupAnswer(NONE, left))
    assert response.error_code is NONE
    assert response.members == [
        MemberResponse(member_id="m"),
        MemberResponse(member_id="", group_instance_id="i", error_code=ErrorCode.unknown_member_id),
    ]
