"""One member's conversation with its coordinator, question by question."""

from collections.abc import Callable
from typing import Any

import pytest

from sparklog.client.errors import SecurityRefused
from sparklog.client.group.assignors.assignor import RebalanceProtocol
from sparklog.client.group.handover import Assigned, Handover, Identity, Lost, Revoked
from sparklog.client.group.membership import Membership
from sparklog.client.group.settings import MemberSettings
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.loops import Await, CallBroker, Pause, Question, go_on
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.wire.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from sparklog.wire.messages.discovery.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from sparklog.wire.messages.discovery.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from sparklog.wire.messages.groups.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from sparklog.wire.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from sparklog.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

ANY_BROKER = Node(BrokerId(-1), "any", 9092)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Hands:
    """A clock that a test sets."""

    now_ms = 1_000_000

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


class Conversation:
    """Drives one member's loop: ``expect`` looks at its question, ``answer`` gives the outcome."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Hands()
        self.handover = Handover(self.clock)
        self.settings = MemberSettings(**{"group_id": "g", "topics": frozenset({"t"}), **settings})
        self.loop = Membership(self.settings, self.handover, lambda: ANY_BROKER).life()
        self.question: Question | None = go_on(self.loop)

    def call(self, kind: type[Any], to: str = "c1") -> Any:
        """The request that the member sends now."""
        assert isinstance(self.question, CallBroker), self.question
        assert isinstance(self.question.message, kind), self.question.message
        assert self.question.node.host == to
        return self.question.message

    def answer(self, outcome: Any = None, error: Exception | None = None) -> None:
        self.question = go_on(self.loop, outcome, error)

    def find(self, host: str = "c1", *, error: ErrorCode = ErrorCode.none) -> None:
        assert self.call(FindCoordinatorRequest, "any").coordinator_keys == ["g"]
        found = Coordinator(key="g", node_id=1, host=host, port=9092, error_code=error)
        self.answer(FindCoordinatorResponse(coordinators=[found]))

    def join(self, error: ErrorCode = ErrorCode.none, to: str = "c1", **answer: Any) -> JoinGroupRequest:
        request: JoinGroupRequest = self.call(JoinGroupRequest, to)
        fields = {"member_id": "m1", "generation_id": 1, "leader": "other", "protocol_name": "range"}
        self.answer(JoinGroupResponse(error_code=error, **{**fields, **answer}))
        return request

    def sync(self, *partitions: TopicPartition, error: ErrorCode = ErrorCode.none) -> SyncGroupRequest:
        request: SyncGroupRequest = self.call(SyncGroupRequest)
        assignment = encode_assignment(Assignment(partitions))
        self.answer(SyncGroupResponse(error_code=error, assignment=assignment))
        return request

    def beat(self, error: ErrorCode = ErrorCode.none, to: str = "c1") -> HeartbeatRequest:
        """Let the interval pass and answer the heartbeat."""
        assert isinstance(self.question, Await)
        self.answer(False)
        request: HeartbeatRequest = self.call(HeartbeatRequest, to)
        self.answer(HeartbeatResponse(error_code=error))
        return request

    def pause(self) -> None:
        assert isinstance(self.question, Pause)
        self.answer()

    def take(self) -> Any:
        """As the application: the next change, taken."""
        self.handover.note_poll()
        change = self.handover.next_change()
        if change is not None:
            self.handover.take()
        return change

    def in_group(self, *partitions: TopicPartition, **join: Any) -> "Conversation":
        """Find, join and sync; the application has taken the partitions."""
        self.find()
        self.join(**join)
        self.sync(*partitions)
        assert self.take() == Assigned(frozenset(partitions), join.get("generation_id", 1))
        return self


def topics_answer(**counts: int) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                name=name,
                partitions=[
                    MetadataResponsePartition(partition_index=number, leader_id=1) for number in range(count)
                ],
            )
            for name, count in counts.items()
        ]
    )


def member(name: str, *topics: str) -> JoinGroupResponseMember:
    return JoinGroupResponseMember(member_id=name, metadata=encode_subscription(Subscription(topics)))


def test_a_member_joins_with_the_id_that_the_coordinator_gives_it() -> None:
    talk = Conversation()
    talk.find()
    assert talk.join(ErrorCode.member_id_required, member_id="m7").member_id == ""
    assert talk.handover.identity == Identity("m7", -1)
    request = talk.join(member_id="m7", generation_id=3)
    assert (request.member_id, request.protocol_type) == ("m7", "consumer")
    assert [one.name for one in request.protocols] == ["range", "cooperative-sticky"]
    assert decode_subscription(request.protocols[0].metadata).topics == ("t",)
    synced = talk.sync(T0)
    assert (synced.generation_id, synced.member_id, synced.assignments) == (3, "m7", [])
    assert talk.handover.identity == Identity("m7", 3)
    assert talk.take() == Assigned(frozenset({T0}), 3)
    beat = talk.beat()
    assert (beat.generation_id, beat.member_id) == (3, "m7")


def test_the_leader_assigns_with_the_assignor_that_the_group_agreed_on() -> None:
    talk = Conversation()
    talk.find()
    talk.join(leader="m1", members=[member("m1", "t"), member("m2", "t", "u")])
    request = talk.call(MetadataRequest, "any")
    assert [topic.name for topic in request.topics] == ["t", "u"]
    assert not request.allow_auto_topic_creation
    talk.answer(topics_answer(t=2, u=1))
    sent = {one.member_id: decode_assignment(one.assignment).partitions for one in talk.sync(T0).assignments}
    assert sent == {"m1": (T0,), "m2": (T1, TopicPartition("u", 0))}


def test_a_leader_that_shall_skip_the_assignment_sends_none() -> None:
    talk = Conversation(group_instance_id="i")
    talk.find()
    talk.join(leader="m1", skip_assignment=True, members=[member("m1", "t")])
    talk.call(MetadataRequest, "any")
    talk.answer(topics_answer(t=2))
    assert talk.sync(T0).assignments == []


def test_a_member_with_unreadable_metadata_gets_nothing_and_stops_nobody() -> None:
    talk = Conversation()
    talk.find()
    broken = JoinGroupResponseMember(member_id="m2", metadata=b"\x00")
    talk.join(leader="m1", members=[member("m1", "t"), broken])
    talk.answer(topics_answer(t=1))
    sent = {one.member_id: decode_assignment(one.assignment).partitions for one in talk.sync(T0).assignments}
    assert sent == {"m1": (T0,), "m2": ()}


def test_an_eager_member_gives_everything_up_before_it_joins_again_and_beats_meanwhile() -> None:
    talk = Conversation().in_group(T0, T1)
    talk.beat(ErrorCode.rebalance_in_progress)
    talk.beat(ErrorCode.rebalance_in_progress)  # the application is still busy
    assert talk.take() == Revoked(frozenset({T0, T1}))
    assert isinstance(talk.question, Await)
    talk.answer(True)
    assert decode_subscription(talk.join(generation_id=2).protocols[0].metadata).owned == ()
    talk.sync(T1)
    assert talk.take() == Assigned(frozenset({T1}), 2)


def test_a_cooperative_member_keeps_its_partitions_and_joins_again_after_giving_some_up() -> None:
    talk = Conversation(assignors=("cooperative-sticky",)).in_group(
        T0, T1, protocol_name="cooperative-sticky"
    )
    talk.beat(ErrorCode.rebalance_in_progress)
    assert talk.handover.next_change() is None
    subscription = decode_subscription(talk.join(generation_id=2).protocols[0].metadata)
    assert (subscription.owned, subscription.generation_id) == ((T0, T1), 1)
    talk.sync(T0)
    assert talk.take() == Revoked(frozenset({T1}))
    talk.answer(True)
    assert talk.take() == Assigned(frozenset(), 2)
    request = talk.join(generation_id=3)
    assert decode_subscription(request.protocols[0].metadata).owned == (T0,)
    assert request.reason == "partitions were given up for other members"
    talk.sync(T0)
    assert isinstance(talk.question, Await)


def test_partitions_are_claimed_with_the_generation_that_assigned_them() -> None:
    talk = Conversation(assignors=("cooperative-sticky",)).in_group(T0, protocol_name="cooperative-sticky")
    talk.beat(ErrorCode.rebalance_in_progress)
    talk.join(generation_id=2)
    talk.sync(error=ErrorCode.rebalance_in_progress)
    talk.pause()
    subscription = decode_subscription(talk.join(generation_id=3).protocols[0].metadata)
    assert (subscription.owned, subscription.generation_id) == ((T0,), 1)
    assert subscription.user_data == (1).to_bytes(4)


@pytest.mark.parametrize(
    ("code", "member_id"), [(ErrorCode.unknown_member_id, ""), (ErrorCode.illegal_generation, "m1")]
)
def test_a_member_that_the_coordinator_does_not_count_loses_its_partitions(
    code: ErrorCode, member_id: str
) -> None:
    talk = Conversation().in_group(T0)
    talk.beat(code)
    assert talk.handover.identity == Identity(member_id, -1)
    assert talk.take() == Lost(frozenset({T0}))
    assert talk.call(JoinGroupRequest).member_id == member_id


def test_a_member_follows_its_coordinator_and_keeps_its_partitions() -> None:
    talk = Conversation().in_group(T0)
    talk.beat(ErrorCode.not_coordinator)
    talk.pause()
    assert isinstance(talk.question, Await)
    talk.answer(False)
    talk.find("c2", error=ErrorCode.coordinator_not_available)
    talk.pause()
    talk.answer(False)
    talk.find("c2")
    talk.call(HeartbeatRequest, "c2")
    talk.answer(error=ConnectionError("gone"))
    talk.pause()
    talk.answer(False)
    talk.find("c3")
    talk.call(HeartbeatRequest, "c3")
    talk.answer(HeartbeatResponse())
    assert talk.handover.next_change() is None
    assert talk.handover.identity == Identity("m1", 1)


def test_while_the_coordinator_loads_the_member_says_what_it_waits_for() -> None:
    talk = Conversation()
    talk.find()
    talk.join(ErrorCode.coordinator_load_in_progress)
    assert talk.handover.obstacle == "the coordinator of group 'g' says coordinator_load_in_progress"
    talk.pause()
    talk.join()
    talk.sync(error=ErrorCode.rebalance_in_progress)
    talk.pause()
    talk.join()
    talk.sync(T0)
    assert talk.handover.obstacle == ""


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (ErrorCode.fenced_instance_id, "same group.instance.id"),
        (ErrorCode.inconsistent_group_protocol, "no assignor that this one knows"),
        (ErrorCode.group_max_size_reached, "group.max.size"),
        (ErrorCode.invalid_session_timeout, "group.max.session.timeout.ms"),
        (ErrorCode.group_authorization_failed, "group 'g'"),
    ],
)
def test_what_repeating_cannot_mend_ends_the_membership_with_the_reason(code: ErrorCode, remedy: str) -> None:
    talk = Conversation()
    talk.find()
    talk.join(code)
    assert talk.question is None
    with pytest.raises(KafkaError, match=remedy) as raised:
        talk.handover.note_poll()
    assert raised.value.code is code


def test_brokers_without_groups_end_the_membership_at_once() -> None:
    talk = Conversation()
    talk.answer(error=KafkaError(ErrorCode.unsupported_version, "no version of JoinGroup"))
    with pytest.raises(KafkaError, match="no version of JoinGroup"):
        talk.handover.note_poll()


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_a_member_whose_application_does_not_poll_leaves_unless_it_is_static(instance_id: str | None) -> None:
    talk = Conversation(group_instance_id=instance_id).in_group(T0)
    talk.clock.now_ms += talk.settings.max_poll_interval_ms + 1
    talk.answer(False)
    if instance_id is None:
        assert talk.call(LeaveGroupRequest).members[0].member_id == "m1"
        talk.answer(LeaveGroupResponse())
    assert isinstance(talk.question, Await)
    talk.answer(False)
    assert isinstance(talk.question, Await)  # nothing until the application polls
    assert talk.take() == Lost(frozenset({T0}))
    talk.answer(False)
    assert talk.call(JoinGroupRequest).member_id == ""


def test_a_leader_joins_again_when_its_topics_get_partitions() -> None:
    talk = Conversation(heartbeat_interval_ms=15_000)
    talk.find()
    talk.join(leader="m1", members=[member("m1", "t")])
    talk.answer(topics_answer(t=1))
    talk.sync(T0)
    talk.take()
    talk.beat()
    talk.beat()
    talk.call(MetadataRequest, "any")
    talk.answer(topics_answer(t=1))
    talk.beat()
    talk.beat()
    talk.answer(topics_answer(t=2))
    assert talk.take() == Revoked(frozenset({T0}))
    talk.answer(True)
    assert talk.call(JoinGroupRequest).reason == "the partitions of the topics changed"


@pytest.mark.parametrize("state", ["beating", "giving up"])
def test_closing_ends_the_loop_where_it_waits(state: str) -> None:
    talk = Conversation().in_group(T0)
    if state == "giving up":
        talk.beat(ErrorCode.rebalance_in_progress)
    talk.handover.close()
    talk.answer(True)
    assert talk.question is None


def test_a_member_is_cooperative_if_every_assignor_of_it_is() -> None:
    def protocol(*names: str) -> RebalanceProtocol:
        return MemberSettings(group_id="g", topics=frozenset({"t"}), assignors=names).protocol

    assert protocol("cooperative-sticky") is RebalanceProtocol.COOPERATIVE
    assert protocol("cooperative-sticky", "range") is RebalanceProtocol.EAGER


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"group_id": ""}, "group.id is empty"),
        ({"topics": frozenset()}, "no topic to subscribe to"),
        ({"assignors": ("sticky-ish",)}, "there are range, roundrobin, cooperative-sticky"),
        ({"assignors": ()}, "partition.assignment.strategy"),
        ({"heartbeat_interval_ms": 45_000}, "less than session.timeout.ms=45000"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], problem: str) -> None:
    make: Callable[..., MemberSettings] = MemberSettings
    with pytest.raises(ConfigError, match=problem):
        make(**{"group_id": "g", "topics": frozenset({"t"}), **settings})


@pytest.mark.parametrize(
    "hopeless", [SecurityRefused("c1 does not trust this client"), ConfigError("the key is gone")]
)
def test_a_refused_connection_ends_the_membership_and_the_next_poll_says_why(hopeless: Exception) -> None:
    searching = Conversation()
    searching.call(FindCoordinatorRequest, "any")
    searching.answer(error=hopeless)
    joining = Conversation()
    joining.find()
    joining.call(JoinGroupRequest)
    joining.answer(error=hopeless)
    for member in (searching, joining):
        assert member.question is None
        with pytest.raises(type(hopeless), match=str(hopeless)):
            member.handover.note_poll()


def test_a_refused_connection_ends_the_question_for_partitions() -> None:
    member = Conversation()
    member.find()
    member.join(leader="m1", protocol_name="range")
    member.call(MetadataRequest, "any")
    member.answer(error=SecurityRefused("any does not trust this client"))
    assert member.question is None
    with pytest.raises(SecurityRefused, match="any does not trust"):
        member.handover.note_poll()
