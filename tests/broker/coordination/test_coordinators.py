"""Coordinators live where a partition of their topic leads: they load, append with acks=all, and resign."""

from sparklog.core.group.requests import Heartbeat, ListGroups
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC

LOADING = ErrorCode.coordinator_load_in_progress
NOT_COORDINATOR = ErrorCode.not_coordinator


def test_a_broker_that_does_not_lead_the_partition_is_not_the_coordinator(coordinated):
    assert coordinated.commit(7) == [NOT_COORDINATOR]
    coordinated.become(leader=2)
    assert coordinated.committed() == [NOT_COORDINATOR]


def test_an_invalid_request_is_refused_also_where_no_coordinator_is(coordinated):
    (answer,) = coordinated.ask(Heartbeat(group_id="", generation_id=1, member_id="m"))
    assert answer.error is ErrorCode.invalid_group_id


def test_a_commit_is_answered_when_the_follower_has_it_and_is_read_back(coordinated):
    coordinated.serve()
    answers = coordinated.commit(7)
    assert answers == []
    coordinated.follow()
    assert answers == [ErrorCode.none]
    assert coordinated.committed() == [{"events": 7}]


def test_while_loading_a_heartbeat_succeeds_and_a_commit_does_not(coordinated):
    coordinated.become()
    (beat,) = coordinated.ask(Heartbeat(group_id="g", generation_id=1, member_id="m"))
    assert beat.error is ErrorCode.none
    assert coordinated.commit(7) == [LOADING]


def test_the_next_leader_epoch_reads_what_was_committed_before(coordinated):
    coordinated.serve()
    coordinated.commit(7)
    coordinated.commit(8, group="h")
    coordinated.follow()
    coordinated.follow()
    coordinated.become(leader=2, epoch=2)
    assert coordinated.committed() == [NOT_COORDINATOR]
    coordinated.serve(epoch=3)
    assert [coordinated.committed(), coordinated.committed("h")] == [[{"events": 7}], [{"events": 8}]]


def test_requests_that_wait_are_answered_when_the_leadership_ends(coordinated):
    coordinated.serve()
    answers = coordinated.commit(7)
    coordinated.become(leader=2, epoch=2)
    assert answers == [NOT_COORDINATOR]


def test_an_append_that_timed_out_is_settled_when_the_high_watermark_passes(coordinated):
    coordinated.serve()
    answers = coordinated.commit(7)
    coordinated.time(5_000)
    assert answers == [ErrorCode.request_timed_out]
    waiting = coordinated.committed()
    assert waiting == []
    coordinated.follow()
    coordinated.time(100)
    assert waiting == [{"events": 7}]


def test_a_request_behind_a_write_in_doubt_does_not_wait_for_ever(coordinated):
    coordinated.serve()
    coordinated.commit(7)
    coordinated.time(5_000)
    waiting = coordinated.committed()
    coordinated.time(5_000)
    assert waiting == [ErrorCode.coordinator_not_available]


def test_below_the_minimum_of_replicas_in_sync_a_commit_is_refused(coordinated):
    coordinated.become(isr=(1,), min_isr=2)
    coordinated.load()
    coordinated.confirm()
    assert coordinated.commit(7) == [ErrorCode.coordinator_not_available]
    assert coordinated.partition.log_end_offset == 0


def test_all_shards_of_a_kind_are_asked_together(coordinated):
    answers = []
    coordinated.coordinators.submit_to_every_host(GROUP_OFFSETS_TOPIC, ListGroups(), answers.append)
    assert answers == [[]]
    coordinated.serve()
    coordinated.commit(7)
    coordinated.follow()
    coordinated.coordinators.submit_to_every_host(GROUP_OFFSETS_TOPIC, ListGroups(), answers.append)
    ((response,),) = answers[1:]
    assert [group.group_id for group in response.groups] == ["g"]


def test_offsets_of_a_deleted_topic_are_removed(coordinated):
    coordinated.serve()
    coordinated.commit(7)
    coordinated.follow()
    coordinated.publish(GROUP_OFFSETS_TOPIC)
    coordinated.follow()
    assert coordinated.committed() == [{}]


def test_a_topic_made_again_under_its_name_begins_without_offsets(coordinated):
    coordinated.serve()
    coordinated.commit(7)
    coordinated.follow()
    coordinated.publish(GROUP_OFFSETS_TOPIC, "events", ids={"events": coordinated.partition.topic_id})
    coordinated.follow()
    assert coordinated.committed() == [{}]


def test_offsets_of_topics_that_were_deleted_while_nobody_coordinated_go_at_the_load(coordinated):
    coordinated.serve()
    coordinated.commit(7)
    coordinated.follow()
    coordinated.become(leader=2, epoch=2)
    coordinated.publish(GROUP_OFFSETS_TOPIC)
    coordinated.serve(epoch=3)
    coordinated.follow()
    assert coordinated.committed() == [{}]


def test_a_reply_that_fails_harms_no_other_request(coordinated, caplog):
    def fail(response):
        raise KeyError("a bug")

    coordinated.serve()
    request = Heartbeat(group_id="g", generation_id=1, member_id="m")
    coordinated.coordinators.submit(GROUP_OFFSETS_TOPIC, request, fail)
    assert "could not be answered" in caplog.text
    assert coordinated.committed() == [{}]
