"""What markers, and the answers to tasks and drivers, say of atomic writes.

A member is known once its task was told its producer id, before it sends anything; a commit and an abort are
known before they are sent. What becomes of a member its markers say, which ``TransactionRules`` reads: for
these it is one transaction. Nothing is judged after an election of ``__transaction_state`` that may lose.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from simulation.invariants.invariant import Violation
from simulation.invariants.transactions import Transaction, TransactionRules, Where
from simulation.marks import Marks
from simulation.truth import Entry
from sparklog.model.write_ids import MEMBER_EPOCH
from sparklog.model.write_outcomes import EndOutcome


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
    """Of an app's writes. ``visible``: members with a marker that commits them, by producer id."""

    number: int
    commits: list[Commit] = field(default_factory=list)
    aborted_runs: set[str] = field(default_factory=set)
    """Whose drivers were told that they are aborted."""
    visible: set[int] = field(default_factory=set)

    def candidates(self) -> list[Commit]:
        """The commits that what is visible may be of."""
        return [one for one in self.commits if self.visible <= one.winners]


@dataclass(slots=True, eq=False, kw_only=True)
class Member(Transaction):
    """A task attempt that was told its producer id."""

    attempt: Attempt
    rules: "WriteRules"

    def may_end(self, marker: Entry, *, is_commit: bool) -> bool:
        return not is_commit or self.wish == "commit"

    def on_marker(self, where: Where, *, is_commit: bool) -> None:
        if is_commit:
            self.rules.on_visible(self, where)


@dataclass(slots=True)
class WriteRules:
    """The rules of one run. What a member's producer id is, ``TransactionRules`` know, too."""

    transactions: TransactionRules
    marks: Marks
    is_silent: bool = False
    members: dict[int, Member] = field(default_factory=dict)
    """By producer id."""
    _versions: dict[str, dict[int, Version]] = field(default_factory=dict)
    """By app and version."""

    # ---- tasks ---------------------------------------------------------------------------------------------

    def on_member(self, attempt: Attempt, producer_id: int) -> Member:
        """A task was told its producer id. Another attempt is never told the same."""
        known = self.members.get(producer_id)
        if known is None:
            known = self.members[producer_id] = Member(
                str(attempt), producer_id, MEMBER_EPOCH, attempt=attempt, rules=self
            )
            self.transactions.adopt(known)
        elif known.attempt != attempt:
            self._break(
                "MemberIdsAreUnique", f"{attempt} is told the producer id {producer_id}, as {known} was"
            )
        return known

    # ---- drivers -------------------------------------------------------------------------------------------

    def version(self, app: str, number: int) -> Version:
        return self._versions.setdefault(app, {}).setdefault(number, Version(number))

    def on_commit(self, app: str, number: int, run: str, winners: Iterable[int]) -> Commit:
        """A driver is about to commit a write with these members."""
        commit = Commit(run, frozenset(winners))
        for producer_id in commit.winners:
            self.members[producer_id].wish = "commit"
        self.version(app, number).commits.append(commit)
        return commit

    def on_committed(self, app: str, number: int, commit: Commit) -> None:
        """The driver was told that its write is visible."""
        commit.outcome = EndOutcome.COMMITTED
        self.marks.reach("an atomic write was committed")
        for producer_id in sorted(commit.winners):
            self._check_visible(self.members[producer_id])

    def _check_visible(self, member: Member) -> None:
        hidden = [
            where
            for where in member.acknowledged
            if self.transactions.is_judged(where) and not (where in member.ended_in and member.is_commit)
        ]
        if hidden:
            what = f"the commit of {member} was answered, and it is not visible in {hidden[0][0]}"
            self._break("AnsweredCommitsAreVisible", what)

    # ---- markers -------------------------------------------------------------------------------------------

    def on_visible(self, member: Member, where: Where) -> None:
        """A member's first marker in a partition commits it."""
        app, number = member.attempt.app, member.attempt.version
        version = self.version(app, number)
        version.visible.add(member.producer_id)
        if not version.candidates():
            what = f"version {number} of {app} is visible with {sorted(version.visible)}, of several commits"
            self._break("VersionsAreVisibleOnce", f"{where[0]}: {what}")

    def _break(self, rule: str, what: str) -> None:
        if not (self.is_silent or self.transactions.has_lost_states):
            raise Violation(rule, what)
