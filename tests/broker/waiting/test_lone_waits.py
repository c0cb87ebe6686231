"""A request that waits in one partition is answered once, in time, and by one timer for all of them."""

import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.partition.append_results import Appended, AwaitsReplicas, InDoubt, decided
from sparklog.broker.ports import Ports
from sparklog.broker.waiting.joint_wait import JointWaits
from sparklog.model.errors import ErrorCode
from tests.broker.conftest import ManualClock, ManualTimer

DONE = Appended(7, 0, 9)
WAITING = AwaitsReplicas(DONE)
TIMED_OUT = InDoubt(ErrorCode.request_timed_out, 9)
LOST = InDoubt(ErrorCode.not_leader_or_follower, 9)


class Place:
    """A partition that does what a test says."""

    def __init__(self) -> None:
        self.clock, self.timer = ManualClock(), ManualTimer()
        ports = Ports(self.clock, self.timer, executor=None, new_guard=threading.Lock)
        self.joint = JointWaits(ports, decided, timed_out=ErrorCode.request_timed_out)
        self.tokens = []
        self.forgotten = []
        self.answers = []

    def run(self, result=WAITING, *, timeout_ms=1_000, completed_early=None, fails_with=None) -> None:
        def begin(token):
            self.tokens.append(token)
            if completed_early is not None:
                self.joint.complete(token, completed_early)
            if fails_with is not None:
                raise fails_with
            return result

        self.joint.alone.run(begin, self.forgotten.append, timeout_ms, self.answers.append)

    def pass_time(self, ms) -> None:
        self.clock.now_ms += ms
        self.timer.fire()


@pytest.fixture
def place():
    return Place()


def test_a_request_that_need_not_wait_is_answered_at_once_and_sets_no_timer(place):
    place.run(DONE)
    assert (place.answers, place.timer.waiting, len(place.joint)) == ([DONE], [], 0)


def test_the_answer_is_that_of_its_completion(place):
    place.run()
    place.run()
    assert place.answers == []
    place.joint.complete(place.tokens[1], ErrorCode.none)
    place.joint.complete(place.tokens[0], ErrorCode.not_leader_or_follower)
    assert (place.answers, len(place.joint)) == ([DONE, LOST], 0)


def test_a_completion_before_the_result_is_kept_for_it(place):
    place.run(completed_early=ErrorCode.none)
    place.run(completed_early=ErrorCode.not_leader_or_follower)
    assert (place.answers, place.timer.waiting, len(place.joint)) == ([DONE, LOST], [], 0)


def test_a_request_is_answered_once_however_many_completions_there_are(place):
    place.run()
    place.joint.complete(place.tokens[0], ErrorCode.none)
    place.joint.complete(place.tokens[0], ErrorCode.not_leader_or_follower)
    place.pass_time(1_000)
    assert place.answers == [DONE]


def test_a_request_whose_time_is_up_says_so_and_its_partition_forgets_it(place):
    place.run()
    place.pass_time(1_000)
    place.joint.complete(place.tokens[0], ErrorCode.none)
    assert (place.answers, place.forgotten) == ([TIMED_OUT], place.tokens)
    assert len(place.joint) == 0


def test_a_partition_whose_lock_a_slow_disk_holds_keeps_no_answer_back(place, monkeypatch):
    answered = []
    monkeypatch.setattr(
        place, "forgotten", SimpleNamespace(append=lambda _: answered.append(len(place.answers)))
    )
    place.run()
    place.run()
    place.pass_time(1_000)
    assert (place.answers, answered) == ([TIMED_OUT, TIMED_OUT], [2, 2])


def test_one_timer_serves_many_requests_each_in_its_time(place):
    place.run()
    place.clock.now_ms += 600
    place.run()
    place.run()
    place.joint.complete(place.tokens[2], ErrorCode.none)
    assert [entry.delay_ms for entry in place.timer.waiting] == [1_000]
    place.pass_time(400)
    assert place.answers == [DONE, TIMED_OUT]
    assert [entry.delay_ms for entry in place.timer.waiting] == [600]
    place.pass_time(600)
    assert (place.answers, place.timer.waiting) == ([DONE, TIMED_OUT, TIMED_OUT], [])


def test_a_request_with_less_time_than_those_before_it_is_not_late(place):
    place.run(timeout_ms=30_000)
    place.run(timeout_ms=50)
    assert [entry.delay_ms for entry in place.timer.waiting] == [50]
    place.pass_time(50)
    assert (place.answers, place.forgotten) == ([TIMED_OUT], place.tokens[1:])


def test_an_early_timer_answers_nobody_and_no_timer_is_left_for_nobody(place):
    place.run()
    place.joint.complete(place.tokens[0], ErrorCode.none)
    place.clock.now_ms += 900
    place.run()
    place.pass_time(100)
    assert place.answers == [DONE]
    place.joint.complete(place.tokens[1], ErrorCode.none)
    place.pass_time(900)
    assert (place.answers, place.timer.waiting) == ([DONE, DONE], [])


def test_a_request_that_fails_leaves_nothing_behind_and_its_caller_answers(place):
    with pytest.raises(KeyError):
        place.run(fails_with=KeyError("a bug"))
    assert (place.answers, place.forgotten) == ([], place.tokens)
    assert (len(place.joint), place.timer.waiting) == (0, [])


def test_lone_and_joint_requests_share_their_tokens(place):
    place.run()
    place.run()
    assert len({*place.tokens, next(place.joint._tokens)}) == 3
