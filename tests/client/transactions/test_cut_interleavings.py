"""All orders in which the end of a write and the questions of a cut can meet.

The cut is made by the shipped code, of two leaders that are a few lines here. A write has a winner in each
partition, and a loser in one of them. A Kafka client's transaction in the other partition never ends. Whoever
reads at once and whoever reads when all is over must read the same. Three bugs, put in, show halves.
"""

import uuid
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import NamedTuple

from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.transactions import cutting
from sparklog.client.transactions.cut import PartitionCut
from sparklog.client.transactions.cutting import made_cut
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import is_of_a_write, producer_id_of, write_and_member
from sparklog.records.envelope import parse_header
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from sparklog.wire.messages.writes.describe_visibility import (
    DescribedPartition,
    DescribedTopic,
    DescribeVisibilityResponse,
)

PLACES = [TopicPartition("t", 0), TopicPartition("t", 1)]
WRITE = 5
LEFT, RIGHT, LOSER = (producer_id_of(WRITE, number) for number in range(3))
KAFKA, PLAIN = 9, -1
QUESTION = "?"
QUESTIONS = 4
KNOWN_LEADER = KnownLeader(0, 0, uuid.UUID(int=1))


class Entry(NamedTuple):
    """A batch or a marker; ``commits`` is None for a batch. Each takes one offset."""

    producer_id: int
    commits: bool | None = None


@cache
def header(producer_id, offset):
    batch = build_records_batch(
        [Record(value=b"v")],
        now_ms=1,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        is_transactional=producer_id >= 0,
    )
    return parse_header(batch)._replace(base_offset=offset)


class Leader:
    """A log and its high watermark. ``names_producers``: it tells of producers where it should of writes."""

    def __init__(self, *entries):
        self.log = list(entries)
        self.high_watermark = len(entries)
        self.names_producers = False

    def append(self, *entries):
        self.log += entries

    def replicate(self):
        self.high_watermark = len(self.log)

    def unstable(self, kind):
        """Offset and producer of each open transaction; one ends when its marker is replicated."""
        ended = {one.producer_id for one in self.log[: self.high_watermark] if one.commits is not None}
        return [
            (offset, one.producer_id)
            for offset, one in enumerate(self.log[: self.high_watermark])
            if one.producer_id >= 0 and one.producer_id not in ended and kind(one.producer_id)
        ]

    def stable_offset(self, kind):
        return min((offset for offset, _ in self.unstable(kind)), default=self.high_watermark)

    def described(self, since):
        marked = {one.producer_id for one in self.log[since:] if one.commits is not None}
        members = marked | {producer_id for _, producer_id in self.unstable(is_of_a_write)}
        return DescribedPartition(
            partition_index=0,
            high_watermark=self.high_watermark,
            stable_offset=self.stable_offset(lambda producer_id: not is_of_a_write(producer_id)),
            writes=sorted(one if self.names_producers else write_and_member(one)[0] for one in members),
        )

    def shown(self, cut):
        aborted = {one.producer_id for one in self.log if one.commits is False}
        return [
            one.producer_id
            for offset, one in enumerate(self.log[: cut.high_watermark])
            if one.commits is None
            and one.producer_id not in aborted
            and not cut.hides(header(one.producer_id, offset))
        ]


class World:
    """Stands for the client of a cluster: each question to a leader lets happen what happens before it."""

    def __init__(self, order, *, commits, backwards):
        self.order = list(order)
        self.backwards = backwards
        self.leaders = {PLACES[0]: Leader(Entry(PLAIN)), PLACES[1]: Leader(Entry(PLAIN), Entry(KAFKA))}
        left, right = self.leaders.values()
        self.events = {
            "rows": lambda: [
                left.append(Entry(LEFT), Entry(LOSER)),
                right.append(Entry(RIGHT)),
                left.replicate(),
                right.replicate(),
            ],
            "marker left": lambda: left.append(Entry(LEFT, commits)),
            "marker right": lambda: right.append(Entry(RIGHT, commits)),
            "marker of the loser": lambda: left.append(Entry(LOSER, False)),
            "replicated left": left.replicate,
            "replicated right": right.replicate,
        }

    def pass_on(self, until=QUESTION):
        """Let happen what is before the next question; without one, all that is left."""
        while self.order:
            step = self.order.pop(0)
            if step == until:
                return
            if step != QUESTION:
                self.events[step]()

    def call_leaders(self, places, build, read):
        answers = {}
        for place in sorted(places, reverse=self.backwards):
            self.pass_on()
            (code, answer), *_ = read(self.answer(build, place)).values()
            assert not code
            answers[place] = answer
        return answers

    def answer(self, build, place):
        leader = self.leaders[place]
        request = build({place: KNOWN_LEADER})
        if isinstance(request, ListOffsetsRequest):
            listed = ListOffsetsPartitionResponse(partition_index=0, offset=leader.high_watermark)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[listed])])
        since = request.topics[0].partitions[0].since_offset
        return DescribeVisibilityResponse(
            topics=[DescribedTopic(name="t", partitions=[leader.described(since)])]
        )

    def shown(self, cut):
        return [leader.shown(cut.of(place)) for place, leader in self.leaders.items()]


ENDS = [
    ("marker left", "replicated left", "marker right", "replicated right", "marker of the loser"),
    ("marker left", "marker right", "replicated right", "replicated left", "marker of the loser"),
    ("marker right", "replicated right", "marker left", "replicated left", "marker of the loser"),
    ("marker right", "replicated right", "marker of the loser", "marker left", "replicated left"),
    ("marker of the loser", "marker left", "marker right", "replicated left", "replicated right"),
    ("marker left", "replicated left", "marker of the loser", "marker right", "replicated right"),
]
"""The orders of the markers that differ for a reader; more is replicated at the very end."""


def orders() -> Iterator[tuple[str, ...]]:
    """All ways to put the questions between the steps of a write."""
    for end in ENDS:
        steps = ("rows", *end, "replicated left", "replicated right")
        count = len(steps) + QUESTIONS
        for asked in combinations(range(count), QUESTIONS):
            others = iter(steps)
            yield tuple(QUESTION if place in asked else next(others) for place in range(count))


def first_finding():
    """Over all orders; empty if every cut is as it should be."""
    return next(findings(), "")


def findings():
    for order in orders():
        for commits, backwards in ((True, False), (True, True), (False, False)):
            world = World(order, commits=commits, backwards=backwards)
            cut = made_cut(world, PLACES)
            seen = world.shown(cut)
            world.pass_on(until=None)
            later = world.shown(cut)
            members = [one for part in later for one in part if is_of_a_write(one)]
            if seen != later:
                yield f"a retry reads {later}, the first attempt read {seen}: {order}"
            if members not in ([], [LEFT, RIGHT]) or (members and not commits):
                yield f"of a write {members} are shown: {order}"
            if commits and QUESTION not in order[:-QUESTIONS] and not members:
                yield f"a write that was over is not shown: {order}"
            if [part[0] for part in later] != [PLAIN, PLAIN] or KAFKA in later[1]:
                yield f"of other batches {later} are shown: {order}"


def test_every_cut_shows_all_of_a_write_or_nothing_and_every_retry_the_same():
    assert first_finding() == ""


def test_a_cut_in_one_round_shows_halves(monkeypatch):
    class Now(dict):
        """The high watermark of when the second question is asked, so that the first one says nothing."""

        def __init__(self, world):
            super().__init__(dict.fromkeys(PLACES))
            self.world = world

        def __getitem__(self, place):
            return self.world.leaders[place].high_watermark

    monkeypatch.setattr(cutting, "latest", lambda world, places, level: Now(world))
    assert first_finding().startswith("of a write")


def test_a_cut_by_producers_instead_of_writes_shows_halves(monkeypatch):
    make = Leader.__init__

    def names_producers(leader, *entries):
        make(leader, *entries)
        leader.names_producers = True

    monkeypatch.setattr(Leader, "__init__", names_producers)
    monkeypatch.setattr(PartitionCut, "hides", hides_producers)
    assert first_finding().startswith("of a write")


def hides_producers(cut, header):
    if is_of_a_write(header.producer_id):
        return header.producer_id in cut.hidden_writes
    return header.last_offset >= cut.stable_offset


def test_a_cut_at_the_last_stable_offset_shows_halves(monkeypatch):
    stable_offset = Leader.stable_offset
    monkeypatch.setattr(Leader, "stable_offset", lambda leader, kind: stable_offset(leader, lambda _: True))
    monkeypatch.setattr(PartitionCut, "hides", lambda cut, header: header.last_offset >= cut.stable_offset)
    assert first_finding().startswith("of a write")
