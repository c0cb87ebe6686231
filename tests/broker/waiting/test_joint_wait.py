"""A request that waits in several partitions is answered once, and leaves no token behind."""

import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.partition.append_results import Appended, AwaitsReplicas, InDoubt, Refused, decided
from sparklog.broker.ports import Ports
from sparklog.broker.waiting.joint_wait import JointWaits, Share, named_twice
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

A, B = TopicPartition("quakes", 0), TopicPartition("quakes", 1)
DONE = Appended(7, 0, 9)
WAITING = AwaitsReplicas(DONE)
TIMED_OUT = InDoubt(ErrorCode.request_timed_out, 9)
LOST = InDoubt(ErrorCode.not_leader_or_follower, 9)


class Places:
    """Partitions that do what a test says."""

    def __init__(self, timer) -> None:
        ports = Ports(clock=None, timer=timer, executor=None, new_guard=threading.Lock)
        self.waits = JointWaits(ports, decided, timed_out=ErrorCode.request_timed_out)
        self.tokens: dict[TopicPartition, int] = {}
        self.forgotten = []
        self.answers = []

    def share(self, topic_partition, *, result=WAITING, completed_early=None, fails_with=None):
        def begin(token):
            self.tokens[topic_partition] = token
            if completed_early is not None:
                self.waits.complete(token, completed_early)
            if fails_with is not None:
                raise fails_with
            return result

        return Share(topic_partition, begin, self.forgotten.append)

    def run(self, *shares, **options):
        self.waits.run(shares, 1_000, self.answers.append, **options)


@pytest.fixture
def timer(members):
    return members[1].timer


@pytest.fixture
def places(timer):
    return Places(timer)


def test_a_request_without_shares_is_answered_at_once_with_its_refusals(places):
    refused = Refused(ErrorCode.invalid_request)
    places.run(refused={A: refused})
    assert places.answers == [{A: refused}]


def test_a_request_that_need_not_wait_sets_no_deadline(places, timer):
    places.run(places.share(A, result=DONE))
    assert (places.answers, timer.waiting) == ([{A: DONE}], [])


def test_the_answer_waits_for_the_last_share(places, timer):
    places.run(places.share(A), places.share(B))
    places.waits.complete(places.tokens[B], ErrorCode.none)
    assert places.answers == []
    places.waits.complete(places.tokens[A], ErrorCode.not_leader_or_follower)
    assert places.answers == [{B: DONE, A: LOST}]
    assert (timer.waiting, len(places.waits)) == ([], 0)


def test_a_share_that_is_decided_while_others_have_not_begun_answers_nothing_yet(places):
    places.run(places.share(A, result=DONE), places.share(B))
    assert places.answers == []


def test_an_outcome_that_arrives_before_the_share_has_its_result_is_kept_for_it(places):
    places.run(places.share(A, completed_early=ErrorCode.none))
    assert places.answers == [{A: DONE}]
    assert len(places.waits) == 0


def test_an_error_that_arrives_before_the_share_has_its_result_hides_the_offset(places):
    places.run(places.share(A, completed_early=ErrorCode.not_leader_or_follower))
    assert places.answers == [{A: LOST}]


def test_late_shares_say_so_and_their_partitions_forget_them(places, timer):
    places.run(places.share(A, result=DONE), places.share(B))
    timer.fire()
    assert places.answers == [{A: DONE, B: TIMED_OUT}]
    assert places.forgotten == [places.tokens[B]]
    assert len(places.waits) == 0


def test_a_partition_whose_lock_a_slow_disk_holds_keeps_no_answer_back(places, timer, monkeypatch):
    answered = []
    monkeypatch.setattr(
        places, "forgotten", SimpleNamespace(append=lambda _: answered.append(len(places.answers)))
    )
    places.run(places.share(A), places.share(B))
    timer.fire()
    assert (places.answers, answered) == ([{A: TIMED_OUT, B: TIMED_OUT}], [1, 1])


def test_a_request_is_answered_once_however_many_outcomes_arrive(places, timer):
    places.run(places.share(A))
    deadline = timer.waiting[0].action
    places.waits.complete(places.tokens[A], ErrorCode.none)
    places.waits.complete(places.tokens[A], ErrorCode.not_leader_or_follower)
    deadline()
    assert places.answers == [{A: DONE}]


def test_an_outcome_for_a_share_whose_time_is_up_changes_nothing(places, timer):
    places.run(places.share(A))
    timer.fire()
    places.waits.complete(places.tokens[A], ErrorCode.none)
    assert places.answers == [{A: TIMED_OUT}]


def test_a_share_that_raises_leaves_no_token_behind_and_answers_nothing(places, timer):
    with pytest.raises(KeyError):
        places.run(places.share(A), places.share(B, fails_with=KeyError("a bug")))
    assert places.forgotten == [places.tokens[A], places.tokens[B]]
    assert (len(places.waits), timer.waiting) == (0, [])
    places.waits.complete(places.tokens[A], ErrorCode.none)
    assert places.answers == []


def test_partitions_that_a_request_names_twice_are_found():
    assert named_twice([A, B, A, A]) == [A]
    assert named_twice([A, B]) == []
