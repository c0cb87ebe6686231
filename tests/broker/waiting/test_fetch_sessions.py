"""Fetch sessions (KIP-227), the broker's side without a network."""

import threading
import uuid

import pytest

from sparklog.broker.ports import Ports
from sparklog.broker.waiting.fetch_sessions import EVICTION_MS, FetchContext, FetchSessions
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.fetch import (
    FetchEpochEndOffset,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

TOPIC = uuid.UUID(int=7)
OTHER = uuid.UUID(int=8)
QUIET = {"high_watermark": 5, "log_start_offset": 0}


class Fetcher:
    """Someone who fetches, and a broker whose answers are what a test says."""

    def __init__(self, sessions, *, slots=10, replica_id=-1) -> None:
        self.sessions, self.slots, self.replica_id = sessions, slots, replica_id
        self.context = None

    def ask(self, *partitions, session=0, epoch=0, forget=(), by_topic_id=True, offset=0, leader_epoch=1):
        topics = {}
        for topic, number in partitions:
            asked = FetchPartition(
                partition=number,
                fetch_offset=offset,
                partition_max_bytes=1,
                current_leader_epoch=leader_epoch,
            )
            topics.setdefault(topic, FetchTopic(topic_id=topic)).partitions.append(asked)
        request = FetchRequest(
            replica_id=self.replica_id,
            session_id=session,
            session_epoch=epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[ForgottenTopic(topic_id=t, partitions=[n]) for t, n in forget],
        )
        self.context = self.sessions.begin(request, self.slots, by_topic_id=by_topic_id)
        return self.context

    def asked(self):
        return [(entry.key[1], entry.key[2]) for entry in self.context.partitions]

    def hear(self, **said):
        """Answer everybody the same, and those in ``said`` (by number) so; what of it goes out."""
        if not isinstance(self.context, FetchContext):
            return self.context
        answers = []
        for entry in self.context.partitions:
            number = entry.key[2]
            data = {**QUIET, **said.get(f"p{number}", {})}
            answers.append((entry, FetchPartitionData(partition_index=number, **data)))
        return self.context.answer(answers)


def heard(response):
    return [
        (topic.topic_id, part.partition_index) for topic in response.responses for part in topic.partitions
    ]


@pytest.fixture
def sessions(clock):
    return FetchSessions(Ports(clock=clock, timer=None, executor=None, new_guard=threading.Lock))


@pytest.fixture
def fetcher(sessions):
    return Fetcher(sessions)


def opened(fetcher, *partitions):
    fetcher.ask(*partitions)
    return fetcher.hear().session_id


def test_a_fetch_without_a_session_is_answered_whole_and_remembered_by_nobody(fetcher, sessions) -> None:
    fetcher.ask((TOPIC, 0), (TOPIC, 1), epoch=-1)
    response = fetcher.hear()
    assert (response.session_id, heard(response)) == (0, [(TOPIC, 0), (TOPIC, 1)])
    assert len(sessions) == 0


def test_a_full_fetch_opens_a_session_and_is_answered_whole(fetcher, sessions) -> None:
    fetcher.ask((TOPIC, 0), (OTHER, 0))
    response = fetcher.hear()
    assert response.session_id > 0
    assert heard(response) == [(TOPIC, 0), (OTHER, 0)]


def test_an_incremental_fetch_asks_for_all_and_hears_only_news(fetcher) -> None:
    session = opened(fetcher, (TOPIC, 0), (TOPIC, 1), (TOPIC, 2))
    fetcher.ask(session=session, epoch=1)
    assert fetcher.asked() == [(TOPIC, 0), (TOPIC, 1), (TOPIC, 2)]
    response = fetcher.hear(p1={"high_watermark": 6})
    assert (response.session_id, heard(response)) == (session, [(TOPIC, 1)])
    fetcher.ask(session=session, epoch=2)
    assert heard(fetcher.hear(p1={"high_watermark": 6})) == []


@pytest.mark.parametrize(
    "said",
    [
        {"records": (b"x",)},
        {"log_start_offset": 1},
        {"error_code": ErrorCode.not_leader_or_follower},
        {"diverging_epoch": FetchEpochEndOffset(epoch=1, end_offset=2)},
    ],
)
def test_every_kind_of_news_is_told(fetcher, said) -> None:
    session = opened(fetcher, (TOPIC, 0), (TOPIC, 1))
    fetcher.ask(session=session, epoch=1)
    assert heard(fetcher.hear(p0=said)) == [(TOPIC, 0)]


@pytest.mark.parametrize(
    "said", [{"error_code": ErrorCode.kafka_storage_error}, {"diverging_epoch": FetchEpochEndOffset(epoch=1)}]
)
def test_after_an_error_or_a_divergence_the_watermark_is_told_again(fetcher, said) -> None:
    session = opened(fetcher, (TOPIC, 0))
    fetcher.ask(session=session, epoch=1)
    fetcher.hear(p0=said)
    fetcher.ask(session=session, epoch=2)
    assert heard(fetcher.hear()) == [(TOPIC, 0)]


def test_a_fetcher_in_a_new_leader_epoch_is_told_the_watermark_again(fetcher) -> None:
    session = opened(fetcher, (TOPIC, 0), (TOPIC, 1))
    fetcher.ask((TOPIC, 1), session=session, epoch=1, leader_epoch=2)
    assert heard(fetcher.hear()) == [(TOPIC, 1)]


def test_changes_additions_and_leavings_take_effect_at_once(fetcher) -> None:
    session = opened(fetcher, (TOPIC, 0), (TOPIC, 1))
    fetcher.ask((TOPIC, 1), (OTHER, 0), session=session, epoch=1, forget=[(TOPIC, 0)], offset=9)
    assert fetcher.asked() == [(TOPIC, 1), (OTHER, 0)]
    assert [entry.asked.fetch_offset for entry in fetcher.context.partitions] == [9, 9]
    assert heard(fetcher.hear()) == [(OTHER, 0)]


def test_who_gave_records_is_read_last_the_next_time(fetcher) -> None:
    session = opened(fetcher, (TOPIC, 0), (TOPIC, 1), (TOPIC, 2))
    fetcher.ask(session=session, epoch=1)
    fetcher.hear(p0={"records": (b"x",)})
    fetcher.ask(session=session, epoch=2)
    assert fetcher.asked() == [(TOPIC, 1), (TOPIC, 2), (TOPIC, 0)]


def test_a_session_that_nobody_opened_is_not_found(fetcher) -> None:
    assert fetcher.ask((TOPIC, 0), session=77, epoch=1) is ErrorCode.fetch_session_id_not_found


@pytest.mark.parametrize("epoch", [2, 7])
def test_another_epoch_than_the_next_is_refused_and_changes_nothing(fetcher, epoch) -> None:
    session = opened(fetcher, (TOPIC, 0))
    assert fetcher.ask((TOPIC, 1), session=session, epoch=epoch) is ErrorCode.invalid_fetch_session_epoch
    fetcher.ask(session=session, epoch=1)
    assert fetcher.asked() == [(TOPIC, 0)]


def test_a_fetch_that_was_repeated_is_refused(fetcher) -> None:
    session = opened(fetcher, (TOPIC, 0))
    fetcher.ask(session=session, epoch=1)
    assert fetcher.ask(session=session, epoch=1) is ErrorCode.invalid_fetch_session_epoch


def test_an_answer_to_a_fetch_that_another_has_overtaken_says_so(fetcher) -> None:
    session = opened(fetcher, (TOPIC, 0))
    fetcher.ask(session=session, epoch=1)
    late = fetcher.context
    fetcher.ask(session=session, epoch=2)
    assert late.answer([]).error_code is ErrorCode.invalid_fetch_session_epoch


def test_epochs_begin_again_at_1_after_the_last(fetcher, sessions) -> None:
    session = opened(fetcher, (TOPIC, 0))
    sessions._sessions[session].epoch = 2**31 - 1
    fetcher.ask(session=session, epoch=2**31 - 1)
    assert fetcher.hear().error_code is ErrorCode.none
    assert isinstance(fetcher.ask(session=session, epoch=1), FetchContext)


def test_a_session_keeps_to_names_or_to_ids(fetcher) -> None:
    session = opened(fetcher, (TOPIC, 0))
    assert fetcher.ask(session=session, epoch=1, by_topic_id=False) is ErrorCode.fetch_session_topic_id_error


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_with_a_session_s_id_ends_it(fetcher, sessions, epoch) -> None:
    session = opened(fetcher, (TOPIC, 0))
    fetcher.ask((TOPIC, 0), session=session, epoch=epoch)
    assert fetcher.hear().session_id != session
    assert len(sessions) == (1 if epoch == 0 else 0)


def test_a_session_that_has_lost_its_last_partition_ends(fetcher, sessions) -> None:
    session = opened(fetcher, (TOPIC, 0))
    fetcher.ask(session=session, epoch=1, forget=[(TOPIC, 0)])
    assert (fetcher.asked(), fetcher.hear().session_id, len(sessions)) == ([], 0, 0)


# Room


def test_without_room_a_fetch_is_served_without_a_session(sessions) -> None:
    assert opened(Fetcher(sessions, slots=0), (TOPIC, 0)) == 0
    one = Fetcher(sessions, slots=1)
    assert opened(one, (TOPIC, 0)) > 0
    assert opened(one, (TOPIC, 0), (TOPIC, 1)) == 0


def test_a_follower_takes_the_place_of_the_smallest_consumer_and_never_that_of_a_follower(sessions) -> None:
    small = opened(Fetcher(sessions), (TOPIC, 0))
    large = opened(Fetcher(sessions), (TOPIC, 0), (TOPIC, 1))
    follower = Fetcher(sessions, slots=2, replica_id=3)
    assert opened(follower, (TOPIC, 0)) > 0
    assert set(sessions._sessions) > {large}
    assert small not in sessions._sessions
    assert opened(follower, (TOPIC, 0)) > 0
    assert large not in sessions._sessions
    assert opened(follower, (TOPIC, 0), (TOPIC, 1)) == 0


def test_a_session_that_nobody_uses_gives_way_after_two_minutes(sessions, clock) -> None:
    fetcher = Fetcher(sessions, slots=1)
    idle = opened(fetcher, (TOPIC, 0))
    clock.now_ms += EVICTION_MS
    assert opened(fetcher, (TOPIC, 0)) == 0
    clock.now_ms += 1
    assert opened(fetcher, (TOPIC, 0)) > 0
    assert idle not in sessions._sessions


def test_an_old_session_in_use_gives_way_to_a_larger_one_only(sessions, clock) -> None:
    fetcher = Fetcher(sessions, slots=1)
    old = opened(fetcher, (TOPIC, 0), (TOPIC, 1))
    clock.now_ms += EVICTION_MS + 1
    fetcher.ask(session=old, epoch=1)
    assert opened(fetcher, (TOPIC, 0), (TOPIC, 1)) == 0
    assert opened(fetcher, (TOPIC, 0), (TOPIC, 1), (TOPIC, 2)) > 0


def test_what_all_sessions_remember_is_bounded(sessions, fetcher, monkeypatch) -> None:
    monkeypatch.setattr("sparklog.broker.waiting.fetch_sessions.PARTITIONS_MAX", 3)
    session = opened(fetcher, (TOPIC, 0), (TOPIC, 1))
    assert opened(fetcher, (OTHER, 0), (OTHER, 1)) == 0
    grown = fetcher.ask((OTHER, 0), (OTHER, 1), session=session, epoch=1)
    assert grown is ErrorCode.fetch_session_id_not_found
    assert len(sessions) == 0
