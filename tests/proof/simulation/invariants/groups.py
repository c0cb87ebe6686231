"""What the committed logs of coordinators, and their answers, say of groups.

- Commits in the log are of the group's current generation, and of a member that it names.
- Generations in the log rise.
- A commit that was answered is in the log, and so is a share that a member was given. A broker may answer in
  the middle of a step, in which it then waits for its disk: the log is looked at when that step is over.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from simulation.invariants.coordinator_logs import records_in
from simulation.invariants.invariant import Invariant, Violation
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.coordinator.key_partition import partition_of
from sparklog.core.group.records import GroupKey, GroupValue, OffsetKey, OffsetValue
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC

COMMITS: Final = "AnsweredCommitsAreInTheLog"
SHARES: Final = "SharesAreInTheLog"


class Who(Protocol):
    """In whose name a commit was sent."""

    @property
    def generation(self) -> int: ...

    @property
    def member_id(self) -> str: ...


@dataclass(slots=True)
class SeenGroup:
    """A group as its committed records say."""

    value: GroupValue | None = None
    """The last generation; None: there is none, or not any more."""
    generations: dict[int, list[GroupValue]] = field(default_factory=lambda: defaultdict(list))
    commits: set[tuple[TopicPartition, str]] = field(default_factory=set)
    ahead: set[tuple[int, int]] = field(default_factory=set)
    """Leader epochs with generations of which commits are in the log, and no record yet."""
    is_lost: bool = False
    """Whether an election may have lost some of it: nothing of it is judged any more."""


@dataclass(slots=True)
class GroupRules(Invariant):
    """The rules of one run. Groups are known by ``know`` before they do anything."""

    groups: dict[str, SeenGroup] = field(default_factory=dict)
    sent: dict[tuple[str, str], Who] = field(default_factory=dict)
    _owed: dict[tuple[str, str, object], str] = field(default_factory=dict)
    """What was answered and is not in the log yet, by rule, group and what it is, in words."""
    on_lost: Callable[[str], None] = lambda group_id: None
    """Told of a group of which an election may have lost something."""
    is_silent: bool = False

    def know(self, group_id: str) -> None:
        self.groups[group_id] = SeenGroup()

    def is_lost(self, group_id: str) -> bool:
        return self.groups[group_id].is_lost or self.is_silent

    # ---- the log -------------------------------------------------------------------------------------------

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        """The high watermark of a partition passed ``added``."""
        if truth.topic_partition.topic != GROUP_OFFSETS_TOPIC:
            return
        assert leader.log is not None
        for entry in added:
            if leader.part(entry) is not None:
                continue  # of a transaction, which other rules judge
            for record in records_in(leader.log, entry):
                self._take(entry.leader_epoch, record)

    def on_loss(self, truth: PartitionTruth, partitions: int) -> None:
        """An election may have lost records of one of the topic's ``partitions``."""
        if truth.topic_partition.topic != GROUP_OFFSETS_TOPIC:
            return
        for group_id, seen in self.groups.items():
            if partition_of(group_id, partitions) == truth.topic_partition.partition and not seen.is_lost:
                seen.is_lost = True
                self.on_lost(group_id)

    def _take(self, leader_epoch: int, record: StateRecord) -> None:
        group_id = record.key.group_id
        seen = self.groups.get(group_id)
        if seen is None:
            self._break("GroupsAreKnown", f"{group_id} is in the log, and nobody asked for it")
        elif seen.is_lost or self.is_silent:
            return
        else:
            match record:
                case StateRecord(GroupKey(), value):
                    self._take_generation(group_id, seen, leader_epoch, value)
                case StateRecord(OffsetKey(topic_partition=where), OffsetValue() as value):
                    seen.commits.add((where, value.metadata))
                    self._owed.pop((COMMITS, group_id, (where, value.metadata)), None)
                    self._take_offset(group_id, seen, leader_epoch, value)

    def _take_generation(
        self, group_id: str, seen: SeenGroup, leader_epoch: int, value: GroupValue | None
    ) -> None:
        before, seen.value = seen.value, value
        if value is None:
            return
        number = value.generation_id
        if before is not None and number < before.generation_id:
            self._break(
                "GenerationsRise",
                f"{group_id}: generation {number} is in the log behind {before.generation_id}",
            )
        if (leader_epoch, number) in seen.ahead:
            self._break(
                "CommitsAreOfTheGeneration",
                f"{group_id}: a commit of generation {number} is in the log before its members had shares",
            )
        seen.generations[number].append(value)
        for one in value.members:
            self._owed.pop((SHARES, group_id, (number, one.member_id, one.assignment)), None)

    def _take_offset(self, group_id: str, seen: SeenGroup, leader_epoch: int, value: OffsetValue) -> None:
        who = self.sent.get((group_id, value.metadata))
        if who is None:
            self._break("CommitsAreReal", f"{group_id}: nobody committed {value}")
            return
        current = seen.value
        is_of = f"{group_id}: {value.metadata}, of {who.member_id or 'an outsider'}"
        members = () if current is None else tuple(one.member_id for one in current.members)
        if who.generation < 0:
            if members:
                self._break("CommitsAreOfTheGeneration", f"{is_of}, is in the log while {members} share")
            return
        last = -1 if current is None else current.generation_id
        if who.generation < last:
            what = f"{is_of} in generation {who.generation}, is in the log behind generation {last}"
            self._break("CommitsAreOfTheGeneration", what)
        elif who.generation == last and who.member_id not in members:
            what = f"{is_of} in generation {last}, is in the log, and the members are {members}"
            self._break("CommitsAreOfTheGeneration", what)
        elif who.generation > last:
            seen.ahead.add((leader_epoch, who.generation))

    # ---- answers -------------------------------------------------------------------------------------------

    def on_commit_sent(self, group_id: str, value: str, who: Who) -> None:
        self.sent[group_id, value] = who

    def on_commit_answered(self, group_id: str, where: TopicPartition, value: str) -> None:
        """A client was told that its commit counts."""
        if (where, value) not in self.groups[group_id].commits:
            self._owed[COMMITS, group_id, (where, value)] = f"the commit {value} of {where}"

    def on_assigned(self, group_id: str, who: Who, assignment: bytes) -> None:
        """A member was given its share."""
        records = self.groups[group_id].generations[who.generation]
        given = [(one.member_id, one.assignment) for record in records for one in record.members]
        if (who.member_id, assignment) not in given:
            share = (who.generation, who.member_id, assignment)
            self._owed[SHARES, group_id, share] = f"the share {share}"

    def check_what_is_owed(self) -> None:
        """At rest: whatever was answered is in the log."""
        for (rule, group_id, _), what in self._owed.items():
            if not self.is_lost(group_id):
                self._break(rule, f"{group_id}: {what} was answered, and is not in the log")

    def _break(self, rule: str, what: str) -> None:
        if not self.is_silent:
            raise Violation(rule, what)
