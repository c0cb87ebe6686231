"""Rules about consumer groups: committed offsets are a register, a share has one owner in a generation, and
members are given every record.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final, TypeVar

from histories.facts import FOREVER, Facts, PartitionFacts
from histories.findings import Found, Judged, seconds, told_final
from histories.model import Assigned, Commit, CommittedRead, Poll
from histories.rules_of_readers import NO_HEAL

GROUP_LOST: Final = "group lost"
"""Why what a group did is not judged: an election may have cost it what it committed."""

Operation = TypeVar("Operation", Commit, CommittedRead)

Register = tuple[str, str, int]
"""Group, topic, partition."""


def committed_offsets_are_a_register(facts: Facts, judged: Judged) -> Found:
    """Whoever reads a committed offset gets the last one that was committed, or one of those under way.

    A commit takes effect between its invocation and its *certain end*: when it was answered, or when the
    first reader had it. A commit without an answer that nobody reads has no certain end.
    """
    commits, reads = _by_register(facts.history.commits), _by_register(facts.history.committed)
    for register, seen in reads.items():
        lost_ns = facts.group_lost_ns(register[0])
        kept = [read for read in seen if read.done_ns < lost_ns]
        judged.leave_out(GROUP_LOST, len(seen) - len(kept))
        judged.add(len(kept))
        yield from _breaks(_told(register), commits.get(register, []), kept)


def _by_register(operations: Iterable[Operation]) -> dict[Register, list[Operation]]:
    found: defaultdict[Register, list[Operation]] = defaultdict(list)
    for one in operations:
        found[one.group, one.topic, one.partition].append(one)
    return found


def _breaks(where: str, commits: list[Commit], reads: list[CommittedRead]) -> Found:
    of_value = {commit.value: commit for commit in commits}
    ends_ns = {commit.value: commit.done_ns if commit.is_ok else FOREVER for commit in commits}
    for read in reads:
        if read.value in ends_ns:
            ends_ns[read.value] = min(ends_ns[read.value], read.done_ns)
    certain = sorted(
        (one for one in commits if ends_ns[one.value] < FOREVER), key=lambda one: ends_ns[one.value]
    )
    certain_ns = [ends_ns[one.value] for one in certain]
    latest = list(accumulate(certain, _later))
    for read in reads:
        known = bisect_left(certain_ns, read.invoked_ns)
        last = latest[known - 1] if known else None
        if read.value is None:
            if last is not None:
                yield where, f"{read.process} found nothing committed", (_told_commit(last), _told_read(read))
            continue
        commit = of_value.get(read.value)
        if commit is None:
            yield where, f"{read.process} read {read.value}, which nobody committed", (_told_read(read),)
        elif commit.outcome == "fail":
            yield where, f"{read.value} was refused, and was read", (_told_commit(commit), _told_read(read))
        elif commit.invoked_ns > read.done_ns:
            what = f"{read.value} was read before it was committed"
            yield where, what, (_told_read(read), _told_commit(commit))
        elif last is not None and ends_ns[read.value] < last.invoked_ns:
            what = f"{read.value} was read after {last.value} had replaced it"
            yield where, what, (_told_commit(commit), _told_commit(last), _told_read(read))


def _later(one: Commit, other: Commit) -> Commit:
    return other if other.invoked_ns > one.invoked_ns else one


def one_owner_in_a_generation(facts: Facts, judged: Judged) -> Found:
    """No two members of a generation have the same share."""
    owners: dict[tuple[str, int, str], Assigned] = {}
    for one in facts.history.assigned:
        if one.done_ns >= facts.group_lost_ns(one.group):
            judged.leave_out(GROUP_LOST, 1)
            continue
        judged.add(1)
        for share in one.shares:
            owner = owners.setdefault((one.group, one.generation, share), one)
            if owner.member != one.member:
                what = f"{share} has two owners in generation {one.generation}"
                yield f"group {one.group}", what, tuple(_told_assigned([owner, one]))


def groups_are_given_everything(facts: Facts, judged: Judged) -> Found:
    """At least once: of a partition in which a group commits, its members are given every record that is
    there at the end, from where the first of them began. A member is whoever commits.
    """
    members: defaultdict[str, set[str]] = defaultdict(set)
    for commit in facts.history.commits:
        members[commit.group].add(commit.process)
    places = {(one.group, one.topic, one.partition) for one in facts.history.commits}
    for group, topic, number in sorted(places):
        one = facts.partition(topic, number)
        given, start = _given(one, members[group])
        if one.final is None:
            judged.leave_out(one.why_no_final, bool(given))
            continue
        due = one.offsets_between(start, one.final.end)
        if facts.history.healed_ns < 0 or facts.group_lost_ns(group) < FOREVER:
            judged.leave_out(NO_HEAL if facts.history.healed_ns < 0 else GROUP_LOST, len(due))
            continue
        judged.add(len(due))
        missed = [offset for offset in due if offset not in given]
        if missed:
            what = f"no member was given {len(missed)} records, from {missed[0]} to {missed[-1]}"
            yield _told((group, topic, number)), what, (f"members began at {start}", told_final(one))


def _given(one: PartitionFacts, members: set[str]) -> tuple[set[int], int]:
    """What members polled in the partition's last life, and where the first of them began."""
    given: set[int] = set()
    start = FOREVER
    for read in one.reads:
        if read.process not in members:
            continue
        if isinstance(read, Poll) and one.life_of_read(read) == one.last_life:
            given.update(offset for offset, _ in read.records)
            start = min(start, read.start)
    return given, start


def _told(register: Register) -> str:
    group, topic, partition = register
    return f"group {group}, {topic}-{partition}"


def _told_commit(commit: Commit) -> str:
    text = f"{commit.process} committed {commit.value} at {seconds(commit.invoked_ns)}"
    if commit.done_ns < 0:
        return f"{text}, no answer"
    told = "ok" if commit.is_ok else f"{commit.outcome}: {commit.error}"
    return f"{text}, {told} at {seconds(commit.done_ns)}"


def _told_read(read: CommittedRead) -> str:
    got = "nothing" if read.value is None else read.value
    return f"{read.process} read {got} from {seconds(read.invoked_ns)} to {seconds(read.done_ns)}"


def _told_assigned(both: Iterable[Assigned]) -> Iterator[str]:
    for one in both:
        shares = ", ".join(one.shares)
        yield f"{one.process}, member {one.member}, was assigned {shares} at {seconds(one.done_ns)}"
