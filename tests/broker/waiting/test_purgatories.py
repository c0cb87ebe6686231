"""Produces and fetches that wait: answered once, by what they wait for or by their deadline."""

import pytest

from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.waiting.fetch_purgatory import FetchLimits
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

TP = TopicPartition("quakes", 0)


@pytest.fixture
def leader(members):
    members[1].become(1, 1, isr=(1,), replicas=(1,), min_isr=1)
    return members[1]


def fetch(member, offset=0, *, wait_max_ms=500, bytes_min=1, bytes_max=1 << 20):
    """Answers appear in the returned list."""
    answers = []
    wanted = [(TP, member.partition, ReadRequest(offset, 1 << 20))]
    member.parts.waits.fetches.fetch(wanted, FetchLimits(wait_max_ms, bytes_min, bytes_max), answers.append)
    return answers


def sizes(answers):
    return [answer[TP].size_bytes for answer in answers]


def test_a_fetch_that_finds_enough_is_answered_at_once(leader, batch) -> None:
    leader.produce(batch())
    assert sizes(fetch(leader)) == [81]
    assert leader.timer.waiting == []


def test_a_fetch_that_may_not_wait_is_answered_empty(leader) -> None:
    assert sizes(fetch(leader, wait_max_ms=0)) == [0]


def test_a_parked_fetch_is_woken_by_a_produce_and_its_deadline_forgotten(leader, batch) -> None:
    answers = fetch(leader)
    assert answers == []
    leader.produce(batch())
    assert sizes(answers) == [81]
    assert leader.timer.waiting == []
    assert len(leader.parts.waits.fetches) == 0


def test_a_parked_fetch_waits_on_until_it_has_its_minimum_of_bytes(leader, batch) -> None:
    answers = fetch(leader, bytes_min=200)
    leader.produce(batch())
    leader.produce(batch())
    assert answers == []
    leader.produce(batch())
    assert sizes(answers) == [243]


def test_a_deadline_answers_with_what_there_is_and_only_once(leader, batch) -> None:
    answers = fetch(leader, bytes_min=200)
    leader.produce(batch())
    leader.timer.fire()
    assert sizes(answers) == [81]
    leader.produce(batch())
    leader.produce(batch())
    assert len(answers) == 1
    assert len(leader.parts.waits.fetches) == 0


@pytest.mark.scenario("S40")
def test_a_parked_fetch_hears_at_once_that_its_leader_is_gone(leader) -> None:
    answers = fetch(leader)
    leader.become(2, 2, isr=(2,), replicas=(1, 2))
    assert [answer[TP].error for answer in answers] == [ErrorCode.not_leader_or_follower]


def test_a_batch_larger_than_every_limit_is_still_given_whole(leader, batch) -> None:
    leader.produce(batch())
    leader.produce(batch())
    assert sizes(fetch(leader, bytes_max=10)) == [81]


def test_a_produce_with_acks_one_is_answered_when_it_is_appended(members, batch) -> None:
    members[1].become(1, 1)
    answers = members[1].produce(batch(), acks=1)
    assert [result.base_offset for result in answers[0].values()] == [0]


def test_a_produce_that_nobody_replicates_times_out_and_its_data_stays(members, batch) -> None:
    members[1].become(1, 1)
    answers = members[1].produce(batch(), timeout_ms=100)
    assert answers == []
    assert [entry.delay_ms for entry in members[1].timer.waiting] == [100]
    members[1].timer.fire()
    assert [result.error for result in answers[0].values()] == [ErrorCode.request_timed_out]
    assert members[1].partition.log_end_offset == 1
    members[1].become(1, 2, isr=(1,), replicas=(1, 2), min_isr=1)
    assert len(answers) == 1
    assert len(members[1].parts.waits.appends) == 0


def test_below_min_isr_nothing_is_appended(members, batch) -> None:
    members[1].become(1, 1, isr=(1,))
    answers = members[1].produce(batch())
    assert [result.error for result in answers[0].values()] == [ErrorCode.not_enough_replicas]
    assert members[1].partition.log_end_offset == 0


def test_a_fetch_whose_time_runs_out_while_it_is_being_parked_leaves_no_token_behind(leader) -> None:
    partition = leader.partition
    park = partition.reads.wait_for_more

    def park_late(token, request):
        leader.timer.fire()
        park(token, request)

    partition.reads.wait_for_more = park_late
    answers = fetch(leader)
    assert sizes(answers) == [0]
    assert len(leader.parts.waits.fetches) == 0
    assert len(partition._replica.leader.fetches) == 0
