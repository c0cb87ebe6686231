"""What the tasks of batch reads are shown of atomic writes.

A read is an execution: its tasks agree upon a cut, and each reads a partition up to it, some of them twice.
Once every partition was read, the execution is judged by the committed logs and by what drivers were told.

A leader that was replaced and does not know it yet answers with old ends (as to every reader). An execution
whose cut may be made of such an answer is judged by what its tasks have in common alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from simulation.invariants.atomic_writes.writes import Commit, WriteRules
from simulation.invariants.invariant import Violation
from simulation.invariants.transactions import BatchKey, batch_key
from simulation.truth import Entry, PartitionTruth
from sparklog.client.transactions.cut import Cut
from sparklog.model.ids import TopicPartition


class Read(NamedTuple):
    """What one task was shown, from the start of its partition's log on."""

    start: int
    entries: tuple[Entry, ...]


@dataclass(slots=True, eq=False)
class Execution:
    """``partitions``: those that were there when it began. ``owed``: commits that were answered by then."""

    name: str
    partitions: Mapping[TopicPartition, PartitionTruth]
    owed: Sequence[Commit]
    cut: Cut | None = None
    reads: dict[TopicPartition, Read] = field(default_factory=dict)
    is_doubtful: bool = False
    """Whether an answer to its questions may be that of a leader that was replaced."""

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class CutRules:
    """The rules of one run. ``truths``: the partitions that are there now."""

    writes: WriteRules
    truths: Mapping[TopicPartition, PartitionTruth]

    def begin(self, name: str, partitions: Iterable[TopicPartition]) -> Execution:
        there = {where: self.truths[where] for where in partitions if where in self.truths}
        return Execution(name, there, self.writes.answered_commits())

    def on_answer(self, execution: Execution, where: TopicPartition, leader_epoch: int) -> None:
        """A leader of this epoch answered a question for a cut."""
        state = execution.partitions[where].state
        execution.is_doubtful |= state is None or state.leader_epoch != leader_epoch

    def on_cut(self, execution: Execution, cut: Cut) -> None:
        """A task knows the cut."""
        if execution.cut is None:
            execution.cut = cut
            if cut.hidden_writes:
                self.writes.marks.reach("a cut hid an atomic write")
        elif execution.cut != cut:
            what = f"a task of {execution} reads to {cut}, another one to {execution.cut}"
            self._break(execution, "TasksReadOneCut", what)

    def on_read(self, execution: Execution, where: TopicPartition, read: Read) -> None:
        """A task has read its partition to the cut."""
        known = execution.reads.setdefault(where, read)
        start = max(known.start, read.start)
        first, again = ([one for one in each.entries if one.base_offset >= start] for each in (known, read))
        if first != again:
            what = f"{execution} read {first} of {where}, and when it was tried again {again}"
            self._break(execution, "RetriesReadTheSame", what)
        if known is read and len(execution.reads) == len(execution.partitions):
            self._judge(execution)

    def _judge(self, execution: Execution) -> None:
        if execution.is_doubtful:
            return
        seen: dict[int, Commit] = {}
        shown = {where: set(map(batch_key, read.entries)) for where, read in execution.reads.items()}
        for where, read in execution.reads.items():
            whole = where, execution.partitions[where].topic_id
            for entry in read.entries:
                if self.writes.transactions.is_open_or_aborted(whole, entry):
                    what = f"{execution} is shown {entry} of {where}, which is not committed there"
                    self._break(execution, "NothingUnfinishedIsShown", what)
                for commit in self.writes.commits_of(entry.producer_id):
                    seen[id(commit)] = commit
        if seen:
            self.writes.marks.reach("a batch read saw an atomic write")
        for commit in seen.values():
            self._check_whole(execution, commit, shown, "CutsAreWhole")
        for commit in execution.owed:
            self._check_whole(execution, commit, shown, "AnsweredCommitsAreInLaterCuts")

    def _check_whole(
        self,
        execution: Execution,
        commit: Commit,
        shown: Mapping[TopicPartition, set[BatchKey]],
        rule: str,
    ) -> None:
        """All that its winners were told to be in the logs was shown."""
        for producer_id in sorted(commit.winners):
            written = self.writes.members[producer_id].acknowledged
            for where, truth in execution.partitions.items():
                missing = written.get((where, truth.topic_id), set()) - shown[where]
                if missing and not truth.start_max:
                    what = f"{execution} is not shown {min(missing)} of {where}"
                    self._break(execution, rule, f"{what}, of the commit of {sorted(commit.winners)}")

    def _break(self, execution: Execution, rule: str, what: str) -> None:
        transactions = self.writes.transactions
        is_judged = all(
            transactions.is_judged((where, truth.topic_id)) and self.truths.get(where) is truth
            for where, truth in execution.partitions.items()
        )
        if is_judged and not (self.writes.is_silent or transactions.has_lost_states):
            raise Violation(rule, what)
