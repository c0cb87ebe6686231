"""What markers, and the answers to tasks and drivers, say of atomic writes.

A member is known once its task was told its producer id, before it sends anything; a commit and an abort are
known before they are sent. What becomes of a member its markers say, which ``TransactionRules`` reads: for
these it is one transaction. Nothing is judged after an election of ``__transaction_state`` that may lose.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from simulation.invariants.atomic_writes.write_decisions import WriteDecisions
from simulation.invariants.invariant import Invariant, Violation
from simulation.invariants.transactions import Transaction, TransactionRules, Where
from simulation.marks import Marks
from simulation.schedule import US_PER_MS
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.model.write_ids import MEMBER_EPOCH, write_and_member
from sparklog.model.write_outcomes import EndOutcome

CLOCKS_PART: Final = 0.9
"""A span of a coordinator, whose clock may be faster, is at least this share of a true one."""


@dataclass(slots=True, eq=False)
class Commit:
    """A driver's wish: just these members of the version. ``outcome``: what the driver was told for good."""

    run: str
    winners: frozenset[int]
    outcome: EndOutcome | None = None


class Attempt(NamedTuple):
    """A task attempt of one run of one version."""

    app: str
    version: int
    run: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} of version {self.version} of {self.app}"


@dataclass(slots=True)
class Version:
    """Of an app's writes. ``visible`` and ``aborted``: members with such a marker, by producer id."""

    number: int
    commits: list[Commit] = field(default_factory=list)
    ended_runs: set[str] = field(default_factory=set)
    """Whose drivers have asked for an abort."""
    aborted_runs: set[str] = field(default_factory=set)
    """Whose drivers were told that it was done."""
    visible: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)

    def candidates(self) -> list[Commit]:
        """The commits that may be the one that is carried out: one that was answered is."""
        done = [one for one in self.commits if one.outcome is EndOutcome.COMMITTED]
        return [one for one in done or self.commits if self._may_be(one)]

    def _may_be(self, commit: Commit) -> bool:
        is_refused = commit.outcome not in (None, EndOutcome.COMMITTED) or commit.run in self.aborted_runs
        return not is_refused and self.visible <= commit.winners and not self.aborted & commit.winners


@dataclass(slots=True, eq=False, kw_only=True)
class Member(Transaction):
    """A task attempt that was told its producer id. ``timeout_ms``: of its write."""

    attempt: Attempt
    timeout_ms: int
    rules: "WriteRules"
    spoke_us: int
    """When it sent the last request that was answered, but for a withdrawal: that is no sign of life."""
    is_finished: bool = False
    """Whether it was told so."""
    has_withdrawn: bool = False
    """Whether it has asked for that."""

    def may_end(self, marker: Entry, *, is_commit: bool) -> bool:
        return self.wish == "commit" if is_commit else self.rules.may_abort(self)

    def on_marker(self, where: Where, *, is_commit: bool) -> None:
        self.rules.on_marker(self, where, is_commit=is_commit)


class _Marked(NamedTuple):
    """A member has a marker in a partition."""

    member: Member
    where: Where
    is_commit: bool
    at_us: int


@dataclass(slots=True)
class WriteRules(Invariant):
    """The rules of one run. ``transactions`` know of each member, too. ``is_there``: whether a partition was
    not deleted. ``silence_ms``: a member's, at most.
    """

    transactions: TransactionRules
    now_us: Callable[[], int]
    marks: Marks
    is_there: Callable[[Where], bool] = lambda where: True
    silence_ms: int = 0
    is_silent: bool = False
    members: dict[int, Member] = field(default_factory=dict)
    """By producer id."""
    _versions: dict[str, dict[int, Version]] = field(default_factory=dict)
    """By app and version."""
    _last_asked: dict[str, int] = field(default_factory=dict)
    """The highest version that anybody has asked for, by app."""
    _decisions: WriteDecisions = field(default_factory=WriteDecisions)
    _marked: list[_Marked] = field(default_factory=list)
    """Whose decision is not known to be committed. What one step does may be seen in any order."""

    def version(self, app: str, number: int) -> Version:
        return self._versions.setdefault(app, {}).setdefault(number, Version(number))

    def answered_commits(self) -> list[Commit]:
        """The commits whose drivers were told that all is committed."""
        versions = (one for versions in self._versions.values() for one in versions.values())
        return [
            commit
            for version in versions
            for commit in version.commits
            if commit.outcome is EndOutcome.COMMITTED
        ]

    def commits_of(self, producer_id: int) -> list[Commit]:
        """The commit of a member that is visible, if there is no doubt which one that is."""
        member = self.members.get(producer_id)
        if member is None or not member.is_commit:
            return []
        found = self.version(member.attempt.app, member.attempt.version).candidates()
        return found if len({one.winners for one in found}) == 1 else []

    # ---- tasks ---------------------------------------------------------------------------------------------

    def on_asked(self, app: str, number: int) -> None:
        """Somebody is about to ask for the version."""
        self._last_asked[app] = max(number, self._last_asked.get(app, -1))

    def on_member(self, attempt: Attempt, producer_id: int, timeout_ms: int, asked_us: int) -> Member:
        """A task was told its producer id. Another attempt is never told the same."""
        known = self.members.get(producer_id)
        if known is None:
            known = self.members[producer_id] = Member(
                str(attempt),
                producer_id,
                MEMBER_EPOCH,
                attempt=attempt,
                timeout_ms=timeout_ms,
                rules=self,
                spoke_us=asked_us,
            )
            self.transactions.adopt(known)
        elif known.attempt != attempt:
            what = f"{attempt} is told the producer id {producer_id}, as {known} was"
            self._break("MemberIdsAreUnique", what, also_after_a_loss=True)
        return known

    def on_nothing_to_write(self, app: str, number: int, told: int) -> None:
        """A task or a driver was told that ``told`` is committed, so that its version is passed over."""
        self.marks.reach("a version was committed before")
        if told >= number and any(
            all(map(self._is_visible, one.winners)) for one in self.version(app, told).candidates()
        ):
            return
        what = f"version {number} of {app} is passed over, as {told} is committed; it is not"
        self._break("OnlyWhatIsCommittedIsPassedOver", what)

    # ---- drivers -------------------------------------------------------------------------------------------

    def on_wish(self, app: str, number: int, run: str, winners: Iterable[int]) -> Commit:
        """A driver is about to commit a write with these members."""
        self.on_asked(app, number)
        commit = Commit(run, frozenset(winners))
        for producer_id in commit.winners:
            self.members[producer_id].wish = "commit"
        self.version(app, number).commits.append(commit)
        return commit

    def on_ended(self, app: str, number: int, commit: Commit, outcome: EndOutcome, told: int) -> None:
        """The driver was told what became of its commit. ``told``: the version that is committed instead."""
        version = self.version(app, number)
        if outcome is EndOutcome.ALREADY_COMMITTED:
            self.on_nothing_to_write(app, number, told)
            return
        commit.outcome = outcome
        if outcome is EndOutcome.COMMITTED:
            self.marks.reach("an atomic write was committed")
            hidden = next((one for one in sorted(commit.winners) if not self._is_visible(one)), None)
            if hidden is not None:
                what = f"the commit of version {number} of {app} was answered, and {hidden} is not visible"
                self._break("AnsweredCommitsAreVisible", what)
        else:
            self.marks.reach("a commit of a write was refused")
        self._check_whole(app, version)

    def on_abort(self, app: str, number: int, run: str) -> None:
        """A driver is about to abort what its run has written."""
        self.version(app, number).ended_runs.add(run)

    def on_aborted(self, app: str, number: int, run: str) -> None:
        """It was told that this is done."""
        version = self.version(app, number)
        version.aborted_runs.add(run)
        self._check_whole(app, version)

    def _is_visible(self, producer_id: int) -> bool:
        """Whether all that the member was told to be in a log can be read there."""
        member = self.members[producer_id]
        judged = [
            one for one in member.acknowledged if self.transactions.is_judged(one) and self.is_there(one)
        ]
        return not judged or bool(member.is_commit and member.ended_in.issuperset(judged))

    # ---- markers -------------------------------------------------------------------------------------------

    def on_marker(self, member: Member, where: Where, *, is_commit: bool) -> None:
        """A member's first marker in a partition."""
        app, version = member.attempt.app, self.version(member.attempt.app, member.attempt.version)
        (version.visible if is_commit else version.aborted).add(member.producer_id)
        if is_commit and any(one.visible for one in self._later(app, version)):
            what = f"version {version.number} of {app} becomes visible behind a later one"
            self._break("VersionsRise", f"{where[0]}: {what}")
        self._check_whole(app, version)
        self._marked.append(_Marked(member, where, is_commit, self.now_us()))

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        """A leader's high watermark passed ``added``: no marker of an earlier step lacks its decision."""
        if truth.topic_partition.topic == TRANSACTION_STATE_TOPIC:
            for entry in added:
                self._decisions.take(leader, entry)
        self._marked = [one for one in self._marked if not self._is_decided(one)]
        late = next((one for one in self._marked if one.at_us < self.now_us()), None)
        if late is not None:
            what = f"{late.member} has a marker (is_commit: {late.is_commit}), and no record decided that"
            self._break("MarkersFollowTheirDecision", f"{late.where[0]}: {what}")

    def _is_decided(self, marked: _Marked) -> bool:
        member = marked.member
        return self._decisions.is_decided(member.producer_id, member.attempt.run, is_commit=marked.is_commit)

    def _later(self, app: str, version: Version) -> list[Version]:
        return [one for number, one in self._versions[app].items() if number > version.number]

    def _check_whole(self, app: str, version: Version) -> None:
        """What is visible is of one commit, which was not refused, and none of its winners is aborted."""
        if version.visible and not version.candidates():
            what = f"{sorted(version.visible)} are visible and {sorted(version.aborted)} aborted"
            commits = [(one.run, sorted(one.winners), one.outcome) for one in version.commits]
            what = f"of version {version.number} of {app} {what}, which is none of the commits {commits}"
            self._break("VersionsAreVisibleOnce", what)

    def may_abort(self, member: Member) -> bool:
        """Whether there is a reason for aborting a member, which has not been ended anywhere."""
        app, number = member.attempt.app, member.attempt.version
        version = self.version(app, number)
        has_rivals = any(member.producer_id not in one.winners for one in version.commits)
        if (
            member.has_withdrawn
            or has_rivals
            or member.attempt.run in version.ended_runs
            or self._last_asked.get(app, -1) > number
            or (version.commits and self.marks.counts["a topic was deleted"])
        ):
            return True
        if not member.is_finished and self._has_passed(member.spoke_us, self.silence_ms):
            self.marks.reach("a member was aborted for its silence")
            return True
        write = write_and_member(member.producer_id)[0]
        others = (one for one in self.members.values() if write_and_member(one.producer_id)[0] == write)
        if self._has_passed(max(one.spoke_us for one in others), member.timeout_ms):
            self.marks.reach("a write was aborted for its silence")
            return True
        return False

    def _has_passed(self, since_us: int, span_ms: int) -> bool:
        return self.now_us() - since_us >= CLOCKS_PART * span_ms * US_PER_MS

    def _break(self, rule: str, what: str, *, also_after_a_loss: bool = False) -> None:
        if not self.is_silent and (also_after_a_loss or not self.transactions.has_lost_states):
            raise Violation(rule, what)
