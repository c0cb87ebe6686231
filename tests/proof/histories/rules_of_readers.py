"""Rules about what readers see, and about what is there when a cluster was healed."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from histories.facts import FOREVER, TOPIC_DELETED, Facts, PartitionFacts
from histories.findings import Found, Judged, seconds, told_final, told_poll, told_send
from histories.model import ACKS_ALL, Dump, End, Poll, Seek, Send

NO_HEAL: Final = "no heal"


def reads_are_repeatable(facts: Facts, judged: Judged) -> Found:
    """What anybody saw stays. Another value at its offset is for ``one_value_per_offset`` to tell."""
    for one in facts.partitions.values():
        told: set[int] = set()
        for read in one.reads:
            if not isinstance(read, Poll):
                continue
            if one.final is None:
                judged.leave_out(one.why_no_final, len(read.records))
                continue
            if one.life_of_read(read) != one.last_life:
                judged.leave_out(one.why_elsewhere(read.invoked_ns, read.done_ns), len(read.records))
                continue
            judged.count += len(read.records)
            for offset, value in read.records:
                if offset in one.value_at or offset in told:
                    continue
                send = facts.send_of.get(value)
                if send is not None and _may_be_undone(facts, send, read):
                    continue
                key, is_tombstone = (None, False) if send is None else (send.key, send.is_tombstone)
                if not one.may_lack(offset, key, is_tombstone):
                    told.add(offset)
                    yield (
                        one,
                        f"{value} at {offset} was read, and is gone",
                        (told_poll(read), told_final(one)),
                    )


def _may_be_undone(facts: Facts, send: Send, read: Poll) -> bool:
    """By the end of its transaction. Whoever reads what is not committed at all breaks another rule."""
    if send.transaction is None or facts.stays(send):
        return False
    return read.isolation != "committed" or not facts.transactions[send.transaction].may_be_committed


def polls_go_on(facts: Facts, judged: Judged) -> Found:
    """An assigned consumer neither goes back nor skips what is there."""
    for one in facts.partitions.values():
        at: dict[str, tuple[int | None, int, Poll | Seek | None]] = {}
        for read in one.reads:
            if isinstance(read, Seek):
                at[read.process] = (None, -1, None)
                continue
            life = one.life_of_read(read)
            life_before, position, before = at.get(read.process, (None, -1, None))
            if life is None or life != life_before:
                position, before = -1, None
            judged.count += bool(read.records) or position >= 0
            yield from _breaks(facts, one, read, position, before, is_last=life == one.last_life)
            next_offset = read.records[-1][0] + 1 if read.records else 0
            at[read.process] = (life, max(read.start, next_offset), read)


def _breaks(
    facts: Facts,
    one: PartitionFacts,
    poll: Poll,
    position: int,
    before: Poll | Seek | None,
    *,
    is_last: bool,
) -> Found:
    """``position``: where the poll has to begin, -1 if that is not known."""
    evidence = (told_poll(poll),) if not isinstance(before, Poll) else (told_poll(before), told_poll(poll))
    if poll.start < position:
        yield one, f"{poll.process} went back from {position} to {poll.start}", evidence
    expected = poll.start if position < 0 else min(position, poll.start)
    for offset, _ in poll.records:
        if offset != expected:
            if offset < expected:
                yield one, f"{poll.process} was given {offset} where {expected} or more had to come", evidence
            elif is_last and (skipped := _must_be_seen(facts, one, expected, offset)):
                what = f"{poll.process} skipped {skipped} records from {expected} to {offset - 1}"
                yield one, what, evidence
        expected = max(expected, offset + 1)


def _must_be_seen(facts: Facts, one: PartitionFacts, first: int, end: int) -> int:
    """How many records from ``first`` on and below ``end`` are there now, and were there for everybody: of a
    compacted topic one replica may have what another has compacted away.
    """
    between = one.offsets_between(first, end)
    if not one.is_compacted:
        return len(between)
    sends = [(offset, facts.send_of.get(one.value_at[offset])) for offset in between]
    return sum(
        send is not None and not one.may_lack(offset, send.key, send.is_tombstone) for offset, send in sends
    )


def the_end_never_falls_back(facts: Facts, judged: Judged) -> Found:
    """An answer to ListOffsets(latest) is no lower than what was seen before it was asked for; no record of a
    later epoch lies below it.
    """
    for one in facts.partitions.values():
        if one.ends:
            held: set[End] = set()
            yield from _misplaced(one, held)
            disturbed = _disturbed(facts, one)
            yield from _falls(one, disturbed, held, is_by_epoch=True)
            yield from _falls(one, disturbed, held, is_by_epoch=False)
            judged.add(len(held))
            judged.leave_out("nothing certain to hold against", len(one.ends) - len(held))


def _falls(one: PartitionFacts, disturbed: "_Stretches", held: set[End], *, is_by_epoch: bool) -> Found:
    """``held`` takes the answers that were held against something.

    Answers of known leaders bind the same and later leaders. Of unknown ones, those that were given while
    nothing went on bind each other: a leader that was replaced may answer for a while.
    """
    answers = [answer for answer in one.ends if (answer.leader_epoch >= 0) == is_by_epoch]
    polls = [
        read
        for read in one.reads
        if isinstance(read, Poll)
        and read.records
        and read.isolation != "uncommitted"  # it may be behind the end for others
        and (read.leader_epoch >= 0) == is_by_epoch
    ]
    if not is_by_epoch:
        answers = [it for it in answers if not disturbed.touch(it.invoked_ns, it.done_ns)]
        polls = [it for it in polls if not disturbed.touch(it.invoked_ns, it.done_ns)]
    seen: list[End | Poll] = sorted([*answers, *polls], key=lambda it: it.done_ns)
    highest: dict[int, _Staircase] = {}
    at = 0
    for answer in sorted(answers, key=lambda it: it.invoked_ns):
        while at < len(seen) and seen[at].done_ns < answer.invoked_ns:
            life = one.life_of_read(seen[at])
            if life is not None:
                highest.setdefault(life, _Staircase()).add(
                    max(seen[at].leader_epoch, 0), _end_of(seen[at]), seen[at]
                )
            at += 1
        life = one.life_of_read(answer)
        best = (
            None if life is None or life not in highest else highest[life].best(max(answer.leader_epoch, 0))
        )
        if best is None:
            continue
        held.add(answer)
        if best[0] > answer.offset:
            what = f"{answer.process} was told {answer.offset} when {best[0]} had been the end"
            asked = f"asked at {seconds(answer.invoked_ns)}, told at {seconds(answer.done_ns)}"
            yield one, what, (_told(best[1]), f"{asked}, leader epoch {answer.leader_epoch}")


def _misplaced(one: PartitionFacts, held: set[End]) -> Found:
    """What a leader told as the end was committed below, so that nothing of a later epoch is there. No clock
    has a part in this. Of earlier epochs there may be more behind: a replica that never heard of this leader
    can lead later, and commit its own tail.
    """
    above: dict[int, _Staircase] = {}
    for there, first, epoch, shown in _appended(one):
        above.setdefault(there, _Staircase()).add(-epoch, -first, shown)
    for answer in one.ends:
        life = one.life_of_read(answer) if answer.leader_epoch >= 0 else None
        if life is None or life not in above:
            continue
        held.add(answer)
        most = above[life].best(-answer.leader_epoch - 1)
        if most is not None and answer.offset > -most[0]:
            what = f"{answer.process} was told {answer.offset} and {-most[0]} is of a later epoch"
            yield one, what, (_told(most[1]), _told(answer))


def _appended(one: PartitionFacts) -> Iterator[tuple[int, int, int, Poll | Dump]]:
    """In which life, from which offset on, in which leader epoch committed records were appended, and what
    shows it.
    """
    for read in one.reads:
        if not isinstance(read, Poll) or not read.epochs or not read.records:
            continue
        life = one.life_of_read(read)
        if life is not None:
            for first, epoch in read.epochs:
                yield life, first, epoch, read
    for dump in one.dumps:
        for offset, epoch, _ in dump.records:
            if offset < dump.high_watermark:
                yield one.last_life, offset, epoch, dump


def _end_of(sight: End | Poll) -> int:
    return sight.offset if isinstance(sight, End) else sight.records[-1][0] + 1


def _told(sight: End | Poll | Dump) -> str:
    if isinstance(sight, Dump):
        return f"the log of {sight.broker} has it"
    epoch = f", leader epoch {sight.leader_epoch}"
    if isinstance(sight, Poll):
        appended = f", appended in epochs {list(sight.epochs)}" if sight.epochs else ""
        return told_poll(sight) + epoch + appended
    return f"{sight.process} was told {sight.offset} at {seconds(sight.done_ns)}{epoch}"


class _Staircase:
    """The highest end by leader epoch: steps that rise with the epoch."""

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._steps: list[tuple[int, End | Poll | Dump]] = []

    def add(self, epoch: int, end: int, sight: End | Poll | Dump) -> None:
        best = self.best(epoch)
        if best is not None and best[0] >= end:
            return
        at = bisect_left(self._epochs, epoch)
        last = at
        while last < len(self._epochs) and self._steps[last][0] <= end:
            last += 1
        self._epochs[at:last] = [epoch]
        self._steps[at:last] = [(end, sight)]

    def best(self, epoch: int) -> tuple[int, End | Poll | Dump] | None:
        """The highest end among the epochs up to this one."""
        at = bisect_right(self._epochs, epoch)
        return self._steps[at - 1] if at else None


class _Stretches:
    """Times in which something went on."""

    def __init__(self, times: Iterator[tuple[int, int]]) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        for begin, end in sorted(times):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def touch(self, begin_ns: int, end_ns: int) -> bool:
        at = bisect_right(self._begins, end_ns)
        return at > 0 and self._ends[at - 1] >= begin_ns


def _disturbed(facts: Facts, one: PartitionFacts) -> _Stretches:
    stale_ns = one.stale_ns

    def times() -> Iterator[tuple[int, int]]:
        for leader in one.leaders:
            yield leader.at_ns - stale_ns, leader.at_ns + stale_ns
        for window in facts.history.faults:
            yield window.begin_ns, window.end_ns + stale_ns if window.end_ns >= 0 else FOREVER

    return _Stretches(times())


def everything_is_seen(facts: Facts, judged: Judged) -> Found:
    """Consumers of a healed cluster come to whatever was acknowledged, in time."""
    healed_ns = facts.history.healed_ns
    for one in facts.partitions.values():
        if healed_ns < 0:
            looked_for = 0 if one.final is None else len(one.acked)
            judged.leave_out(NO_HEAL, looked_for + sum(one.left_out.values()))
            continue
        judged.leave_out_all(one.left_out)
        if one.final is None:
            continue
        polls = [read for read in one.reads if isinstance(read, Poll)]
        if not polls or polls[-1].done_ns <= healed_ns:
            judged.leave_out("no poll after the heal", len(one.acked))
            continue
        judged.add(len(one.acked))
        first_seen = seen_at(one)
        for send in one.acked:
            due_ns = max(facts.visible_ns(send), healed_ns) + facts.limits.settle_ns
            seen_ns = first_seen.get(send.value, FOREVER)
            if seen_ns <= due_ns or one.may_lack(one.offset_min(send), send.key, send.is_tombstone):
                continue
            late = "never read" if seen_ns == FOREVER else f"read at {seconds(seen_ns)}, too late"
            yield (
                one,
                f"acknowledged {send.value} was {late}",
                (told_send(send), f"healed at {seconds(healed_ns)}"),
            )


def seen_at(one: PartitionFacts) -> dict[str, int]:
    """When each value was read first."""
    first: dict[str, int] = {}
    for read in one.reads:
        if isinstance(read, Poll):
            for _, value in read.records:
                first.setdefault(value, read.done_ns)
    return first


def healed_clusters_answer(facts: Facts, judged: Judged) -> Found:
    """A while after healing, sends with acks=all are answered definitely, and not all refused."""
    healed_ns = facts.history.healed_ns
    if healed_ns < 0:
        asked = sum(send.acks == ACKS_ALL for one in facts.partitions.values() for send in one.sends)
        judged.leave_out(NO_HEAL, asked)
        return
    limits = facts.limits
    due_ns = healed_ns + (limits.settle_ns if limits.answer_ns is None else limits.answer_ns)
    for one in facts.partitions.values():
        due = [send for send in one.sends if send.acks == ACKS_ALL and send.invoked_ns > due_ns]
        if one.is_gone:
            judged.leave_out(TOPIC_DELETED, len(due))
            continue
        if not due:
            continue
        judged.add(len(due))
        for send in due:
            if send.outcome == "info":
                after = seconds(send.invoked_ns - healed_ns)
                yield one, f"{send.value} got no definite answer, {after} after healing", (told_send(send),)
        if all(send.outcome == "fail" for send in due):
            yield one, f"all {len(due)} sends were refused after healing", (told_send(due[-1]),)


def replicas_are_equal(facts: Facts, judged: Judged) -> Found:
    """When all is over, replicas are committed to their ends, and hold the same, byte for byte. Compacted
    ones differ by what each has compacted yet.
    """
    for one in facts.partitions.values():
        judged.leave_out(TOPIC_DELETED, one.gone_dumps)
        judged.add(len(one.dumps))
        for dump in one.dumps:
            if dump.high_watermark != dump.end:
                what = f"{dump.broker} ends at {dump.end}, and its high watermark is {dump.high_watermark}"
                yield one, what, ()
            yield from _falling_epochs(one, dump)
        if one.is_compacted or not one.dumps:
            continue
        for other in one.dumps[1:]:
            yield from _differences(one, one.dumps[0], other)
        if one.final is not None:
            yield from _lacks(facts, one, one.dumps[0])


def _falling_epochs(one: PartitionFacts, dump: Dump) -> Found:
    last = 0
    for offset, epoch, _ in dump.records:
        if epoch < last:
            yield one, f"the log of {dump.broker} has epoch {epoch} at {offset} behind epoch {last}", ()
        last = epoch


def _differences(one: PartitionFacts, left: Dump, right: Dump) -> Found:
    """Logs may begin at different offsets, and end at the same."""
    names = f"{left.broker} and {right.broker}"
    if left.end != right.end:
        yield one, f"the logs of {names} end at {left.end} and {right.end}", ()
    start = max(left.start, right.start)
    for what, ours, theirs in (
        ("records", left.records, right.records),
        ("batches", left.batches, right.batches),
    ):
        if what == "batches" and not (ours and theirs):
            continue
        mine = [it for it in ours if it[0] >= start]
        others = [it for it in theirs if it[0] >= start]
        if mine != others:
            at = next((n for n, (a, b) in enumerate(zip(mine, others, strict=False)) if a != b), None)
            at = min(len(mine), len(others)) if at is None else at
            evidence = tuple(
                f"{dump.broker} has {rest[at] if at < len(rest) else 'no more'}"
                for dump, rest in ((left, mine), (right, others))
            )
            yield one, f"the {what} of {names} differ", evidence
            return


def _lacks(facts: Facts, one: PartitionFacts, dump: Dump) -> Found:
    """A log has what its transactions left behind, too."""
    assert one.final is not None
    start = max(dump.start, one.final.start)
    ours = [(offset, value) for offset, value in one.final.records if offset >= start]
    theirs = [
        (offset, value)
        for offset, _, value in dump.records
        if offset >= start and (offset in one.value_at or not _is_of_a_transaction(facts, value))
    ]
    if ours != theirs:
        yield one, f"the log of {dump.broker} is not what the final read has", (told_final(one),)


def _is_of_a_transaction(facts: Facts, value: str) -> bool:
    send = facts.send_of.get(value)
    return send is not None and send.transaction is not None
