"""One member's life in its group: find the coordinator, join, sync, send heartbeats, join again.

A loop of the shell (``model.loops``): a generator of questions, which a test drives question by question.

    find the coordinator -> join -> sync -> heartbeats --REBALANCE_IN_PROGRESS--> join -> ...
                              ^                |
                              |                +--UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION: partitions are lost
                              +-----------------------------------------+

While a JoinGroup request waits for the other members, no heartbeats are due. All requests of the loop are
sent one after the other. The coordinator may move at any moment: the loop finds it again and continues.

What an eager member owns it gives up before it joins again; a cooperative one joins with what it owns and
gives up what the new assignment lacks (KIP-429). A member whose application has not polled for
``max.poll.interval.ms`` leaves, and joins again at the next poll (KIP-62).
"""

import logging
from collections.abc import Callable, Generator
from typing import Any, Final

from sparklog.client.coordinator import MOVED, found_in, search
from sparklog.client.errors import HOPELESS
from sparklog.client.group.assignors.assignor import PartitionCounts, RebalanceProtocol
from sparklog.client.group.handover import Assigned, Handover, Identity, Lost, Revoked
from sparklog.client.group.settings import ASSIGNORS, MemberSettings
from sparklog.client.group.subscriptions import (
    assignment_bytes,
    assignment_of,
    subscriber_of,
    subscription_bytes,
)
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.loops import Await, CallBroker, Loop, Pause, Question
from sparklog.wire.consumer_protocol import PROTOCOL_TYPE
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest
from sparklog.wire.messages.groups.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from sparklog.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from sparklog.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

logger: Final = logging.getLogger(__name__)

RETRY_MS: Final = 100
CALL_TIMEOUT_MS: Final = 10_000
JOIN_MARGIN_MS: Final = 5_000
"""JoinGroup is answered within the rebalance time-out, if the coordinator lives; and a little later."""
COUNTS_MAX_AGE_MS: Final = 30_000
"""How often the leader of a group looks for new partitions of the topics."""

_MEMBERSHIP_LOST: Final = (ErrorCode.unknown_member_id, ErrorCode.illegal_generation)
_TRY_AGAIN: Final = (ErrorCode.coordinator_load_in_progress, ErrorCode.rebalance_in_progress)

Answer = Generator[Question, Any, Any]
"""A part of the loop, with a result."""


class Membership:
    """See the module. ``any_broker`` names a broker to ask for the coordinator, another one at each call."""

    def __init__(self, settings: MemberSettings, handover: Handover, any_broker: Callable[[], Node]) -> None:
        self._settings = settings
        self._handover = handover
        self._any_broker = any_broker
        self._coordinator: Node | None = None
        self._member_id = ""
        self._generation = -1
        self._protocol_name: str | None = None
        self._owned: frozenset[TopicPartition] = frozenset()
        self._owned_since = -1  # the generation that assigned ``_owned``
        self._led: PartitionCounts | None = None  # what this member divided as the leader of its generation
        self._led_topics: frozenset[str] = frozenset()  # the subscribed ones, whether they exist or not
        self._reason = ""  # of the next JoinGroup, for the coordinator's log

    def life(self) -> Loop:
        """Until the application closes, or an error that repeating cannot mend."""
        try:
            while not self._handover.is_closing:
                yield from self._one_generation()
        except (KafkaError, *HOPELESS) as error:
            self._generation = -1
            self._publish()
            self._handover.fail(error)

    def _one_generation(self) -> Loop:
        if self._settings.protocol is RebalanceProtocol.EAGER:
            yield from self._give_up(self._owned)
        if self._handover.is_closing:
            return
        joined = yield from self._join()
        if joined is None:
            return
        assignment = yield from self._sync(joined)
        if assignment is None:
            return
        self._handover.obstacle = ""
        if (yield from self._accept(assignment)):
            yield from self._stay()

    # Join and sync.

    def _join(self) -> Answer:
        """The answer that begins a generation; None if the member has to try again."""
        settings = self._settings
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(
                    name=assignor.name,
                    metadata=subscription_bytes(
                        assignor.name, settings.topics, self._owned, self._owned_since
                    ),
                )
                for assignor in settings.known
            ],
            reason=self._reason or None,
        )
        response = yield from self._call(request, settings.max_poll_interval_ms + JOIN_MARGIN_MS)
        if response is None:
            return None
        code: ErrorCode = response.error_code
        if code is ErrorCode.none:
            self._member_id, self._generation = response.member_id, response.generation_id
            self._protocol_name, self._led, self._reason = response.protocol_name, None, ""
            return response
        if code is ErrorCode.member_id_required:
            self._member_id = response.member_id
            self._publish()
            return None
        yield from self._react(code)
        return None

    def _sync(self, joined: JoinGroupResponse) -> Answer:
        """This member's partitions in the new generation; None if the member has to join again."""
        assignments = []
        if joined.leader == self._member_id:
            assignments = yield from self._assign(joined)
        request = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol_name,
            assignments=assignments,
        )
        response = yield from self._call(request, self._settings.max_poll_interval_ms + JOIN_MARGIN_MS)
        if response is None:
            return None
        if response.error_code is ErrorCode.none:
            return assignment_of(response.assignment)
        yield from self._react(response.error_code)
        return None

    def _assign(self, joined: JoinGroupResponse) -> Answer:
        """As the leader: every member's assignment, for SyncGroup. None are due after ``skip_assignment``."""
        subscribers = [subscriber_of(member, joined.protocol_name or "") for member in joined.members]
        self._led_topics = frozenset(topic for member in subscribers for topic in member.topics)
        counts = yield from self._partition_counts(self._led_topics)
        self._led = counts
        if joined.skip_assignment:
            return []
        assignor = ASSIGNORS.get(joined.protocol_name or "")
        if assignor is None:
            raise KafkaError(
                ErrorCode.inconsistent_group_protocol,
                f"group {self._settings.group_id!r} has agreed on {joined.protocol_name!r}, "
                f"this member offered {', '.join(self._settings.assignors)}",
            )
        assigned = assignor.assign(subscribers, counts)
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment_bytes(partitions))
            for member_id, partitions in assigned.items()
        ]

    def _partition_counts(self, topics: frozenset[str]) -> Answer:
        """The number of partitions of each topic that exists; asked until a broker answers."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in sorted(topics)],
            allow_auto_topic_creation=False,
        )
        while True:
            try:
                response = yield CallBroker(self._any_broker(), request, CALL_TIMEOUT_MS)
            except (OSError, SparklogError) as error:
                _raise_if_hopeless(error)
                yield from self._pause(f"no answer about the partitions of the topics: {error}")
                continue
            return {
                topic.name: len(topic.partitions)
                for topic in response.topics
                if topic.error_code is ErrorCode.none
            }

    def _accept(self, assigned: frozenset[TopicPartition]) -> Answer:
        """Take over a new assignment; False if the member has to join again because it gave partitions up."""
        self._publish()
        surplus = self._owned - assigned
        if surplus:
            yield from self._give_up(surplus)
            self._reason = "partitions were given up for other members"
        added = assigned - self._owned
        if self._generation >= 0:  # else the membership was lost meanwhile
            self._owned, self._owned_since = assigned, self._generation
            self._handover.offer(Assigned(added, self._generation))
        return not surplus and self._generation >= 0

    # In the group.

    def _stay(self) -> Loop:
        """Heartbeats until the member has to join again, or leaves."""
        beats = 0
        while True:
            yield Await(self._handover.taken, self._settings.heartbeat_interval_ms)
            if self._handover.is_closing:
                return
            if (yield from self._left_in_silence()):
                return
            code = yield from self._beat()
            if code is ErrorCode.rebalance_in_progress:
                self._reason = "the group rebalances"
                return
            if self._generation < 0:
                return
            beats += 1
            if beats * self._settings.heartbeat_interval_ms >= COUNTS_MAX_AGE_MS:
                beats = 0
                if (yield from self._has_new_partitions()):
                    return

    def _beat(self) -> Answer:
        """Send one heartbeat; its code, ``none`` also for what a next heartbeat may mend."""
        request = HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._settings.group_instance_id,
        )
        response = yield from self._call(request, CALL_TIMEOUT_MS)
        if response is None:
            return ErrorCode.none
        code: ErrorCode = response.error_code
        if code not in (ErrorCode.none, ErrorCode.rebalance_in_progress):
            yield from self._react(code)
        return code

    def _has_new_partitions(self) -> Answer:
        """As the leader: whether topics have other partitions than those that were assigned."""
        if self._led is None:
            return False
        counts = yield from self._partition_counts(self._led_topics)
        if counts == self._led:
            return False
        self._reason = "the partitions of the topics changed"
        return True

    def _give_up(self, partitions: frozenset[TopicPartition]) -> Loop:
        """Offer a revocation, and wait with heartbeats until the application has taken it."""
        if not partitions:
            return
        self._handover.offer(Revoked(partitions))
        while self._handover.has_changes():
            yield Await(self._handover.taken, self._settings.heartbeat_interval_ms)
            if self._handover.is_closing:
                return
            if not self._handover.has_changes():
                break
            if (yield from self._left_in_silence()):
                return
            yield from self._beat()
            if self._generation < 0:
                return
        self._owned -= partitions

    def _left_in_silence(self) -> Answer:
        """Leave the group if the application does not poll, and wait for its next poll; whether that was."""
        limit_ms = self._settings.max_poll_interval_ms
        if self._handover.silent_ms() <= limit_ms:
            return False
        logger.warning(
            "the application has not polled for %s ms; leaving %s", limit_ms, self._settings.group_id
        )
        if self._settings.group_instance_id is None:
            yield from self._leave("the application has not polled in time")
        self._lose(is_member_known=False)
        while self._handover.silent_ms() > limit_ms and not self._handover.is_closing:
            yield Await(self._handover.taken, self._settings.heartbeat_interval_ms)
        return True

    def _leave(self, reason: str) -> Loop:
        yield from self._call(leave_request(self._settings, self._member_id, reason), CALL_TIMEOUT_MS)

    # Obstacles.

    def _react(self, code: ErrorCode) -> Loop:
        """To a refusal: forget what it contradicts, and pause; KafkaError if repeating cannot mend it."""
        if code in _MEMBERSHIP_LOST:
            self._lose(is_member_known=code is ErrorCode.illegal_generation)
            return
        if code in MOVED:
            self._coordinator = None
        elif code not in _TRY_AGAIN and not code.retriable:
            raise KafkaError(code, f"group {self._settings.group_id!r}{_REMEDIES.get(code, '')}")
        yield from self._pause(f"the coordinator of group {self._settings.group_id!r} says {code.name}")

    def _lose(self, *, is_member_known: bool) -> None:
        """The coordinator no longer counts this member with what it owns."""
        if not is_member_known:
            self._member_id = ""
        self._generation = -1
        self._publish()
        if self._owned:
            self._handover.offer(Lost(self._owned))
            self._owned = frozenset()

    def _publish(self) -> None:
        self._handover.identity = Identity(self._member_id, self._generation)

    # Calls.

    def _call(self, request: Any, timeout_ms: int) -> Answer:
        """The coordinator's answer; None, after a pause, if there is none."""
        if self._coordinator is None:
            self._coordinator = yield from self._find_coordinator()
        if self._coordinator is None:
            return None
        try:
            response = yield CallBroker(self._coordinator, request, timeout_ms)
        except (OSError, SparklogError) as error:
            _raise_if_hopeless(error)
            self._coordinator = None
            yield from self._pause(f"the coordinator does not answer: {error}")
            return None
        return response

    def _find_coordinator(self) -> Answer:
        try:
            response = yield CallBroker(self._any_broker(), search(self._settings.group_id), CALL_TIMEOUT_MS)
        except (OSError, SparklogError) as error:
            _raise_if_hopeless(error)
            yield from self._pause(f"no broker names a coordinator: {error}")
            return None
        found = found_in(response)
        if found.error is not ErrorCode.none:
            yield from self._react(found.error)
            return None
        return found.node

    def _pause(self, obstacle: str) -> Loop:
        self._handover.obstacle = obstacle
        yield Pause(RETRY_MS)


def leave_request(settings: MemberSettings, member_id: str, reason: str) -> LeaveGroupRequest:
    """The request by which a member leaves its group."""
    member = MemberIdentity(member_id=member_id, group_instance_id=settings.group_instance_id, reason=reason)
    return LeaveGroupRequest(group_id=settings.group_id, members=[member])


_REMEDIES: Final = {
    ErrorCode.fenced_instance_id: ": another member has joined with the same group.instance.id",
    ErrorCode.inconsistent_group_protocol: ": its members use no assignor that this one knows",
    ErrorCode.group_max_size_reached: ": it has group.max.size members already",
    ErrorCode.invalid_session_timeout: ": session.timeout.ms is outside the brokers' "
    "group.min.session.timeout.ms and group.max.session.timeout.ms",
}
"""What an error code means for a member, and thereby what to change."""


def _raise_if_hopeless(error: Exception) -> None:
    """Raise what a repetition cannot mend, such as an API that the broker does not serve."""
    if isinstance(error, HOPELESS) or (isinstance(error, KafkaError) and not error.code.retriable):
        raise error
