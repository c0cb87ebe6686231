"""Markers of several transactions are appended in one write, and each is judged alone."""

import errno

import pytest

from sparklog.broker.partition.append_results import LateRequest
from sparklog.broker.partition.leader_append import Marker
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.errors import ErrorCode
from sparklog.model.parts import read_parts
from sparklog.model.transaction_end import TransactionEnd
from sparklog.model.write_ids import producer_id_of
from sparklog.records.envelope import split
from sparklog.storage.disk import LocalFile
from tests.broker.partition.test_isolation import Transactional
from tests.broker.partition_harness import Harness, base_offset, once_replicated, take_over
from tests.of_this_thread import of_this_thread

NONE = ErrorCode.none


class Marked(Transactional):
    """A partition whose markers are appended together."""

    def mark_together(self, *markers, connection=None, token=1):
        """The results of markers that ``marker`` describes."""
        built = [
            Marker.build(
                TransactionEnd(commits, changes.get("coordinator_epoch", 0)),
                producer_id=producer_id,
                producer_epoch=changes.get("epoch", 0),
                now_ms=1_000,
            )
            for producer_id, commits, changes in markers
        ]
        appended = self.partition.leader_append.append_markers(built, token, connection=connection)
        return appended.each(once_replicated(appended.together), len(built))


def marker(producer_id, *, commits=True, **changes):
    return producer_id, commits, changes


def told(results):
    return [(result.error.name, base_offset(result)) for result in results]


@pytest.fixture
def leader(tmp_path) -> Marked:
    made = Marked(Harness(tmp_path))
    made.harness.told(leader=1, epoch=4)
    return made


def test_each_of_several_markers_ends_its_transaction_at_an_offset_of_its_own(leader) -> None:
    for producer_id in (7, 8, 9):
        leader.write(producer_id)
    results = leader.mark_together(marker(8), marker(7, commits=False), marker(9, commits=False))
    assert told(results) == [("none", 3), ("none", 4), ("none", 5)]
    leader.replicate()
    aborted = [AbortedTransaction(7, 0, 4, 2), AbortedTransaction(9, 2, 5, 6)]
    assert leader.read() == ([0, 1, 2, 3, 4, 5], aborted, 6)


def test_they_are_one_write_and_their_entries_of_the_index_another(leader, monkeypatch) -> None:
    for producer_id in (7, 8):
        leader.write(producer_id)
    writes, append = [], LocalFile.append

    def spied(file, data) -> None:
        writes.append(len(data))
        append(file, data)

    monkeypatch.setattr(LocalFile, "append", of_this_thread(append, spied))
    leader.mark_together(marker(7, commits=False), marker(8, commits=False))
    assert writes == [2 * 78, 2 * 34]
    assert [one.producer_id for one in leader.partition.log.aborted_transactions(0, 9)] == [7, 8]


def test_the_last_stable_offset_waits_until_the_last_of_them_is_committed(leader) -> None:
    for producer_id in (7, 8):
        leader.write(producer_id)
    leader.replicate()
    leader.mark_together(marker(7), marker(8))
    assert leader.read() == ([], [], 0)
    leader.harness.follower_fetches(3)
    assert leader.read() == ([0], [], 1), "only the first marker is committed"
    leader.replicate()
    assert leader.read() == ([0, 1, 2, 3], [], 4)


def test_a_follower_that_takes_them_in_one_reply_knows_the_same_transactions(leader, tmp_path) -> None:
    for producer_id in (7, 8, 9):
        leader.write(producer_id)
    leader.mark_together(marker(9, commits=False), marker(8), marker(7, commits=False))
    follower = Marked(Harness(tmp_path / "follower"))
    follower.harness.told(leader=2, epoch=4)
    leader.replicate()
    records = leader.harness.follower_fetches(0, last_epoch=-1)
    assert take_over(follower.partition, read_parts(records.parts), leader_epoch=4, high_watermark=6)
    assert follower.read() == leader.read()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_is_refused_keeps_no_other_out_and_takes_no_offset(leader, place) -> None:
    for producer_id in (7, 8):
        leader.write(producer_id)
    leader.mark(30, commits=True, epoch=3, coordinator_epoch=5)
    markers = [marker(7), marker(8)]
    markers.insert(place, marker(30, epoch=2, coordinator_epoch=5))
    expected = [("none", 3), ("none", 4)]
    expected.insert(place, ("invalid_producer_epoch", -1))
    assert told(leader.mark_together(*markers)) == expected
    leader.replicate()
    assert leader.read()[2] == 5


def test_an_older_coordinator_is_refused_for_its_own_transaction_alone(leader) -> None:
    leader.write(7)
    leader.mark(30, commits=True, coordinator_epoch=5)
    results = leader.mark_together(marker(30, coordinator_epoch=4), marker(7, coordinator_epoch=2))
    assert told(results) == [("transaction_coordinator_fenced", -1), ("none", 2)]


def test_one_that_is_late_is_told_so_and_the_others_are_appended(leader) -> None:
    for producer_id in (7, 8):
        leader.write(producer_id)
    leader.mark_together(marker(7), connection=20)
    leader.write(7)
    results = leader.mark_together(marker(7), marker(8), connection=19)
    assert [isinstance(result, LateRequest) for result in results] == [True, False]
    assert results[1].base_offset == 4
    leader.replicate()
    assert leader.read()[2] == 3, "the transaction that producer 7 has begun since is open"


def test_if_all_are_refused_nothing_is_written_and_nobody_waits(leader) -> None:
    leader.mark(30, commits=True, epoch=3)
    before = leader.partition.log_end_offset
    (result,) = leader.mark_together(marker(30, epoch=2))
    assert (result.error, result.waits) == (ErrorCode.invalid_producer_epoch, False)
    assert leader.partition.log_end_offset == before


def test_where_nobody_leads_or_replicas_are_missing_none_is_written(leader) -> None:
    leader.harness.told(leader=1, epoch=5, isr=(1,))
    results = leader.mark_together(marker(7), marker(8))
    assert told(results) == [("not_enough_replicas", -1)] * 2
    leader.harness.told(leader=2, epoch=6)
    results = leader.mark_together(marker(7), marker(8))
    assert told(results) == [("not_leader_or_follower", -1)] * 2
    assert leader.partition.log_end_offset == 0


def test_a_disk_that_fails_writes_none_of_them(leader, monkeypatch) -> None:
    def fail(file, data) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    leader.write(7)
    monkeypatch.setattr(LocalFile, "append", of_this_thread(LocalFile.append, fail))
    assert told(leader.mark_together(marker(7), marker(8))) == [("kafka_storage_error", -1)] * 2
    assert leader.partition.is_offline


def test_members_of_a_write_are_forgotten_with_their_markers_and_their_guards_are_void(leader) -> None:
    members = [producer_id_of(5, number) for number in range(200)]
    for member in members:
        leader.write(member)
    late = leader.batch(members[3], 0)
    results = leader.mark_together(*[marker(one, commits=one != members[7]) for one in members])
    assert told(results) == [("none", 200 + number) for number in range(200)]
    assert leader.partition.log.producers.producers == {}
    guard = leader.partition.leader_append.begin_verification(late, split(late))
    leader.mark_together(marker(members[3]))
    assert leader.harness.produce(late, guard=guard).error is ErrorCode.invalid_txn_state
    leader.replicate()
    assert leader.read(0)[1:] == ([AbortedTransaction(members[7], 7, 207, 8)], 401)
