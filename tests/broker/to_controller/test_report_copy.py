"""A broker answers everybody from its copy of the controller's report, and asks once a second at most."""

import threading

import pytest

from sparklog.broker.to_controller.report_copy import FRESH_MS, ReportCopy
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedEvent,
)


class Seconds:
    """A clock that a test moves."""

    def __init__(self):
        self.now_ms = 0

    def monotonic_ms(self):
        return self.now_ms

    def wall_ms(self):
        return self.now_ms


class Controller:
    """Gives reports of its term, a few events at a time, or fails."""

    def __init__(self):
        self.asked = []
        self.term, self.events, self.per_answer = 1, 0, 1_000
        self.failure = None
        self.age_ms = 0

    def call(self, message, *, timeout_ms, lane=""):
        self.asked.append(message)
        if self.failure is not None:
            raise self.failure
        after = message.after_number if message.after_term == self.term else 0
        numbers = range(after + 1, min(self.events, after + self.per_answer) + 1)
        events = [
            ReportedEvent(term=self.term, number=number, time_ms=0, kind="topic", subject="t")
            for number in numbers
        ]
        return ClusterReportResponse(
            term=self.term, last_number=self.events, events=events, age_ms=self.age_ms
        )


class Copy:
    def __init__(self):
        self.controller, self.clock = Controller(), Seconds()
        self.copy = ReportCopy(self.controller, self.clock, threading.Lock())

    def ask(self, term=-1, number=0, at_most=1_000):
        request = ClusterReportRequest(after_term=term, after_number=number, events_max=at_most)
        return self.copy.answer(request)

    def ids(self, *after):
        return [(event.term, event.number) for event in self.ask(*after).events]


@pytest.fixture
def copy():
    return Copy()


def test_a_hundred_followers_cost_the_controller_one_request_a_second(copy):
    copy.controller.events = 3
    for _ in range(100):
        assert len(copy.ids()) == 3
    assert len(copy.controller.asked) == 1
    copy.clock.now_ms += FRESH_MS
    for _ in range(100):
        copy.ask()
    assert len(copy.controller.asked) == 2


def test_all_events_are_fetched_and_none_of_them_twice(copy):
    copy.controller.events, copy.controller.per_answer = 7, 3
    assert copy.ids() == [(1, number) for number in range(1, 8)]
    copy.controller.events = 9
    copy.clock.now_ms += FRESH_MS
    assert copy.ids(1, 7) == [(1, 8), (1, 9)]


def test_an_answer_has_no_more_events_than_were_asked_for(copy):
    copy.controller.events = 5
    assert copy.ids(1, 2, 2) == [(1, 3), (1, 4)]
    assert copy.ids(1, 2, 0) == copy.ids(1, 2, -7) == []


def test_a_follower_gets_the_end_of_a_term_before_the_next_one(copy):
    copy.controller.events = 3
    copy.ask()
    copy.controller.term, copy.controller.events = 2, 2
    copy.clock.now_ms += FRESH_MS
    assert copy.ids(1, 2) == [(1, 3), (2, 1), (2, 2)]


def test_a_follower_that_is_ahead_of_this_broker_gets_nothing_again(copy):
    copy.controller.events = 3
    assert copy.ids(1, 9) == copy.ids(2, 1) == []


def test_while_no_controller_answers_the_last_copy_is_given_with_its_age(copy):
    copy.controller.events = 1
    assert copy.ask().age_ms == 0
    copy.controller.failure = ConnectionError("it left")
    copy.clock.now_ms += 5_000
    late = copy.ask(1, 0)
    assert (late.error_code, late.age_ms, late.term, len(late.events)) == (ErrorCode.none, 5_000, 1, 1)


def test_a_copy_is_older_by_as_much_as_its_controller_has_not_reached_zookeeper(copy):
    copy.controller.age_ms = 40_000
    assert copy.ask().age_ms == 40_000
    copy.controller.failure = ConnectionError("it left")
    copy.clock.now_ms += 5_000
    assert copy.ask().age_ms == 45_000


def test_without_a_copy_the_requester_is_told_to_try_again(copy):
    copy.controller.failure = ConnectionError("there is none")
    refused = copy.ask()
    assert refused.error_code is ErrorCode.request_timed_out
    assert "no controller answers" in refused.error_message
    assert refused.error_code.retriable


def test_a_controller_of_an_older_release_is_named_as_that(copy):
    copy.controller.failure = KafkaError(ErrorCode.unsupported_version, "it serves no version of it")
    refused = copy.ask()
    assert refused.error_code is ErrorCode.unsupported_version
    assert "older release" in refused.error_message


def test_the_copy_gives_way_to_a_newer_one_once_a_controller_answers_again(copy):
    copy.controller.failure = ConnectionError("there is none")
    copy.ask()
    copy.controller.failure = None
    assert copy.ask().error_code is ErrorCode.request_timed_out, "it was asked within the second"
    copy.clock.now_ms += FRESH_MS
    assert copy.ask().error_code is ErrorCode.none
