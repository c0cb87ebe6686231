"""What read-committed consumers get of a partition, and how a producer's first batch is appended."""

from dataclasses import dataclass

import pytest

from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.partition.append_results import AppendResult
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.replication.actions import WakeFetch
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.parts import read_parts
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import split, stamp
from sparklog.records.kafka.encode import Record, build_records_batch
from tests.broker.partition_harness import Harness, base_offset, take_over


@dataclass
class Transactional:
    """A partition that broker 1 leads with broker 2, and transactional producers of it."""

    harness: Harness

    @property
    def partition(self):
        return self.harness.partition

    def batch(self, producer_id: int, sequence: int = -1, epoch: int = 0, count: int = 1) -> bytearray:
        return bytearray(
            build_records_batch(
                [Record(value=b"v")] * count,
                now_ms=1_000,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
        )

    def write(self, producer_id: int, *, count: int = 1) -> int:
        """Append a batch as a coordinator does; its base offset."""
        result = self.harness.produce(self.batch(producer_id, count=count), origin=AppendOrigin.COORDINATOR)
        assert result.error is ErrorCode.none
        return base_offset(result)

    def mark(
        self, producer_id: int, *, commits: bool, epoch: int = 0, coordinator_epoch: int = 0
    ) -> AppendResult:
        end = TransactionEnd(commits, coordinator_epoch)
        marker = build_marker(end, producer_id=producer_id, producer_epoch=epoch, now_ms=1_000)
        return self.harness.produce(marker, origin=AppendOrigin.COORDINATOR)

    def replicate(self) -> None:
        self.harness.follower_fetches(self.partition.log_end_offset)

    def read(self, offset: int = 0, max_bytes: int = 1 << 20):
        """What a read-committed consumer gets: its bases, the aborted transactions, the end of the stable."""
        request = ReadRequest(offset, max_bytes, read_committed=True, from_any_replica=True)
        result = self.partition.reads.read(request, at_least_one_batch=True)
        assert result.error is ErrorCode.none
        bases = [header.base_offset for _, header in split(read_parts(result.parts))]
        return bases, list(result.aborted), result.last_stable_offset


@pytest.fixture
def leader(tmp_path) -> Transactional:
    made = Transactional(Harness(tmp_path))
    made.harness.told(leader=1, epoch=4)
    return made


def test_a_consumer_stops_before_an_open_transaction_until_its_marker_is_committed(leader) -> None:
    leader.write(8)
    leader.mark(8, commits=True)
    leader.write(7, count=3)
    leader.write(8)
    leader.replicate()
    assert leader.read() == ([0, 1], [], 2)
    leader.mark(7, commits=True)
    assert leader.read() == ([0, 1], [], 2), "the marker is not committed"
    leader.mark(8, commits=True)
    leader.replicate()
    assert leader.read() == ([0, 1, 2, 5, 6, 7], [], 8)


def test_a_consumer_gets_the_aborted_transactions_of_just_its_range(leader) -> None:
    for producer_id in (7, 8, 9):
        leader.write(producer_id)
        leader.mark(producer_id, commits=producer_id == 8)
    leader.replicate()
    first, last = AbortedTransaction(7, 0, 1, 2), AbortedTransaction(9, 4, 5, 6)
    assert leader.read() == ([0, 1, 2, 3, 4, 5], [first, last], 6)
    assert leader.read(2) == ([2, 3, 4, 5], [last], 6)
    assert leader.read(0, max_bytes=1) == ([0], [first], 6)
    assert leader.read(2, max_bytes=1) == ([2], [], 6)
    assert leader.read(6) == ([], [], 6)
    uncommitted = leader.harness.consumer_fetches(0)
    assert (uncommitted.aborted, uncommitted.last_stable_offset) == ((), 6)


def test_a_parked_read_committed_fetch_is_woken_by_the_last_stable_offset(leader) -> None:
    leader.write(7)
    leader.replicate()
    leader.harness.taken()
    leader.partition.reads.wait_for_more(30, ReadRequest(0, 1 << 20, read_committed=True))
    leader.write(8)
    leader.replicate()
    assert WakeFetch(30) not in leader.harness.taken()
    leader.mark(7, commits=False)
    leader.replicate()
    assert WakeFetch(30) in leader.harness.taken()


def test_a_follower_serves_read_committed_consumers_by_its_own_log_and_watermark(leader) -> None:
    leader.write(7, count=2)
    leader.write(8)
    leader.mark(7, commits=False)
    leader.replicate()
    leader.harness.told(leader=2, epoch=5)
    assert leader.read() == ([0], [AbortedTransaction(7, 0, 3, 2)], 2)
    leader.partition.reads.wait_for_more(31, ReadRequest(2, 100, read_committed=True, from_any_replica=True))
    end = build_marker(TransactionEnd(False, 0), producer_id=8, producer_epoch=0, now_ms=1_000)
    stamp(end, 0, 4, 5)
    assert take_over(leader.partition, bytes(end), leader_epoch=5, fetch_offset=4, high_watermark=4)
    assert leader.read(2) == ([], [], 2)
    assert take_over(leader.partition, b"", leader_epoch=5, fetch_offset=5, high_watermark=5)
    assert WakeFetch(31) in leader.harness.taken()
    assert leader.read(2) == ([2, 3, 4], [AbortedTransaction(7, 0, 3, 2), AbortedTransaction(8, 2, 4, 5)], 5)


def test_markers_of_older_epochs_are_refused_and_of_unknown_producers_taken(leader) -> None:
    leader.write(7)
    assert leader.mark(7, commits=False, epoch=3, coordinator_epoch=5).error is ErrorCode.none
    assert (
        leader.mark(7, commits=True, epoch=2, coordinator_epoch=5).error is ErrorCode.invalid_producer_epoch
    )
    fenced = leader.mark(7, commits=True, epoch=3, coordinator_epoch=4)
    assert fenced.error is ErrorCode.transaction_coordinator_fenced
    assert leader.mark(99, commits=True).error is ErrorCode.none


def test_markers_need_the_minimum_of_replicas_in_sync(tmp_path) -> None:
    made = Transactional(Harness(tmp_path))
    made.harness.told(leader=1, epoch=4, isr=(1,))
    assert made.mark(7, commits=True).error is ErrorCode.not_enough_replicas


class TestVerification:
    """The guard of a producer's first batch."""

    def append(self, leader, batch: bytearray, guard=None) -> ErrorCode:
        return leader.harness.produce(batch, guard=guard).error

    def begin(self, leader, batch: bytearray):
        return leader.partition.leader_append.begin_verification(batch, split(batch))

    def test_a_first_batch_needs_a_guard_and_the_next_needs_none(self, leader) -> None:
        first, second = leader.batch(7, 0), leader.batch(7, 1)
        assert self.append(leader, first) is ErrorCode.invalid_txn_state
        guard = self.begin(leader, first)
        assert guard is not None
        assert self.append(leader, first, guard) is ErrorCode.none
        assert self.begin(leader, second) is None
        assert self.append(leader, second) is ErrorCode.none

    def test_a_refused_batch_uses_up_no_offset(self, leader) -> None:
        assert self.append(leader, leader.batch(7, 0)) is ErrorCode.invalid_txn_state
        assert leader.partition.log_end_offset == 0

    def test_kafka_14402_a_marker_in_between_makes_the_guard_void(self, leader) -> None:
        batch = leader.batch(7, 0)
        guard = self.begin(leader, batch)
        leader.mark(7, commits=False)
        assert self.append(leader, batch, guard) is ErrorCode.invalid_txn_state
        assert leader.read()[2] == 0
        leader.replicate()
        assert leader.read() == ([0], [], 1)

    def test_a_guard_ends_with_the_leader_epoch(self, leader) -> None:
        batch = leader.batch(7, 0)
        guard = self.begin(leader, batch)
        leader.harness.told(leader=2, epoch=5)
        leader.harness.told(leader=1, epoch=6)
        assert self.append(leader, batch, guard) is ErrorCode.invalid_txn_state

    @pytest.mark.bug(
        "B89", "away", "A transaction fails because a follower leaves while its first batch is verified."
    )
    @pytest.mark.parametrize(("epoch", "answer"), [(5, ErrorCode.none), (6, ErrorCode.invalid_txn_state)])
    def test_a_guard_holds_at_a_leader_that_leads_the_next_epoch_too(self, leader, epoch, answer) -> None:
        """As when a follower has left. In an epoch that it did not hear of, another may have led."""
        batch = leader.batch(7, 0)
        guard = self.begin(leader, batch)
        leader.harness.told(leader=1, epoch=epoch)
        assert self.append(leader, batch, guard) is answer

    def test_the_first_of_two_batches_that_were_verified_together_lets_both_in(self, leader) -> None:
        first, second = leader.batch(7, 0), leader.batch(7, 1)
        guard = self.begin(leader, first)
        self.append(leader, first, guard)
        assert self.append(leader, second, guard) is ErrorCode.none

    def test_a_repeated_batch_is_answered_without_verification(self, leader) -> None:
        batch = leader.batch(7, 0)
        self.append(leader, batch, self.begin(leader, batch))
        leader.mark(7, commits=True)
        again = leader.batch(7, 0)
        assert self.begin(leader, again) is None
        result = leader.harness.produce(again)
        assert (result.error, base_offset(result)) == (ErrorCode.none, 0)

    def test_a_batch_that_is_refused_anyway_and_a_plain_one_are_not_verified(self, leader) -> None:
        leader.mark(7, commits=True, epoch=3)
        assert self.begin(leader, leader.batch(7, 0, epoch=2)) is None
        assert self.append(leader, leader.batch(7, 0, epoch=2)) is ErrorCode.invalid_producer_epoch
        leader.harness.told(leader=2, epoch=5)
        assert self.begin(leader, leader.batch(8, 0)) is None
