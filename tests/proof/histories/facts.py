"""What rules ask of a history, worked out once: each partition's operations, its final read, and its lives.

A partition's name stands for one log after the other: its topic can be deleted and made anew, and an election
that may lose records gives up a part of the log that was. Each of these is a *life*. Operations of different
lives have nothing to do with each other, and what did not happen in one of them for sure is not judged.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from histories.model import (
    ACKS_ALL,
    Deleted,
    Dump,
    End,
    FinalRead,
    History,
    Leader,
    Poll,
    Seek,
    Send,
)
from histories.transactions import Transaction, transactions_of

SECOND: Final = 1_000_000_000
FOREVER: Final = 1 << 63
NO_FINAL_READ: Final = "no final read"
TOPIC_DELETED: Final = "topic deleted"
LOSSY_ELECTION: Final = "lossy election"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run must reach to count, and how long a healed cluster may take.

    ``answer_ns``: from when on after healing it must answer, ``settle_ns`` unless given.
    ``stale_ns``: for how long a leader that was replaced may go on answering, and how late an event may be
    noted. It matters where nobody noted leader epochs.
    """

    acks_min: int = 1
    windows_min: int = 0
    settle_ns: int = 60 * SECOND
    stale_ns: int = 10 * SECOND
    answer_ns: int | None = None


@dataclass(slots=True, eq=False)
class PartitionFacts:
    """One partition. ``acked`` are the sends with acks=all that were acknowledged in the last life."""

    topic: str
    partition: int
    stale_ns: int
    spans: list[tuple[int, int]] = field(default_factory=lambda: [(-1, FOREVER)])
    """From when to when each topic of this name was there for sure."""
    is_compacted: bool = False
    sends: list[Send] = field(default_factory=list)
    acked: list[Send] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    """How many sends with acks=all were acknowledged and cannot be looked for, for which reason."""
    reads: list[Poll | Seek] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    lossy: list[Leader] = field(default_factory=list)
    dumps: list[Dump] = field(default_factory=list)
    final: FinalRead | None = None
    is_gone: bool = False
    """Whether its topic was deleted, and not made anew."""
    gone_dumps: int = 0
    """Dumps of a topic that was deleted since."""
    value_at: dict[int, str] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)
    """Of the final read."""
    deleted: list[Deleted] = field(default_factory=list)
    may_be_gone_before: int = 0
    last_life: int = 0
    last_of_key: dict[str, int] = field(default_factory=dict)
    """Where each key has its last record in the final read."""
    tombstone_of_key: dict[str, int] = field(default_factory=dict)
    """How far up a key may have had a tombstone that is gone."""
    lost_of_key: dict[str, int] = field(default_factory=dict)
    """How far up a key may have had a record that an election lost, and that some replica kept instead."""
    known_ns: list[int] = field(default_factory=list)
    """When it was known, in the last life, ..."""
    known_ends: list[int] = field(default_factory=list)
    """... that everything below that offset is committed."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def why_no_final(self) -> str:
        return TOPIC_DELETED if self.is_gone else NO_FINAL_READ

    def why_elsewhere(self, begin_ns: int, end_ns: int) -> str:
        """Of what is not for certain in the last life: what ended the life that it may be in."""
        return LOSSY_ELECTION if self._span(begin_ns, end_ns) == len(self.spans) - 1 else TOPIC_DELETED

    def life_of_send(self, send: Send) -> int | None:
        """In which life it was appended, if that is certain."""
        return self._life(send.invoked_ns, send.done_ns, send.leader_epoch)

    def life_of_read(self, read: Poll | End) -> int | None:
        """Fetch and ListOffsets name the epoch and are refused by any other leader, so an epoch says all."""
        if not self.lossy or read.leader_epoch < 0:
            return self._life(read.invoked_ns, read.done_ns, -1)
        span = self._span(read.invoked_ns, read.done_ns)
        if span is None:
            return None
        begin, end = self.spans[span]
        return _life(
            span,
            sum(begin <= one.at_ns < end and one.leader_epoch <= read.leader_epoch for one in self.lossy),
        )

    def _life(self, begin_ns: int, end_ns: int, epoch: int) -> int | None:
        if not self.lossy and len(self.spans) == 1:
            begin, end = self.spans[0]
            return 0 if begin <= begin_ns and end_ns < end else None
        span = self._span(begin_ns, end_ns)
        if span is None:
            return None
        begin, end = self.spans[span]
        margin = self.stale_ns if epoch < 0 else 0
        number = 0
        for one in self.lossy:
            if not begin <= one.at_ns < end:
                continue
            if begin_ns > one.at_ns + margin and (epoch < 0 or epoch >= one.leader_epoch):
                number += 1
            elif not (end_ns < one.at_ns - margin and (epoch < 0 or epoch < one.leader_epoch)):
                return None
        return _life(span, number)

    def _span(self, begin_ns: int, end_ns: int) -> int | None:
        for number, (begin, end) in enumerate(self.spans):
            if begin <= begin_ns and end_ns < end:
                return number
        return None

    def offsets_between(self, first: int, end: int) -> list[int]:
        """Where the final read has records, from ``first`` on and below ``end``."""
        return self.offsets[bisect_left(self.offsets, first) : bisect_left(self.offsets, end)]

    def offset_min(self, send: Send) -> int:
        """Where an acknowledged send of the last life is, or may be at the lowest if its answer did not tell:
        behind all that was known to be committed when it began.
        """
        if send.offset >= 0:
            return send.offset
        known = bisect_left(self.known_ns, send.invoked_ns)
        return self.known_ends[known - 1] if known else 0

    def may_lack(self, offset: int, key: str | None, is_tombstone: bool) -> bool:
        """Whether a record that was there may be gone: deleted, or compacted away."""
        if offset < self.may_be_gone_before:
            return True
        if not self.is_compacted or key is None:
            return False
        later = (self.last_of_key, self.tombstone_of_key, self.lost_of_key)
        return is_tombstone or any(of_key.get(key, -1) > offset for of_key in later)


def _life(span: int, losses: int) -> int:
    return (span << 20) + losses


def _settle_committed(one: PartitionFacts) -> None:
    """When which end of what is committed was known."""
    ends = [(send.done_ns, send.offset + 1) for send in one.acked]
    ends += [
        (read.done_ns, read.records[-1][0] + 1)
        for read in one.reads
        if isinstance(read, Poll) and read.records and one.life_of_read(read) == one.last_life
    ]
    ends.sort()
    one.known_ns = [done_ns for done_ns, _ in ends]
    one.known_ends = list(accumulate((end for _, end in ends), max))


@dataclass(slots=True, eq=False)
class Facts:
    history: History
    limits: Limits
    partitions: dict[tuple[str, int], PartitionFacts] = field(default_factory=dict)
    send_of: dict[str, Send] = field(default_factory=dict)
    """The send of each value."""
    transactions: dict[str, Transaction] = field(default_factory=dict)
    final_values: set[str] = field(default_factory=set)
    """Of all final reads."""
    sent_twice: list[Send] = field(default_factory=list)
    """Sends whose value is another one's too."""

    @staticmethod
    def of(history: History, limits: Limits) -> "Facts":
        facts = Facts(history, limits)
        facts._gather()
        for one in facts.partitions.values():
            facts._settle(one)
        return facts

    def group_lost_ns(self, group: str) -> int:
        """From when on a group may have lost what it committed."""
        return min((one.at_ns for one in self.history.groups_lost if one.group == group), default=FOREVER)

    def partition(self, topic: str, number: int) -> PartitionFacts:
        found = self.partitions.get((topic, number))
        if found is None:
            found = self.partitions[topic, number] = PartitionFacts(topic, number, self.limits.stale_ns)
        return found

    def _gather(self) -> None:
        history, send_of = self.history, self.send_of
        self.transactions = transactions_of(history)
        for send in history.sends:
            self.partition(send.topic, send.partition).sends.append(send)
            if send_of.setdefault(send.value, send) is not send:
                self.sent_twice.append(send)
        for read in history.reads:
            self.partition(read.topic, read.partition).reads.append(read)
        for answer in history.ends:
            self.partition(answer.topic, answer.partition).ends.append(answer)
        for final in history.finals:
            self.partition(final.topic, final.partition).final = final
        for dump in history.dumps:
            self.partition(dump.topic, dump.partition).dumps.append(dump)
        for deleted in history.deleted:
            self.partition(deleted.topic, deleted.partition).deleted.append(deleted)
        for leader in history.leaders:
            self.partition(leader.topic, leader.partition).leaders.append(leader)

    def _settle(self, one: PartitionFacts) -> None:
        self._settle_lives(one)
        if one.final is not None:
            one.value_at = dict(one.final.records)
            one.offsets = [offset for offset, _ in one.final.records]
            self.final_values.update(one.value_at.values())
        begin, _ = one.spans[-1]
        one.may_be_gone_before = max((it.before for it in one.deleted if it.at_ns >= begin), default=0)
        self._settle_acked(one)
        if one.is_compacted:
            self._settle_keys(one)

    def stays(self, send: Send) -> bool:
        """Whether it is for certain not undone by the end of its transaction."""
        return send.transaction is None or self.transactions[send.transaction].is_committed

    def visible_ns(self, send: Send) -> int:
        """From when on readers of committed records may be given an acknowledged send, which stays."""
        if send.transaction is None:
            return send.done_ns
        commits = (one for one in self.transactions[send.transaction].finishes if one.is_commit and one.is_ok)
        return max(send.done_ns, min(one.done_ns for one in commits))

    def _settle_acked(self, one: PartitionFacts) -> None:
        acked = [send for send in one.sends if send.is_ok and send.acks == ACKS_ALL and self.stays(send)]
        one.acked = [send for send in acked if one.life_of_send(send) == one.last_life]
        reasons: Counter[str] = Counter()
        if len(one.acked) < len(acked):
            there = set(one.acked)
            reasons.update(
                one.why_elsewhere(send.invoked_ns, send.done_ns) for send in acked if send not in there
            )
        if one.final is None and one.acked:
            reasons[one.why_no_final] += len(one.acked)
        one.left_out = dict(reasons)
        if any(send.offset < 0 for send in one.acked):
            _settle_committed(one)

    def _settle_lives(self, one: PartitionFacts) -> None:
        begin, is_there = -1, True
        spans: list[tuple[int, int]] = []
        for event in self.history.topics:
            if event.topic != one.topic:
                continue
            one.is_compacted |= event.is_compacted
            if event.is_created and not is_there:
                begin, is_there = event.at_ns, True
            elif not event.is_created and is_there:
                spans.append((begin, event.at_ns))
                is_there = False
        if is_there:
            spans.append((begin, FOREVER))
        else:
            one.final, one.is_gone, one.gone_dumps = None, True, len(one.dumps)
            one.dumps.clear()
        one.spans = spans
        one.lossy = [leader for leader in one.leaders if leader.is_unclean]
        begin, end = spans[-1]
        one.last_life = _life(len(spans) - 1, sum(begin <= leader.at_ns < end for leader in one.lossy))

    def _settle_keys(self, one: PartitionFacts) -> None:
        """Where keys were last, and where tombstones of theirs can have been."""
        for offset, value in one.value_at.items():
            send = self.send_of.get(value)
            if send is not None and send.key is not None:
                one.last_of_key[send.key] = max(one.last_of_key.get(send.key, -1), offset)
        seen = {
            value: offset for read in one.reads if isinstance(read, Poll) for offset, value in read.records
        }
        lost_until_ns = max((leader.at_ns for leader in one.lossy), default=-1)
        there = set(one.value_at.values())
        for send in one.sends:
            is_lost = send.invoked_ns <= lost_until_ns and send.value not in there
            if send.key is None or send.outcome == "fail" or not (send.is_tombstone or is_lost):
                continue
            known = max(seen.get(send.value, -1), send.offset)
            at = known if known >= 0 else FOREVER
            of_key = one.tombstone_of_key if send.is_tombstone else one.lost_of_key
            of_key[send.key] = max(of_key.get(send.key, -1), at)
