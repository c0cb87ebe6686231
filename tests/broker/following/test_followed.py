"""What a round asks for, beside a model that looks at every partition anew; and what a round costs."""

import logging
import random
import sys
import threading
import uuid
from collections import Counter
from types import SimpleNamespace
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.broker.following.fetcher import SESSION_ERRORS, Fetcher
from sparklog.broker.following.followed import BACKOFF_MIN_MS
from sparklog.core.replication.follower import FetchPosition
from sparklog.core.replication.session_slots import LeanAnswer
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.wire.messages.data.fetch import (
    FetchableTopicResponse,
    FetchEpochEndOffset,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest, LeanFetchResponse, packed_answers
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

IDS = {"quakes": uuid.UUID(int=7), "storms": uuid.UUID(int=8)}
PLACES = [TopicPartition(topic, number) for topic in IDS for number in range(2)]
SESSION = 7
ANSWERS = ["records", "watermark", "stale", "bug", "corrupt", "error", "out of range", "diverging"]


class Replica:
    """A partition that follows: its position, and steps that a test makes. It is its guard, too."""

    def __init__(self, topic_partition, world=None) -> None:
        self.topic_partition, self.topic_id = topic_partition, IDS[topic_partition.topic]
        self.log_guard = self.follower_append = self
        self.world, self.watcher = world, None
        self.leader_epoch, self.last_epoch, self.log_start_offset, self.log_end_offset = 1, 0, 0, 0
        self.is_silent = self.asks_first = False
        self.takes = True

    def step(self, **changes) -> None:
        vars(self).update(changes)
        if self.watcher is not None:
            self.watcher.on_step()

    def fetch_position(self):
        if self.is_silent:
            return None
        return FetchPosition(self.leader_epoch, self.log_end_offset, self.last_epoch, self.asks_first)

    def append(self, records, batches, *, leader_epoch, fetch_offset, leader_high_watermark, **_):
        if self.takes is None:
            raise ValueError("a bug")
        taken = self.takes and (leader_epoch, fetch_offset) == (self.leader_epoch, self.log_end_offset)
        self.step(log_end_offset=self.log_end_offset + 1 if taken else self.log_end_offset)
        return taken

    def on_diverging(self, leader_epoch, fetch_offset, diverging, leader_start) -> None:
        self.step(log_end_offset=max(self.log_start_offset, self.log_end_offset - 1))

    def on_fetch_error(self, leader_epoch, error) -> None:
        self.step()
        if error is ErrorCode.offset_out_of_range:
            self.world.fetcher.ask_leader_offsets(self)
        else:
            self.world.fetcher.back_off(self)

    def on_leader_offsets(self, leader_epoch, start, end, producers, history) -> None:
        self.step(log_end_offset=self.log_end_offset + 2, asks_first=False)


class Throttle:
    """A throttle of the topic ``quakes`` that a test turns on and off."""

    def __init__(self) -> None:
        self.is_active = self.is_spent = False

    def names(self, topic_partition):
        return topic_partition.topic == "quakes"

    def holds_back(self, topic_partition):
        return self.is_active and self.is_spent and self.names(topic_partition)

    def spend(self, size_bytes) -> None:
        """What is left is for a test to say."""


class World:
    """A fetcher, its clock, its throttle and its settings."""

    def __init__(self) -> None:
        self.now_ms, self.bytes_max, self.node = 1_000, 100, Node(BrokerId(1), "nowhere", 1)
        self.throttle = Throttle()
        self.doubts = SimpleNamespace(on_answer=lambda _: None, on_connection_error=lambda *_: None)
        self.fetcher = Fetcher(
            broker_id=BrokerId(2),
            broker_epoch=lambda: BrokerEpoch(20),
            leader=BrokerId(1),
            find_node=lambda _: self.node,
            config=self,
            clock=self,
            guard=threading.Lock(),
            doubts=self.doubts,
            throttle=self.throttle,
        )

    def monotonic_ms(self):
        return self.now_ms

    def get_int(self, name):
        return {"replica.fetch.max.bytes": self.bytes_max, "replica.fetch.backoff.ms": 100}.get(name, 500)


class Plain:
    """What a fetcher asks for that looks at all partitions in each round, and compares everything."""

    def __init__(self, world) -> None:
        self.world = world
        self.questions, self.known, self.wanted, self.asking = {}, {}, {}, []
        self.names_all, self.has_asked = True, False

    def look(self) -> None:
        world = self.world
        self.wanted, self.asking = {}, []
        for one in world.fetcher._followed._followed.values():
            place = one.partition.topic_partition
            if one.ready_at_ms > world.now_ms or (one.lags and world.throttle.holds_back(place)):
                continue
            position = one.partition.fetch_position()
            if position is None:
                continue
            if one.asks_offsets or position.asks_first:
                self.asking.append(place)
            else:
                self.wanted[place] = (one, self.question(one, position))
        self.has_asked = bool(self.asking)

    def question(self, one, position):
        """The same list as long as it asks for the same."""
        asked = [position, one.partition.log_start_offset, self.world.bytes_max]
        known = self.questions.get(one)
        if known != asked:
            self.questions[one] = known = asked
        return known

    def request(self):
        """The partitions to name, and those to forget."""
        known, self.known = self.known, {place: asked for place, (_, asked) in self.wanted.items()}
        names_all, self.names_all = self.names_all, True  # until it is answered
        if names_all:
            return sorted(self.known), []
        named = [place for place, asked in self.known.items() if known.get(place) is not asked]
        return sorted(named), sorted(known.keys() - self.known.keys())


class FetcherBesidePlain:
    """Anything may happen between the rounds, and while the leader is asked."""

    def __init__(self) -> None:
        self.world = World()
        self.plain = Plain(self.world)
        self.replicas = {}
        self.round, self.asked = None, None
        for place in PLACES:
            self.follow(place, is_made_anew=True)

    def followed(self, place):
        return self.replicas.get(place) or Replica(place, self.world)

    # ---- what happens to partitions ------------------------------------------------------------------------

    def follow(self, place, is_made_anew) -> None:
        if is_made_anew or place not in self.replicas:
            self.replicas[place] = Replica(place, self.world)
        self.world.fetcher.add(self.replicas[place])

    def unfollow(self, place) -> None:
        self.world.fetcher.remove(self.followed(place))

    def change(self, place, what, by) -> None:
        replica = self.followed(place)
        replica.step(**{what: getattr(replica, what) + by})

    def turn(self, place, what, is_so) -> None:
        self.followed(place).step(**{what: is_so})

    def refuse(self, place, asks) -> None:
        fetcher = self.world.fetcher
        (fetcher.ask_leader_offsets if asks else fetcher.back_off)(self.followed(place))

    def wait(self, ms) -> None:
        self.world.now_ms += ms

    def throttle(self, is_active, is_spent) -> None:
        self.world.throttle.is_active, self.world.throttle.is_spent = is_active, is_spent

    def configure(self, bytes_max) -> None:
        self.world.bytes_max = bytes_max

    # ---- a round -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.plain.look()
        self.round = self.world.fetcher.round()
        self.go_on(lambda: next(self.round))
        self.world.node = Node(BrokerId(1), "nowhere", 1)

    def go_on(self, resume) -> None:
        pause_ms = None
        try:
            self.asked = resume().message
            if isinstance(self.asked, LeanFetchRequest):  # this leader is of an earlier release
                unknown = KafkaError(ErrorCode.unsupported_version)
                self.asked = self.round.throw(unknown).message
        except StopIteration as over:
            self.round, self.asked, pause_ms = None, None, over.value
        if pause_ms is not None and not (self.plain.wanted or self.plain.has_asked):
            waits = [one.ready_at_ms - self.world.now_ms for one in self.everyone()]
            assert pause_ms == min((wait for wait in waits if wait > 0), default=500)
        if isinstance(self.asked, FetchRequest):
            self.compare(self.asked)

    def everyone(self):
        return list(self.world.fetcher._followed._followed.values())

    def compare(self, request) -> None:
        names = {topic_id: topic for topic, topic_id in IDS.items()}
        assert not self.plain.asking, "each of them asks first"
        named = [
            (TopicPartition(names[topic.topic_id], one.partition), one)
            for topic in request.topics
            for one in topic.partitions
        ]
        forgotten = [
            TopicPartition(names[topic.topic_id], number)
            for topic in request.forgotten_topics_data
            for number in topic.partitions
        ]
        assert request.session_epoch == 0 or not self.plain.names_all
        expected = self.plain.request()
        assert (sorted(place for place, _ in named), sorted(forgotten)) == expected
        for place, one in named:
            position, log_start_offset, bytes_max = self.plain.known[place]
            assert (one.current_leader_epoch, one.fetch_offset, one.last_fetched_epoch) == (
                position.leader_epoch,
                position.fetch_offset,
                position.last_fetched_epoch,
            )
            assert (one.log_start_offset, one.partition_max_bytes) == (log_start_offset, bytes_max)

    def answer_an_offset(self, code) -> None:
        (topic,) = self.asked.topics
        place = TopicPartition(topic.name, topic.partitions[0].partition_index)
        assert place in self.plain.asking
        if topic.partitions[0].timestamp == -1:  # the second question of two
            self.plain.asking.remove(place)
        answer = ListOffsetsPartitionResponse(partition_index=place.partition, error_code=code, offset=3)
        response = ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[answer])]
        )
        self.go_on(lambda: self.round.send(response))

    def lose_the_answer(self) -> None:
        self.go_on(lambda: self.round.throw(ConnectionResetError("gone")))

    def refuse_all(self, error) -> None:
        self.go_on(lambda: self.round.send(FetchResponse(error_code=error)))

    def answer(self, said, doubled, has_session) -> None:
        asked = self.plain.wanted
        is_used, data = has_session, []
        for place, kind in said.items():
            one = FetchPartitionData(partition_index=place.partition, high_watermark=0)
            replica = asked[place][0].partition if place in asked else self.followed(place)
            replica.takes = {"stale": False, "bug": None}.get(kind, True)
            if kind == "watermark":
                one.high_watermark = replica.log_end_offset + 5
            elif kind == "corrupt":
                one.records = (bytes(100),)
            elif kind == "error":
                one.error_code = ErrorCode.unknown_leader_epoch
            elif kind == "out of range":
                one.error_code = ErrorCode.offset_out_of_range
            elif kind == "diverging":
                one.diverging_epoch = FetchEpochEndOffset(epoch=0, end_offset=0)
            data += [(place, one)] * (1 + doubled)
            if place in asked and kind in ("records", "watermark"):
                position = asked[place][1][0]
                is_used &= (position.leader_epoch, position.fetch_offset) == (
                    replica.leader_epoch,
                    replica.log_end_offset,
                )
            is_used &= place not in asked or kind not in ("stale", "bug", "corrupt")
        topics = [FetchableTopicResponse(topic_id=IDS[place.topic], partitions=[one]) for place, one in data]
        response = FetchResponse(session_id=SESSION if has_session else 0, responses=topics)
        self.go_on(lambda: self.round.send(response))
        self.plain.names_all = not is_used
        for place, (one, _) in asked.items():
            if place not in said and not one.is_over:
                assert one.backoff_ms == BACKOFF_MIN_MS, "an answer that does not name it is a good one"

    # ---- by lot --------------------------------------------------------------------------------------------

    def happen(self, dice) -> None:
        """Half of what happens is a round."""
        place = dice.choice(PLACES)
        if dice.random() < 0.5:
            return self.further(dice)
        match dice.randrange(9):
            case 0:
                self.follow(place, dice.random() < 0.5)
            case 1:
                self.unfollow(place)
            case 2 | 3:
                what = dice.choice(["leader_epoch", "last_epoch", "log_start_offset", "log_end_offset"])
                self.change(place, what, dice.choice([0, 1, -1]))
            case 4:
                self.turn(place, dice.choice(["is_silent", "asks_first"]), dice.random() < 0.4)
            case 5:
                self.refuse(place, dice.random() < 0.5)
            case 6:
                self.wait(dice.choice([5, 20, 100]))
            case 7:
                self.throttle(dice.random() < 0.5, dice.random() < 0.5)
            case 8 if dice.random() < 0.5:
                self.configure(dice.choice([100, 200]))
            case _:
                self.world.node = None

    def further(self, dice) -> None:
        """Begin a round, or go on with it."""
        if self.round is None:
            self.begin()
        elif dice.random() < 0.1:
            self.lose_the_answer()
        elif isinstance(self.asked, ListOffsetsRequest):
            self.answer_an_offset(dice.choice([0, 0, int(ErrorCode.unknown_leader_epoch)]))
        elif dice.random() < 0.1:
            self.refuse_all(dice.choice([*SESSION_ERRORS, ErrorCode.unknown_server_error]))
        else:
            said = {dice.choice(PLACES): dice.choice(ANSWERS) for _ in range(dice.randint(0, 3))}
            self.answer(said, doubled=dice.random() < 0.3, has_session=dice.random() < 0.9)


@pytest.mark.parametrize("examples", [300, pytest.param(3_000, marks=pytest.mark.proof)])
def test_a_round_asks_for_what_a_look_at_every_partition_would_ask_for(examples, caplog) -> None:
    caplog.set_level(logging.CRITICAL, logger="sparklog.broker.following")

    @given(seed=st.integers(0, 2**32))
    @settings(max_examples=examples, deadline=None)
    def compare(seed) -> None:
        both, dice = FetcherBesidePlain(), random.Random(seed)
        for _ in range(80):
            both.happen(dice)

    compare()


class CountedId(uuid.UUID):
    """A topic's id that counts its uses as a key."""

    uses: ClassVar[Counter] = Counter()

    def __hash__(self):
        self.uses["hashed"] += 1
        return super().__hash__()

    def __eq__(self, other):
        self.uses["compared"] += 1
        return super().__eq__(other)


def work_of_a_round(idle: int, monkeypatch) -> tuple[int, Counter]:
    """Instructions of the interpreter, and uses of topic ids, in ten rounds of one busy partition."""
    monkeypatch.setitem(IDS, "quakes", CountedId(int=7))
    world = World()
    busy, *others = [Replica(TopicPartition("quakes", number), world) for number in range(idle + 1)]
    for replica in busy, *others:
        world.fetcher.add(replica)
    executed, forms = 0, Counter()

    def count(frame, event, _):
        nonlocal executed
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        executed += event == "opcode"
        return count

    def answered(conversation) -> None:
        asked = next(conversation).message
        data = FetchPartitionData(partition_index=0, high_watermark=0)
        topic = FetchableTopicResponse(topic_id=uuid.UUID(int=7), partitions=[data])
        answer = FetchResponse(session_id=SESSION, responses=[topic])
        if isinstance(asked, LeanFetchRequest):
            forms["lean"] += 1
            answer = LeanFetchResponse(answers=packed_answers([LeanAnswer(0, ErrorCode.none, 0, 0, 0)]))
        with pytest.raises(StopIteration):
            conversation.send(answer)

    for _ in range(2):
        answered(world.fetcher.round())
    CountedId.uses.clear()
    tracer = sys.gettrace()
    sys.settrace(count)
    try:
        for _ in range(10):
            answered(world.fetcher.round())
    finally:
        sys.settrace(tracer)
    assert (busy.log_end_offset, forms["lean"]) == (12, 11)
    return executed, Counter(CountedId.uses)


def test_a_round_does_the_same_work_whether_one_partition_is_idle_or_a_thousand(monkeypatch) -> None:
    few, many = work_of_a_round(1, monkeypatch), work_of_a_round(1_000, monkeypatch)
    assert few == many
    assert few[0] > 1_000
    assert few[1]["hashed"] <= 10 * 10
