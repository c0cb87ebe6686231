"""Records are deleted at the leader, and the answer waits for all replicas that live."""

from functools import partial

import pytest

from sparklog.broker.partition.answers import DeletionResult
from sparklog.broker.waiting.joint_wait import Share
from sparklog.core.replication.actions import CompleteDeletion, RaiseLogStart
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.storage.log_config import LogConfig

TP = TopicPartition("quakes", 0)
LIVE = (1, 2)


@pytest.fixture
def pair(members, batch):
    """Broker 1 leads, broker 2 follows; each batch has ten records, three are committed."""
    for member in members.values():
        member.become(1, 1)
    for _ in range(3):
        members[1].produce(batch(10))
    fetch(members, rounds=3)
    assert members[1].partition.high_watermark == 30
    return members


def fetch(members, rounds=2):
    for _ in range(rounds):
        members[2].fetch_once()


def delete(member, offset, live=LIVE, timeout_ms=1_000):
    """Answers appear in the returned list."""
    answers = []
    partition = member.partition
    share = Share(TP, partial(partition.delete_records, offset, live), partition.forget_deletion)
    member.parts.waits.deletions.run([share], timeout_ms, lambda results: answers.extend(results.values()))
    return answers


def test_the_leaders_log_start_rises_and_the_answer_waits_for_the_follower(pair):
    answers = delete(pair[1], 12)
    assert (pair[1].partition.log_start_offset, answers) == (12, [])
    fetch(pair, rounds=1)
    assert (pair[2].partition.log_start_offset, answers) == (12, [])
    fetch(pair, rounds=1)
    assert answers == [DeletionResult(ErrorCode.none, 12)]
    assert len(pair[1].parts.waits.deletions) == 0


@pytest.mark.bug("B47")
def test_a_log_start_above_the_recovery_point_is_flushed_before_checkpoints(pair):
    """Else what was deleted would be back after a crash."""
    log = pair[1].partition.log
    assert not pair[1].partition.log_guard.should_flush_before_checkpoint
    delete(pair[1], 12)
    assert (log.recovery_point, pair[1].partition.log_guard.should_flush_before_checkpoint) == (0, True)
    pair[1].parts.log_dirs.checkpoint_recovery_points = lambda: None
    pair[1].parts.chores.checkpoint_recovery_points()
    assert log.recovery_point == 30
    assert not pair[1].partition.log_guard.should_flush_before_checkpoint


def test_minus_one_deletes_all_that_is_committed_and_nothing_behind_it(pair, batch):
    pair[1].produce(batch(5))
    answers = delete(pair[1], -1)
    assert pair[1].partition.log_start_offset == 30
    fetch(pair, rounds=3)
    assert answers == [DeletionResult(ErrorCode.none, 30)]
    assert pair[2].partition.log_end_offset == 35


@pytest.mark.scenario(
    "S49", "Records cannot be deleted beyond the high watermark: OFFSET_OUT_OF_RANGE (KIP-107)."
)
@pytest.mark.parametrize("offset", [31, 35, -2])
def test_an_offset_beyond_the_high_watermark_is_out_of_range(pair, batch, offset):
    pair[1].produce(batch(5))
    assert delete(pair[1], offset) == [DeletionResult(ErrorCode.offset_out_of_range)]
    assert pair[1].partition.log_start_offset == 0


def test_what_is_deleted_already_is_answered_with_where_the_replicas_begin(pair):
    delete(pair[1], 20)
    fetch(pair, rounds=2)
    assert delete(pair[1], 7) == [DeletionResult(ErrorCode.none, 20)]


def test_a_topic_that_is_only_compacted_keeps_its_records(pair):
    pair[1].partition.log_guard.configure(LogConfig(cleanup_policy=("compact",)))
    assert delete(pair[1], 12) == [DeletionResult(ErrorCode.policy_violation)]
    pair[1].partition.log_guard.configure(LogConfig(cleanup_policy=("compact", "delete")))
    assert delete(pair[1], 12, live=(1,)) == [DeletionResult(ErrorCode.none, 12)]


def test_a_follower_deletes_nothing(pair):
    assert delete(pair[2], 12) == [DeletionResult(ErrorCode.not_leader_or_follower)]


def test_nobody_waits_for_a_replica_whose_broker_is_dead(pair):
    assert delete(pair[1], 12, live=(1,)) == [DeletionResult(ErrorCode.none, 12)]
    answers = delete(pair[1], 15)
    pair[1].parts.roles.on_live_brokers({1})
    assert answers == [DeletionResult(ErrorCode.none, 15)]


def test_time_that_is_up_is_told_and_the_records_are_gone_all_the_same(pair):
    answers = delete(pair[1], 12)
    pair[1].timer.fire()
    assert answers == [DeletionResult(ErrorCode.request_timed_out)]
    fetch(pair, rounds=2)
    assert (len(answers), pair[2].partition.log_start_offset) == (1, 12)
    assert not pair[1].partition._replica.leader.deletions


def test_a_leader_that_is_deposed_answers_at_once(pair):
    answers = delete(pair[1], 12)
    pair[1].become(2, 2)
    assert answers == [DeletionResult(ErrorCode.not_leader_or_follower)]


def test_a_follower_that_begins_anew_within_a_batch_takes_the_whole_of_it(pair, batch):
    """The leader's log begins at 12, in the middle of the batch of 10 to 19."""
    delete(pair[1], 12, live=(1,))
    pair[2].partition.log.truncate_fully_and_start_at(12)
    pair[2].partition.log_guard.log_changed()
    pair[2].become(1, 2)
    pair[1].become(1, 2)
    fetch(pair, rounds=3)
    assert pair[2].partition.log_end_offset == 30
    assert pair[2].partition.log_start_offset == 12
    assert pair[2].partition.log.header_at(12).base_offset == 10
    pair[2].partition.log.check_invariants()


def test_the_low_watermark_is_unknown_until_each_live_follower_has_fetched(pair):
    pair[1].become(1, 2)
    leader = pair[1].partition._replica.leader
    assert leader.on_delete_records(12) == [RaiseLogStart(12)]
    assert leader.on_deletion_waits(7, 0, LIVE, 0) == []
    assert leader.low_watermark == -1
    actions = leader.on_follower_fetch(2, -1, 30, 0, 0)
    assert CompleteDeletion(7, ErrorCode.none, 0) in actions
