"""Offsets in transactions: pending until the marker, verified before the first, not for replaced members."""

import pytest

from sparklog.core.coordinator.actions import Producer
from sparklog.core.group.requests import (
    DeleteGroup,
    OffsetDelete,
    OffsetToCommit,
    TransactionalOffsetCommit,
)
from sparklog.core.group.settings import GroupSettings
from sparklog.core.producers.latest_connections import LATE
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import DAY_MS, GROUP, INITIAL_DELAY_MS, Client, Coordinator, errors_of

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)
ALICE_S, BOB_S = Producer(7, 0), Producer(8, 0)
NONE = {ErrorCode.none}


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def pipeline(coordinator: Coordinator) -> Client:
    """A consumer that manages no membership here, as one that assigns its partitions itself."""
    return coordinator.client("pipeline")


def commit_of(
    producer: Producer, offset: int, *, guard: int | None = None, metadata: str = ""
) -> TransactionalOffsetCommit:
    offsets = (OffsetToCommit(ORDERS_0, offset, metadata=metadata),)
    return TransactionalOffsetCommit(
        GROUP, producer=producer, generation_id=-1, member_id="", offsets=offsets, guard=guard
    )


# When they count


def test_an_offset_counts_once_its_transaction_is_committed(
    coordinator: Coordinator, pipeline: Client
) -> None:
    assert errors_of(pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5, ORDERS_1: 6})) == NONE
    assert coordinator.committed() == {}
    coordinator.ends(7, is_commit=True)
    assert coordinator.committed() == {ORDERS_0: 5, ORDERS_1: 6}


def test_an_offset_of_an_aborted_transaction_never_counts(coordinator: Coordinator, pipeline: Client) -> None:
    pipeline.commits({ORDERS_0: 1})
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    coordinator.ends(7, is_commit=False)
    assert coordinator.committed() == {ORDERS_0: 1}


def test_an_end_counts_for_its_own_producer_alone(coordinator: Coordinator, pipeline: Client) -> None:
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    pipeline.commits_in_transaction(BOB_S, {ORDERS_1: 6})
    coordinator.ends(8, is_commit=True)
    assert coordinator.committed() == {ORDERS_1: 6}


@pytest.mark.parametrize("first", [7, 8])
def test_of_all_that_is_committed_the_latest_in_the_log_wins(
    coordinator: Coordinator, pipeline: Client, first: int
) -> None:
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    pipeline.commits_in_transaction(BOB_S, {ORDERS_0: 6})
    coordinator.ends(first, is_commit=True)
    coordinator.ends(15 - first, is_commit=True)
    assert coordinator.committed() == {ORDERS_0: 6}


def test_a_plain_commit_behind_a_pending_one_wins(coordinator: Coordinator, pipeline: Client) -> None:
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    pipeline.commits({ORDERS_0: 9})
    coordinator.ends(7, is_commit=True)
    assert coordinator.committed() == {ORDERS_0: 9}


@pytest.mark.parametrize("is_commit", [True, False])
def test_pending_offsets_survive_a_failover(
    coordinator: Coordinator, pipeline: Client, is_commit: bool
) -> None:
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    coordinator.restart()
    assert coordinator.committed() == {}
    coordinator.ends(7, is_commit=is_commit)
    assert coordinator.committed() == ({ORDERS_0: 5} if is_commit else {})
    coordinator.restart()
    assert coordinator.committed() == ({ORDERS_0: 5} if is_commit else {})


# What readers see meanwhile


def test_who_asks_for_stable_offsets_is_told_that_one_is_pending(
    coordinator: Coordinator, pipeline: Client
) -> None:
    pipeline.commits({ORDERS_0: 1, ORDERS_1: 2})
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    stable = coordinator.fetched(ORDERS_0, ORDERS_1, require_stable=True)
    assert [one.error for one in stable] == [ErrorCode.unstable_offset_commit, ErrorCode.none]
    assert coordinator.committed() == {ORDERS_0: 1, ORDERS_1: 2}
    coordinator.ends(7, is_commit=False)
    [one] = coordinator.fetched(ORDERS_0, require_stable=True)
    assert (one.error, one.offset) == (ErrorCode.none, 1)


def test_an_offset_that_is_being_written_is_unstable_too(coordinator: Coordinator, pipeline: Client) -> None:
    coordinator.is_log_slow = True
    asked = pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    assert asked.is_waiting
    [one] = coordinator.fetched(ORDERS_0, require_stable=True)
    assert one.error is ErrorCode.unstable_offset_commit
    coordinator.log_writes()
    assert errors_of(asked) == NONE


# Verification


def test_the_first_offsets_of_a_transaction_need_a_verification_and_later_ones_do_not(
    coordinator: Coordinator,
) -> None:
    asked = coordinator.ask(commit_of(ALICE_S, 5)).answer
    assert asked.errors == ()
    assert coordinator.history == []
    assert errors_of(coordinator.ask(commit_of(ALICE_S, 5, guard=asked.guard))) == NONE
    assert coordinator.ask(commit_of(ALICE_S, 6)).answer.guard is None


@pytest.mark.kafka_bug("K30")
def test_kafka_14402_a_guard_is_void_once_the_producer_s_transaction_has_ended(
    coordinator: Coordinator,
) -> None:
    """The coordinator's answer may be about the transaction that has just ended."""
    guard = coordinator.ask(commit_of(ALICE_S, 5)).answer.guard
    coordinator.ends(7, is_commit=True)
    again = coordinator.ask(commit_of(ALICE_S, 5, guard=guard)).answer
    assert again.guard not in (None, guard)
    assert coordinator.committed() == {}
    assert errors_of(coordinator.ask(commit_of(ALICE_S, 5, guard=again.guard))) == NONE


@pytest.mark.parametrize("epoch", [1, 3])
def test_offsets_in_another_epoch_than_the_pending_ones_need_a_verification_too(
    coordinator: Coordinator, pipeline: Client, epoch: int
) -> None:
    """One that nobody has would refuse the owner's marker for ever."""
    pipeline.commits_in_transaction(Producer(7, 2), {ORDERS_0: 5})
    assert coordinator.ask(commit_of(Producer(7, epoch), 9)).answer.guard is not None
    assert errors_of(coordinator.ask(commit_of(Producer(7, 2), 6))) == NONE
    coordinator.ends(7, is_commit=True)
    assert coordinator.committed() == {ORDERS_0: 6}


def test_pending_offsets_of_before_a_failover_let_in_no_others_unverified(
    coordinator: Coordinator, pipeline: Client
) -> None:
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    coordinator.restart()
    assert coordinator.ask(commit_of(Producer(7, 1), 9)).answer.guard is not None


def test_a_guard_of_the_coordinator_before_is_void(coordinator: Coordinator) -> None:
    coordinator.ask(commit_of(ALICE_S, 5))
    guard = coordinator.ask(commit_of(BOB_S, 5)).answer.guard
    coordinator.restart()
    assert coordinator.ask(commit_of(BOB_S, 5, guard=guard)).answer.guard is not None


def test_a_commit_over_an_older_connection_than_a_later_one_is_late(
    coordinator: Coordinator, pipeline: Client
) -> None:
    assert errors_of(pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 6}, connection=5)) == NONE
    assert pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5}, connection=4).answer is LATE
    coordinator.ends(7, is_commit=True)
    assert coordinator.committed() == {ORDERS_0: 6}


# Members


def test_a_member_that_was_replaced_commits_nothing(coordinator: Coordinator) -> None:
    [alice] = coordinator.stable_group("alice")
    assert errors_of(alice.commits_in_transaction(ALICE_S, {ORDERS_0: 5}, generation_id=7)) == {
        ErrorCode.illegal_generation
    }
    assert errors_of(alice.commits_in_transaction(ALICE_S, {ORDERS_0: 5}, member_id="stranger")) == {
        ErrorCode.unknown_member_id
    }
    assert all(producer is None for _, producer in coordinator.history)
    assert errors_of(alice.commits_in_transaction(ALICE_S, {ORDERS_0: 5})) == NONE


def test_a_static_member_that_was_replaced_is_fenced(coordinator: Coordinator) -> None:
    [alice] = coordinator.static_group("alice")
    old_id = alice.member_id
    twin = coordinator.client("alice", instance="alice")
    twin.joins()
    coordinator.passes(INITIAL_DELAY_MS)
    errors = errors_of(alice.commits_in_transaction(ALICE_S, {ORDERS_0: 5}, member_id=old_id))
    assert errors == {ErrorCode.fenced_instance_id}


def test_a_commit_is_taken_during_a_rebalance(coordinator: Coordinator) -> None:
    """Unlike a plain one (KIP-447): the producer's epoch fences those that are late."""
    [alice] = coordinator.stable_group("alice")
    coordinator.client("bob").joins()
    assert coordinator.state() == "PreparingRebalance"
    assert errors_of(alice.commits_in_transaction(ALICE_S, {ORDERS_0: 5})) == NONE


def test_a_generation_of_a_group_that_nobody_knows_is_refused(pipeline: Client) -> None:
    asked = pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5}, generation_id=3, member_id="m")
    assert errors_of(asked) == {ErrorCode.unknown_member_id}


def test_without_a_generation_anybody_commits_to_a_group_without_members(pipeline: Client) -> None:
    for _ in ("no group yet", "an empty one"):
        asked = pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5}, generation_id=-1, member_id="m")
        assert errors_of(asked) == NONE


def test_metadata_that_are_too_long_are_refused_and_need_no_verification(coordinator: Coordinator) -> None:
    assert errors_of(coordinator.ask(commit_of(ALICE_S, 5, metadata="x" * 5_000))) == {
        ErrorCode.offset_metadata_too_large
    }


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
        (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
    ],
)
def test_offsets_that_the_log_refuses_are_not_pending(
    coordinator: Coordinator, pipeline: Client, refusal: ErrorCode, told: ErrorCode
) -> None:
    coordinator.is_log_slow = True
    asked = pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    coordinator.log_refuses(refusal)
    assert errors_of(asked) == {told}
    [one] = coordinator.fetched(ORDERS_0, require_stable=True)
    assert (one.error, one.offset) == (ErrorCode.none, -1)


# Removal


def test_a_group_with_pending_offsets_is_neither_deleted_nor_expired(pipeline: Client) -> None:
    coordinator = pipeline.coordinator
    coordinator.restart(offsets_retention_ms=DAY_MS)
    pipeline.commits({ORDERS_0: 1})
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    assert coordinator.ask(DeleteGroup(GROUP)).answer.error is ErrorCode.non_empty_group
    coordinator.passes(3 * DAY_MS)
    assert coordinator.committed() == {ORDERS_0: 1}
    coordinator.ends(7, is_commit=True)
    assert coordinator.committed() == {ORDERS_0: 5}
    assert coordinator.ask(DeleteGroup(GROUP)).answer.error is ErrorCode.none
    assert coordinator.state() == "Dead"


def test_offsets_that_are_deleted_do_not_return_with_the_marker(
    coordinator: Coordinator, pipeline: Client
) -> None:
    pipeline.commits({ORDERS_0: 1})
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    coordinator.ask(OffsetDelete(GROUP, topic_partitions=(ORDERS_0,)))
    coordinator.ends(7, is_commit=True)
    assert coordinator.committed() == {}


def test_a_group_that_only_had_pending_offsets_is_gone_after_an_abort(pipeline: Client) -> None:
    coordinator = pipeline.coordinator
    pipeline.commits_in_transaction(ALICE_S, {ORDERS_0: 5})
    coordinator.ends(7, is_commit=False)
    coordinator.passes(GroupSettings().offsets_retention_check_interval_ms)
    assert coordinator.state() == "Dead"
