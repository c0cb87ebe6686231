"""Fetch sessions (KIP-227), the follower's side: against the broker's, message by message."""

import threading
import uuid
from typing import NamedTuple

import pytest

from sparklog.broker.following.session_with_leader import SessionWithLeader
from sparklog.broker.ports import Ports
from sparklog.broker.waiting.fetch_sessions import FetchContext, FetchSessions
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.fetch import FetchPartition, FetchPartitionData, FetchRequest, FetchResponse

TOPIC = uuid.UUID(int=7)


class Asked(NamedTuple):
    question: FetchPartition
    topic: str = "quakes"


def at(number, offset):
    return Asked(FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1))


class Pair:
    """A follower, and a leader whose partitions all say the same."""

    def __init__(self, clock) -> None:
        self.follower = SessionWithLeader()
        self.sessions = FetchSessions(Ports(clock=clock, timer=None, executor=None, new_guard=threading.Lock))
        self.slots = 10
        self.wanted = {(TOPIC, number): at(number, 0) for number in range(3)}
        self.changed = list(self.wanted)
        self.read = []

    def ask(self):
        request = FetchRequest(replica_id=2)
        changed, self.changed = self.changed, []
        self.follower.put_into(request, self.wanted, changed)
        return request

    def want(self, number, asked):
        self.wanted[TOPIC, number] = asked
        self.changed.append((TOPIC, number))

    def pause(self, number):
        self.changed.append((TOPIC, number))
        return self.wanted.pop((TOPIC, number))

    def answer(self, request) -> FetchResponse:
        context = self.sessions.begin(request, self.slots, by_topic_id=False)
        if not isinstance(context, FetchContext):
            return FetchResponse(error_code=context)
        self.read = [(entry.key[2], entry.asked.fetch_offset) for entry in context.partitions]
        return context.answer(
            (entry, FetchPartitionData(partition_index=entry.key[2])) for entry in context.partitions
        )

    def round(self):
        request = self.ask()
        self.follower.on_response(self.answer(request))
        return [asked.partition for topic in request.topics for asked in topic.partitions]


@pytest.fixture
def pair(clock):
    return Pair(clock)


def test_only_the_first_fetch_names_everything(pair) -> None:
    assert [pair.round(), pair.round(), pair.round()] == [[0, 1, 2], [], []]
    assert pair.read == [(0, 0), (1, 0), (2, 0)]


def test_what_moved_is_told(pair) -> None:
    pair.round()
    pair.want(1, at(1, 50))
    assert pair.round() == [1]
    assert pair.read == [(0, 0), (1, 50), (2, 0)]


def test_what_pauses_is_forgotten_and_told_again_later(pair) -> None:
    pair.round()
    paused = pair.pause(0)
    pair.pause(2)
    assert pair.round() == []
    assert pair.read == [(1, 0)]
    pair.want(0, paused)
    assert pair.round() == [0]


def test_without_room_at_the_leader_every_fetch_names_everything(pair) -> None:
    pair.slots = 0
    assert [pair.round(), pair.round()] == [[0, 1, 2], [0, 1, 2]]
    pair.slots = 1
    assert [pair.round(), pair.round()] == [[0, 1, 2], []]


@pytest.mark.parametrize("is_answered", [True, False])
def test_after_a_lost_reply_everything_is_named_and_the_old_session_ended(pair, is_answered) -> None:
    pair.round()
    request = pair.ask()
    if is_answered:
        pair.answer(request)
    assert pair.round() == [0, 1, 2]
    assert len(pair.sessions) == 1
    assert pair.round() == []


def test_a_leader_that_has_lost_the_session_is_told_everything_again(pair, clock) -> None:
    pair.round()
    pair.sessions = Pair(clock).sessions
    assert [pair.round(), pair.round(), pair.round()] == [[], [0, 1, 2], []]


def test_a_reply_that_could_not_be_used_begins_the_session_anew(pair) -> None:
    pair.round()
    pair.follower.begin_again()
    assert [pair.round(), pair.round()] == [[0, 1, 2], []]


def test_an_epoch_that_went_wrong_is_set_right(pair) -> None:
    pair.round()
    next(iter(pair.sessions._sessions.values())).epoch = 9
    request = pair.ask()
    response = pair.answer(request)
    assert response.error_code is ErrorCode.invalid_fetch_session_epoch
    pair.follower.on_response(response)
    assert [pair.round(), pair.round()] == [[0, 1, 2], []]
