"""A member of a group: joins, gets its share, commits, and says that it lives, as Kafka's consumers do.

    find the coordinator -> JoinGroup -> SyncGroup -> OffsetFetch -> heartbeats and commits
         ^                     ^                                          |
         +-- NOT_COORDINATOR   +-- REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, ...

The leader gives the shares out by turns, to others in each generation. A rude member also commits where a
right one does not: between its join and its assignment, and late, as the member that it was before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from histories.model import Assigned
from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.groups.client import MOVED, GroupClient
from simulation.clients.groups.offsets import (
    Committer,
    begin_commit,
    commit_request,
    end_commit,
    fetch_request,
    fetched_in,
    note_reads,
)
from simulation.invariants.groups import GroupRules
from simulation.plans.groups import GroupPlan
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.consumer_protocol import (
    PROTOCOL_TYPE,
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from sparklog.wire.messages.groups.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from sparklog.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from sparklog.wire.messages.groups.offset_commit import OffsetCommitResponse
from sparklog.wire.messages.groups.offset_fetch import OffsetFetchResponse
from sparklog.wire.messages.groups.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

PROTOCOL: Final = "by-turns"
NOBODY: Final = Committer(-1, "", None)
JOIN_SLACK_MS: Final = 1_000
"""How much longer than a rebalance may take a member waits for the answer to its JoinGroup."""

MUST_JOIN: Final = (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation)
MATTERS: Final = (*MOVED, *MUST_JOIN, ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id)
"""What a member does not pass over in the answer to a commit."""

LATE_MS: Final = (50, 1_500)
"""How late a late commit is sent."""


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """What the clients of one group share: ``partitions`` are all that it reads."""

    group_id: str
    plan: GroupPlan
    partitions: tuple[TopicPartition, ...]
    rules: GroupRules


class Member(GroupClient):
    """One process. ``is_settled`` once it has its share and has committed in that generation."""

    def __init__(
        self, place: Workplace, group: GroupPlace, name: str, life: int, instance_id: str | None
    ) -> None:
        super().__init__(place, name, life, group.group_id)
        self.instance_id = instance_id
        self.me = Committer(-1, "", instance_id)
        self.share: dict[TopicPartition, int] = {}
        """Its partitions, with the next offset of each."""
        self.is_rude = group.plan.rude_share > 0
        self.is_patient = False
        """Whether it waits for a commit's answer before the next one. While commits of a partition overlap
        without a gap, nobody can read its stable offset, as in Kafka.
        """
        self.has_share = False
        self.is_settled = False
        self.is_done = False
        """Whether it asks for nothing any more: it is fenced, or leaves."""
        self._group = group
        self._life = life
        self._step = 0
        """Which question of the way to a share was asked last; answers to earlier ones do not count."""
        self._is_asking = False
        self._commits = 0
        self._commits_under_way = 0

    def start(self) -> None:
        super().start()
        self.later(self._group.plan.session_timeout_ms / 4, self._beat)
        self.later(self._draw.expovariate(1 / self._group.plan.commit_ms), self._commit_by_the_clock)

    # ---- the way to a share --------------------------------------------------------------------------------

    def go_on(self) -> None:
        if self._is_asking or self.has_share:
            return
        if self.coordinator is None:
            self.find_coordinator()
        elif self.me.generation < 0:
            self._join(self.coordinator)

    def _ask(
        self, host: str, message: object, answered: Callable[[Any], None], *, timeout_ms: int | None = None
    ) -> None:
        """Ask the next question of the way; whatever else was asked before does not count any more."""
        self._step += 1
        step, self._is_asking = self._step, True

        def on_response(response: object) -> None:
            if step == self._step:
                self._is_asking = False
                answered(response)

        def on_failure() -> None:
            if step == self._step:
                self._is_asking = False
                self._lose_the_coordinator()

        if timeout_ms is None:
            self.call(host, message, on_response, on_failure)
        else:
            self.call(host, message, on_response, on_failure, timeout_ms=timeout_ms)

    def _join(self, host: str) -> None:
        plan = self._group.plan
        topics = tuple(sorted({one.topic for one in self._group.partitions}))
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=plan.session_timeout_ms,
            rebalance_timeout_ms=plan.rebalance_timeout_ms,
            member_id=self.me.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=PROTOCOL, metadata=encode_subscription(Subscription(topics)))
            ],
        )
        timeout_ms = 2 * plan.rebalance_timeout_ms + JOIN_SLACK_MS
        self._ask(host, request, self._joined, timeout_ms=timeout_ms)

    def _joined(self, response: JoinGroupResponse) -> None:
        if response.error_code is ErrorCode.member_id_required:
            self.me = self.me._replace(member_id=response.member_id)
            self.go_on()
            return
        if response.error_code is not ErrorCode.none:
            self._recover(response.error_code)
            return
        self.me = Committer(response.generation_id, response.member_id, self.instance_id)
        if self._is_rude_now():
            self._send_commit(self.me, dict.fromkeys(self._group.partitions, 1))
        is_leader = response.leader == response.member_id and not response.skip_assignment
        members = sorted(one.member_id for one in response.members) if is_leader else []
        self._sync(members)

    def _sync(self, members: list[str]) -> None:
        if self.coordinator is None:
            self._join_again()
            return
        shares = self._shares(members) if members else {}
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.me.generation,
            member_id=self.me.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=encode_assignment(Assignment(share)))
                for name, share in shares.items()
            ],
        )
        timeout_ms = self._group.plan.rebalance_timeout_ms + JOIN_SLACK_MS
        self._ask(self.coordinator, request, self._synced, timeout_ms=timeout_ms)

    def _shares(self, members: list[str]) -> dict[str, tuple[TopicPartition, ...]]:
        """By turns, beginning with another member in each generation."""
        first = self.me.generation % len(members)
        turns = members[first:] + members[:first]
        everything = self._group.partitions
        return {name: everything[turn :: len(turns)] for turn, name in enumerate(turns)}

    def _synced(self, response: SyncGroupResponse) -> None:
        if response.error_code is not ErrorCode.none:
            self._recover(response.error_code)
            return
        assignment = bytes(response.assignment)
        mine = decode_assignment(assignment).partitions if assignment else ()
        self._group.rules.on_assigned(self.group_id, self.me, assignment)
        recorder = self._place.recorder
        identity = self.instance_id or self.me.member_id
        shares = [f"{topic}-{number}" for topic, number in mine]
        recorder.assigned.append(
            Assigned(self.name, self.group_id, self.me.generation, identity, shares, recorder.now_ns)
        )
        self._place.story.tell(self.process.name, f"has {shares} in generation {self.me.generation}")
        self._fetch(mine)

    def _fetch(self, mine: tuple[TopicPartition, ...]) -> None:
        """Where to go on."""
        if not mine:
            self.share, self.has_share = {}, True
            return
        if self.coordinator is None:
            self._join_again()
            return
        invoked_ns = self._place.recorder.now_ns

        def answered(response: OffsetFetchResponse) -> None:
            fetched = fetched_in(response)
            note_reads(self._place.recorder, self.name, self.group_id, invoked_ns, fetched)
            if len(fetched.offsets) == len(mine):
                self.share = {where: max(found.offset, 0) for where, found in fetched.offsets.items()}
                self.has_share = True
            elif fetched.error in MOVED:
                self._recover(fetched.error)
            else:
                self._is_asking = True
                self.later(RETRY_MS, fetch_again)

        def fetch_again() -> None:
            self._is_asking = False
            self._fetch(mine)

        self._ask(self.coordinator, fetch_request(self.group_id, mine), answered)

    # ---- what goes wrong -----------------------------------------------------------------------------------

    def _lose_the_coordinator(self) -> None:
        """Its generation may go on at the next one; if it has none yet it joins there."""
        self.coordinator = None
        if not self.has_share:
            self.me = self.me._replace(generation=-1)
        self.find_coordinator()

    def _recover(self, error: ErrorCode) -> None:
        if not self.process.is_alive:
            return
        if error is ErrorCode.fenced_instance_id:
            self._place.witness.marks.reach("a member was fenced by its twin")
            self._place.story.tell(self.process.name, "is fenced")
            self.is_done = True
            self._leave_a_late_commit()
            self.later(LATE_MS[1] + 1, self.end)
        elif error in MOVED:
            self.coordinator = None
            if not self.has_share:
                self.me = self.me._replace(generation=-1)
            self.later(RETRY_MS, self.find_coordinator)
        elif error is ErrorCode.unknown_member_id:
            self._leave_a_late_commit()
            self.me = Committer(-1, "", self.instance_id)
            self._join_again()
        elif error in MUST_JOIN:
            self._leave_a_late_commit()
            self._join_again()
        else:
            self.me = self.me._replace(generation=-1)
            self.later(RETRY_MS, self._join_again)

    def _join_again(self) -> None:
        if self.is_done:
            return
        self.me = self.me._replace(generation=-1)
        self.has_share = self.is_settled = self._is_asking = False
        self._step += 1
        self.go_on()

    # ---- with a share --------------------------------------------------------------------------------------

    def _beat(self) -> None:
        self.later(self._group.plan.session_timeout_ms / 4, self._beat)
        if self.coordinator is None or not self.has_share or self.is_done:
            return
        sent_by = self.me
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.me.generation,
            member_id=self.me.member_id,
            group_instance_id=self.instance_id,
        )

        def answered(response: HeartbeatResponse) -> None:
            if sent_by == self.me and response.error_code is not ErrorCode.none and not self.is_done:
                self._recover(response.error_code)

        self.call(self.coordinator, request, answered, lambda: self._failed(sent_by))

    def _failed(self, sent_by: Committer) -> None:
        if sent_by == self.me and self.has_share:
            self.find_coordinator()

    def _commit_by_the_clock(self) -> None:
        self.later(self._draw.expovariate(1 / self._group.plan.commit_ms), self._commit_by_the_clock)
        if self.coordinator is None or not self.has_share or self.is_done or self.is_hushed:
            return
        if not self.share:
            self.is_settled = True
            return
        if self.is_patient and self._commits_under_way:
            return
        for where in self.share:
            self.share[where] += self._draw.randint(1, 5)
        self._send_commit(self.me, dict(self.share))

    def _send_commit(self, sent_by: Committer, positions: dict[TopicPartition, int]) -> None:
        if self.coordinator is None:
            return
        self._commits += 1
        value = f"{self.name}/{self._life}/{self._commits}"
        self._group.rules.on_commit_sent(self.group_id, value, sent_by)
        commits = begin_commit(self._place.recorder, self.name, self.group_id, value, positions)

        def answered(response: OffsetCommitResponse) -> None:
            self._commits_under_way -= 1
            outcome = end_commit(self._place.recorder, commits, response)
            self._place.story.tell(self.process.name, f"commit {value}: {outcome.error.name}")
            self._mark(outcome.error)
            for where in outcome.written:
                self._group.rules.on_commit_answered(self.group_id, where, value)
            if sent_by != self.me or not self.has_share or self.is_done:
                return
            if outcome.error is ErrorCode.none:
                self.is_settled = True
            elif outcome.error in MATTERS:
                self._recover(outcome.error)

        request = commit_request(self.group_id, sent_by, value, positions)

        def unanswered() -> None:
            self._commits_under_way -= 1
            self._failed(sent_by)

        self._commits_under_way += 1
        self.call(self.coordinator, request, answered, unanswered)

    def _mark(self, error: ErrorCode) -> None:
        if error is ErrorCode.illegal_generation:
            self._place.witness.marks.reach("a commit of another generation was refused")
        elif error is ErrorCode.rebalance_in_progress:
            self._place.witness.marks.reach("a commit between join and assignment was refused")

    def _is_rude_now(self) -> bool:
        return self._draw.random() < self._group.plan.rude_share and self.is_rude

    def _leave_a_late_commit(self) -> None:
        """Commit later as the member that it is now, whatever has become of it by then."""
        sent_by, positions = self.me, {where: offset + 1 for where, offset in self.share.items()}
        if sent_by.generation >= 0 and positions and self._is_rude_now():
            self.later(self._draw.uniform(*LATE_MS), lambda: self._send_commit(sent_by, positions))

    def leave(self) -> None:
        """Say good-bye, and end."""
        identity = MemberIdentity(member_id=self.me.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
        self.is_done = True
        self._step += 1
        if self.coordinator is None or not self.me.member_id:
            self.end()
        else:
            self.call(self.coordinator, request, lambda response: self.end(), self.end)
