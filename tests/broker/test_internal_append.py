"""A coordinator appends in the epoch that it began in, and is answered when replicas have its records."""

from sparklog.broker.internal_append import InternalAppends, InternalBatch
from sparklog.broker.partition.append_results import InDoubt, Refused
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka.encode import Record

TP = TopicPartition("quakes", 0)
"""The replica of the harness; whether a topic is internal is looked at where clients produce."""
ELSEWHERE = TopicPartition("quakes", 9)
RECORDS = [Record(key=b"group", value=b"offset 7"), Record(key=b"other", value=None)]


def batch_of(*, topic_partition=TP, leader_epoch=1, max_bytes=1_000, **options):
    return InternalBatch(
        topic_partition=topic_partition,
        leader_epoch=leader_epoch,
        records=RECORDS,
        max_bytes=max_bytes,
        **options,
    )


def appends_of(member):
    return InternalAppends(member.replicas, member.parts.waits.appends, member.clock)


def append(member, **options):
    answers = []
    appends_of(member).run([batch_of(**options)], 1_000, answers.append)
    return answers


def test_a_coordinators_records_are_answered_when_a_follower_has_them(members):
    for member in members.values():
        member.become(1, 1)
    answers = append(members[1])
    assert (members[1].partition.log_end_offset, answers) == (2, [])
    for _ in range(2):
        members[2].fetch_once()
    assert [(one[TP].error, one[TP].base_offset) for one in answers] == [(ErrorCode.none, 0)]


def test_a_coordinator_of_an_earlier_epoch_appends_nothing(members):
    members[1].become(1, 1, isr=(1,), replicas=(1,), min_isr=1)
    members[1].become(1, 3, isr=(1,), replicas=(1,), min_isr=1)
    answers = append(members[1], leader_epoch=1)
    assert answers[0][TP].error is ErrorCode.not_leader_or_follower
    assert members[1].partition.log_end_offset == 0
    assert append(members[1], leader_epoch=3)[0][TP].error is ErrorCode.none


def test_a_coordinator_of_a_partition_that_is_not_here_is_told_so(members):
    answers = append(members[1], topic_partition=ELSEWHERE)
    assert answers[0][ELSEWHERE].error is ErrorCode.not_leader_or_follower


def test_a_coordinator_writes_for_a_producer_without_numbering_its_batches(members):
    """As TxnOffsetCommit does: the same offsets may be written again, and are no retry."""
    members[1].become(1, 1, isr=(1,), replicas=(1,), min_isr=1)
    results = [append(members[1], producer_id=9, producer_epoch=4)[0][TP] for _ in range(2)]
    assert [(result.error, result.base_offset) for result in results] == [
        (ErrorCode.none, 0),
        (ErrorCode.none, 2),
    ]


def test_a_coordinator_writes_nothing_for_a_producer_that_was_fenced(members):
    members[1].become(1, 1, isr=(1,), replicas=(1,), min_isr=1)
    append(members[1], producer_id=9, producer_epoch=4)
    refused = append(members[1], producer_id=9, producer_epoch=3)[0][TP]
    assert refused.error is ErrorCode.invalid_producer_epoch
    assert members[1].partition.log_end_offset == 2


def test_two_batches_for_one_partition_are_refused_and_neither_is_appended(members):
    members[1].become(1, 1, isr=(1,), replicas=(1,), min_isr=1)
    answers = []
    appends_of(members[1]).run([batch_of(), batch_of()], 1_000, answers.append)
    assert [result.error for result in answers[0].values()] == [ErrorCode.invalid_request]
    assert members[1].partition.log_end_offset == 0


def test_a_batch_above_the_topic_s_largest_is_refused(members):
    members[1].become(1, 1, isr=(1,), replicas=(1,), min_isr=1)
    refused = append(members[1], max_bytes=80)[0][TP]
    assert (type(refused), refused.error) == (Refused, ErrorCode.message_too_large)
    assert members[1].partition.log_end_offset == 0


def test_an_append_that_timed_out_says_where_the_records_end_that_may_still_be_committed(members):
    members[1].become(1, 1)
    answers = append(members[1])
    members[1].timer.fire()
    (timed_out,) = [one[TP] for one in answers]
    assert timed_out == InDoubt(ErrorCode.request_timed_out, 2)


def test_a_refused_append_is_certainly_not_in_the_log(members):
    members[1].become(1, 1, isr=(1,), replicas=(1, 2), min_isr=2)
    (refused,) = [one[TP] for one in append(members[1])]
    assert (type(refused), refused.error) == (Refused, ErrorCode.not_enough_replicas)
