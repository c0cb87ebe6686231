"""The partition's shell over a real log: order of effects, failing disks, appends and reads."""

import errno
import itertools
import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.partition.append_results import HeldUp
from sparklog.core.producers.refused_batches import REMEMBERED_MS
from sparklog.core.replication.actions import (
    BackOff,
    BeganLeading,
    CeasedLeading,
    CompleteProduce,
    ProposeIsr,
    ReportLogFailure,
    StartFetching,
    StopFetching,
    WakeFetch,
)
from sparklog.core.replication.leader import Diverging, IsrReply
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import BrokerId, LeaderEpoch
from sparklog.model.parts import read_parts
from sparklog.network.clock import SystemClock
from sparklog.records.envelope import split, stamp
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.storage.disk import SyncFailed, WriteFailed
from tests.broker.partition_harness import TP, Harness, base_offset, batch, stamped, take_over
from tests.of_this_thread import of_this_thread


@pytest.fixture
def harness(tmp_path) -> Harness:
    return Harness(tmp_path)


def test_a_leader_stamps_offsets_and_epoch_into_the_batch(harness) -> None:
    harness.told(leader=1, epoch=4)
    assert base_offset(harness.produce(batch(3))) == 0
    assert base_offset(harness.produce(batch(2))) == 3
    stored = read_parts(harness.follower_fetches(0).parts)
    assert [(h.base_offset, h.leader_epoch, h.record_count) for _, h in split(stored)] == [
        (0, 4, 3),
        (3, 4, 2),
    ]


def test_a_consumer_sees_only_what_is_committed(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(3))
    assert harness.consumer_fetches(0).parts == ()
    harness.follower_fetches(3)
    assert harness.consumer_fetches(0).size_bytes > 0
    assert harness.consumer_fetches(0).high_watermark == 3


def test_a_write_waits_for_the_isr_and_is_answered_in_order_after_the_watermark(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.taken()
    assert harness.produce(batch(), token=5).waits
    assert harness.taken() == []
    harness.follower_fetches(1)
    assert harness.taken() == [CompleteProduce(5, ErrorCode.none)]


@pytest.mark.scenario("S51")
def test_a_repeated_idempotent_batch_is_answered_with_its_first_offset_and_not_appended(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(2, producer_id=9, sequence=0))
    harness.produce(batch(2, producer_id=9, sequence=2))
    again = harness.produce(batch(2, producer_id=9, sequence=0))
    assert (again.error, base_offset(again)) == (ErrorCode.none, 0)
    assert harness.partition.log_end_offset == 4


def test_a_repeated_batch_still_waits_until_it_is_committed(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0), token=1)
    harness.taken()
    assert harness.produce(batch(producer_id=9, sequence=0), token=2).waits
    harness.follower_fetches(1)
    assert CompleteProduce(2, ErrorCode.none) in harness.taken()


@pytest.mark.bug("B56", "words", "A producer is told that a stored batch was not appended.")
def test_a_repeated_batch_is_never_told_that_it_was_not_appended(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0), token=1)
    harness.told(leader=1, epoch=2, isr=(1,))
    harness.taken()
    assert harness.produce(batch(producer_id=9, sequence=1)).error is ErrorCode.not_enough_replicas
    again = harness.produce(batch(producer_id=9, sequence=0), token=2)
    assert (again.error, base_offset(again), again.waits) == (ErrorCode.none, 0, True)
    assert harness.taken() == [CompleteProduce(2, ErrorCode.not_enough_replicas_after_append)]


@pytest.mark.bug("B56")
def test_a_repeated_batch_that_is_committed_is_acknowledged_whatever_the_isr(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0), token=1)
    harness.follower_fetches(1)
    harness.told(leader=1, epoch=2, isr=(1,))
    harness.taken()
    assert harness.produce(batch(producer_id=9, sequence=0), token=2).waits
    assert harness.taken() == [CompleteProduce(2, ErrorCode.none)]


def test_a_gap_in_sequences_is_refused_and_uses_up_no_offset(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0))
    assert harness.produce(batch(producer_id=9, sequence=7)).error is ErrorCode.out_of_order_sequence_number
    assert harness.partition.log_end_offset == 1


def grow_isr(harness):
    """Broker 2 has caught up, and the controller takes it in."""
    harness.follower_fetches(harness.partition.log_end_offset)
    (proposal,) = [effect for effect in harness.taken() if isinstance(effect, ProposeIsr)]
    members = tuple(broker_id for broker_id, _ in proposal.members)
    reply = IsrReply(ErrorCode.none, members, proposal.leader_epoch, proposal.partition_epoch + 1)
    assert harness.partition.on_isr_reply(proposal.leader_epoch, proposal.proposal, reply) == 1


def refused_for_a_small_isr(harness, *sequences, producer_epoch=0):
    """Batches of one record each that come while the leader is alone, and then the ISR is whole again."""
    harness.told(leader=1, epoch=2, isr=(1,))
    for sequence in sequences:
        answer = harness.produce(batch(producer_id=9, producer_epoch=producer_epoch, sequence=sequence))
        assert answer.error is ErrorCode.not_enough_replicas
    grow_isr(harness)


@pytest.mark.bug("B63", "records", "A producer gets a false gap error, and sends records twice.")
def test_batches_after_one_refused_for_a_small_isr_are_refused_until_it_is_resent(
    harness,
) -> None:
    """Five requests are under way, and the ISR grows between two of them: nobody has skipped a number."""
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0))
    refused_for_a_small_isr(harness, 1)
    behind = harness.produce(batch(producer_id=9, sequence=2))
    assert behind.error is ErrorCode.not_enough_replicas
    assert "an earlier batch of this producer was refused" in behind.message
    for sequence in (1, 2):
        assert harness.produce(batch(producer_id=9, sequence=sequence)).error is ErrorCode.none
    assert harness.produce(batch(producer_id=9, sequence=7)).error is ErrorCode.out_of_order_sequence_number


@pytest.mark.bug("B63")
def test_of_a_producer_that_is_not_known_yet_no_later_batch_is_taken_for_the_first(harness) -> None:
    refused_for_a_small_isr(harness, 0)
    assert harness.produce(batch(producer_id=9, sequence=1)).error is ErrorCode.not_enough_replicas
    assert harness.produce(batch(producer_id=9, sequence=0)).error is ErrorCode.none
    assert harness.produce(batch(producer_id=9, sequence=1)).error is ErrorCode.none


def test_a_batch_in_front_of_the_refused_one_is_never_held_up(harness) -> None:
    """It was refused where nobody remembers it; librdkafka takes the answer to a later one for its own."""
    harness.told(leader=2, epoch=1)
    for sequence in (1, 2):
        refused = harness.produce(batch(producer_id=9, sequence=sequence))
        assert refused.error is ErrorCode.not_leader_or_follower
    harness.told(leader=1, epoch=2)
    for sequence in (0, 1, 2):
        assert harness.produce(batch(producer_id=9, sequence=sequence)).error is ErrorCode.none


def test_a_batch_that_was_appended_and_cut_is_expected_before_refused_ones(harness) -> None:
    harness.told(leader=1, epoch=1)
    assert harness.produce(batch(producer_id=9, sequence=0)).waits
    harness.told(leader=2, epoch=2)
    assert harness.produce(batch(producer_id=9, sequence=1)).error is ErrorCode.not_leader_or_follower
    harness.log.truncate_to(0)
    harness.told(leader=1, epoch=3)
    for sequence in (0, 1):
        assert harness.produce(batch(producer_id=9, sequence=sequence)).error is ErrorCode.none


def test_behind_a_refused_batch_an_epoch_that_is_over_is_told_as_that(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, producer_epoch=3, sequence=0))
    refused_for_a_small_isr(harness, 1, producer_epoch=2)
    behind = harness.produce(batch(producer_id=9, producer_epoch=2, sequence=2))
    assert behind.error is ErrorCode.invalid_producer_epoch


def test_after_a_refusal_a_gap_waits_for_what_was_refused(harness) -> None:
    """Nobody knows what that was: a bit had flipped in it."""
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0))
    held_up = harness.produce(batch(producer_id=9, sequence=2), after_refusal=True)
    assert (held_up.error, held_up) == (ErrorCode.not_enough_replicas, HeldUp())
    assert harness.produce(batch(producer_id=9, sequence=3)).error is ErrorCode.not_enough_replicas
    for sequence in (1, 2, 3):
        appended = harness.produce(batch(producer_id=9, sequence=sequence), after_refusal=True)
        assert appended.error is ErrorCode.none


@pytest.mark.bug("B64")
def test_after_a_refusal_a_new_producer_begins_with_its_first_number(harness) -> None:
    harness.told(leader=1, epoch=1)
    assert isinstance(harness.produce(batch(producer_id=9, sequence=1), after_refusal=True), HeldUp)
    for sequence in (0, 1):
        appended = harness.produce(batch(producer_id=9, sequence=sequence), after_refusal=True)
        assert appended.error is ErrorCode.none


def test_after_a_refusal_who_has_no_numbers_is_not_held_up(harness) -> None:
    harness.told(leader=1, epoch=1)
    assert harness.produce(batch(), after_refusal=True).error is ErrorCode.none


def test_after_a_refusal_numbers_without_a_producer_id_hold_nothing_up(harness) -> None:
    harness.told(leader=1, epoch=1)
    assert harness.produce(batch(sequence=7), after_refusal=True).error is ErrorCode.none


def test_after_a_refusal_an_epoch_that_is_over_is_told_as_that(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, producer_epoch=3, sequence=0))
    over = harness.produce(batch(producer_id=9, producer_epoch=2, sequence=7), after_refusal=True)
    assert over.error is ErrorCode.invalid_producer_epoch


def test_what_was_held_up_itself_is_before_what_follows_it(harness) -> None:
    """Of a producer that its log has forgotten, and that begins with 50: 51 must not come first when nobody
    remembers the refusal any more.
    """
    harness.told(leader=1, epoch=1)
    assert isinstance(harness.produce(batch(producer_id=9, sequence=50), after_refusal=True), HeldUp)
    assert isinstance(harness.produce(batch(producer_id=9, sequence=51)), HeldUp)
    for sequence in (50, 51):
        assert harness.produce(batch(producer_id=9, sequence=sequence)).error is ErrorCode.none


def test_after_a_refusal_a_copy_of_what_is_in_the_log_waits_for_nothing(harness) -> None:
    """A refusal alike would say that it is not there."""
    harness.told(leader=1, epoch=1)
    for sequence in range(8):
        harness.produce(batch(producer_id=9, sequence=sequence))
    copy = harness.produce(batch(producer_id=9, sequence=1), after_refusal=True)
    assert copy.error is ErrorCode.out_of_order_sequence_number


def test_nothing_is_in_front_of_a_new_producers_number_0(harness) -> None:
    """A number that is far ahead of it would be behind it, as numbers wrap."""
    refused_for_a_small_isr(harness, 0x7F00_0000)
    assert harness.produce(batch(producer_id=9, sequence=0)).error is ErrorCode.none


def test_what_was_refused_is_forgotten_in_time(harness) -> None:
    harness.told(leader=2, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0))
    now_ms = SystemClock().monotonic_ms()
    harness.partition.on_tick(now_ms)
    assert harness.partition._gate._refused.batches
    harness.partition.on_tick(now_ms + REMEMBERED_MS)
    assert not harness.partition._gate._refused.batches


def test_a_refused_batch_holds_up_no_other_producer_and_no_later_epoch_of_its_own(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0))
    refused_for_a_small_isr(harness, 1)
    assert harness.produce(batch(producer_id=8, sequence=5)).error is ErrorCode.none
    assert harness.produce(batch(producer_id=8, sequence=9)).error is ErrorCode.out_of_order_sequence_number
    assert harness.produce(batch(producer_id=9, producer_epoch=1, sequence=0)).error is ErrorCode.none


@pytest.mark.bug("B63")
def test_batches_after_one_that_preceded_its_leaders_role_wait_for_it(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0))
    harness.told(leader=2, epoch=2)
    for sequence in (1, 2):
        refused = harness.produce(batch(producer_id=9, sequence=sequence))
        assert refused.error is ErrorCode.not_leader_or_follower
    harness.told(leader=1, epoch=3)
    assert harness.produce(batch(producer_id=9, sequence=3)).error is ErrorCode.not_enough_replicas
    for sequence in (1, 2, 3):
        assert harness.produce(batch(producer_id=9, sequence=sequence)).error is ErrorCode.none


def test_a_producer_whose_refused_batch_another_leader_took_goes_on_behind_it(harness) -> None:
    harness.told(leader=2, epoch=1)
    assert harness.produce(batch(producer_id=9, sequence=0)).error is ErrorCode.not_leader_or_follower
    records = batch(producer_id=9, sequence=0)
    stamp(records, 0, 0, 1)
    assert take_over(harness.partition, records, leader_epoch=1)
    harness.told(leader=1, epoch=2)
    assert harness.produce(batch(producer_id=9, sequence=1)).error is ErrorCode.none


def test_a_follower_refuses_writes_and_reads(harness) -> None:
    harness.told(leader=2, epoch=1)
    assert harness.produce(batch()).error is ErrorCode.not_leader_or_follower
    assert harness.consumer_fetches(0).error is ErrorCode.not_leader_or_follower


def test_a_follower_takes_over_a_reply_byte_for_byte_with_the_leaders_watermark(harness) -> None:
    harness.told(leader=2, epoch=3)
    assert harness.taken() == [StartFetching(BrokerId(2), LeaderEpoch(3))]
    records = batch(4)
    records[0:16] = (100 - 100).to_bytes(8, "big") + records[8:12] + (3).to_bytes(4, "big")
    took = harness.partition.follower_append.append(
        records,
        split(records),
        leader_epoch=3,
        fetch_offset=0,
        leader_high_watermark=2,
        leader_log_start_offset=0,
    )
    assert took
    assert (harness.partition.log_end_offset, harness.partition.high_watermark) == (4, 2)
    assert harness.log.epochs.latest_epoch == 3


def test_a_reply_to_an_earlier_question_is_dropped(harness) -> None:
    harness.told(leader=2, epoch=3)
    records = batch()
    took = harness.partition.follower_append.append(
        records,
        split(records),
        leader_epoch=2,
        fetch_offset=0,
        leader_high_watermark=1,
        leader_log_start_offset=0,
    )
    assert not took
    assert harness.partition.log_end_offset == 0


def test_a_deposed_leader_truncates_where_its_log_parts_from_the_new_leaders(harness) -> None:
    """KIP-101"""
    harness.told(leader=1, epoch=1)
    harness.produce(batch(5))
    harness.produce(batch(5))
    harness.told(leader=2, epoch=2)
    position = harness.partition.follower_append.fetch_position()
    assert (position.fetch_offset, position.last_fetched_epoch) == (10, 1)
    harness.partition.follower_append.on_diverging(2, 10, Diverging(1, 5), 0)
    assert harness.partition.log_end_offset == 5


def test_a_diverging_fetch_gets_no_records_and_does_not_count_as_progress(harness) -> None:
    harness.told(leader=1, epoch=2)
    harness.produce(batch(5))
    harness.taken()
    result = harness.follower_fetches(5, last_epoch=9)
    assert result.error is ErrorCode.offset_out_of_range
    result = harness.follower_fetches(9, last_epoch=2)
    assert result.diverging == Diverging(2, 5)
    assert harness.partition.high_watermark == 0


def test_a_parked_fetch_of_a_partition_without_a_leader_is_woken_to_hear_so(harness) -> None:
    harness.told(leader=2, epoch=1)
    harness.taken()
    harness.partition.reads.wait_for_more(8, ReadRequest(0, 100))
    assert harness.taken() == [WakeFetch(8)]


@pytest.mark.scenario("S47")
def test_a_disk_that_fails_takes_the_partition_offline_before_anybody_hears_of_the_append(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(), token=1)
    harness.taken()

    def broken(*_args):
        raise OSError(28, "No space left on device")

    harness.log.append = broken
    assert harness.produce(batch(), token=2).error is ErrorCode.kafka_storage_error
    assert harness.partition.is_offline
    assert harness.taken() == [
        CompleteProduce(1, ErrorCode.not_leader_or_follower),
        CeasedLeading(1),
        StopFetching(),
        ReportLogFailure(f"the log of {TP} failed: [Errno 28] No space left on device"),
    ]


def test_an_epoch_whose_first_write_fails_is_announced_with_its_end(harness) -> None:
    """The step's other effects are dropped; without these a coordinator would hear of epoch 1 for ever."""
    harness.told(leader=1, epoch=1)
    harness.taken()

    def broken(*_):
        raise OSError(28, "No space left on device")

    harness.log.assign_epoch = broken
    assert harness.told(leader=1, epoch=2) is ErrorCode.kafka_storage_error
    announced = [effect for effect in harness.taken() if isinstance(effect, BeganLeading | CeasedLeading)]
    assert announced == [CeasedLeading(1), BeganLeading(2), CeasedLeading(2)]
    assert harness.consumer_fetches(0).error is ErrorCode.kafka_storage_error
    assert harness.told(leader=1, epoch=2) is ErrorCode.kafka_storage_error


@pytest.mark.bug("B25", "records", "A disk that failed a write is trusted with data that it never wrote.")
@pytest.mark.bug(
    "B57", "records", "A disk that went read-only is trusted again with data that it never wrote."
)
@pytest.mark.parametrize(
    ("error", "is_suspect"),
    [
        (OSError(errno.ENOSPC, "full"), False),
        (OSError(errno.EIO, "of a read"), False),
        (WriteFailed(errno.EIO, "of a write"), True),
        (OSError(errno.EROFS, "read-only"), True),
    ],
)
def test_a_write_that_the_device_or_file_system_fails_makes_the_directory_suspect(
    harness, error, is_suspect
) -> None:
    harness.told(leader=1, epoch=1)

    def broken(*_args):
        raise error

    harness.log.append = broken
    assert harness.produce(batch()).error is ErrorCode.kafka_storage_error
    assert harness.taken()[-1].is_suspect is is_suspect


@pytest.mark.bug("B51")
@pytest.mark.bug("B53", "away", "A partition whose flush could not begin is offline without a report.")
@pytest.mark.parametrize("fails", ["begin_flush", "run"])
@pytest.mark.parametrize(
    ("error", "is_suspect"),
    [
        (OSError(errno.ENOSPC, "full"), False),
        (OSError(errno.EROFS, "the file system has given up"), True),
        (SyncFailed(errno.EIO, "lost"), True),
    ],
)
def test_a_flush_that_fails_is_reported_and_a_failed_fsync_makes_the_directory_suspect(
    harness, fails, error, is_suspect
) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(), acks=1)
    harness.taken()

    def broken(*_args):
        raise error

    if fails == "begin_flush":
        harness.log.begin_flush = broken
    else:
        harness.log.begin_flush = lambda: SimpleNamespace(run=broken)
    harness.partition.log_guard.flush()
    assert harness.partition.is_offline
    assert harness.taken()[-1] == ReportLogFailure(f"the log of {TP} failed: {error}", is_suspect)


@pytest.mark.bug("B25")
@pytest.mark.parametrize("ask", ["fetch", "list offsets"])
def test_a_read_that_had_to_write_an_index_anew_and_could_not_takes_the_partition_offline(
    harness, ask
) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(), acks=1)
    harness.taken()

    def broken(*_args, **_named):
        raise WriteFailed(errno.EIO, "of an index")

    harness.log.read = harness.log.offset_for_timestamp = broken
    if ask == "fetch":
        assert harness.follower_fetches(0).error is ErrorCode.kafka_storage_error
    else:
        asked = harness.partition.reads.leader_offset(-1, lambda _leader, log: log.offset_for_timestamp(0))
        assert asked is ErrorCode.kafka_storage_error
    assert harness.partition.is_offline
    assert harness.taken()[-1].is_suspect


def test_effects_leave_in_order_although_many_threads_append(harness) -> None:
    harness.told(leader=1, epoch=1, isr=(1,), replicas=(1,))
    harness.taken()

    tokens, offsets = itertools.count(), {}

    def append_many() -> None:
        for token in itertools.islice(tokens, 50):
            offsets[token] = base_offset(harness.produce(batch(), token=token))

    threads = [threading.Thread(target=append_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert harness.partition.high_watermark == 200
    completed = [offsets[effect.token] for effect in harness.taken() if isinstance(effect, CompleteProduce)]
    assert completed == list(range(200))


def test_a_follower_that_catches_up_is_proposed_for_the_isr_once(harness) -> None:
    harness.told(leader=1, epoch=1, isr=(1,))
    harness.taken()
    harness.follower_fetches(0)
    harness.follower_fetches(0)
    (proposal,) = [effect for effect in harness.taken() if isinstance(effect, ProposeIsr)]
    assert proposal.members == ((1, 10), (2, 20))


def test_flushing_raises_the_recovery_point(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(3))
    assert harness.log.recovery_point == 0
    harness.partition.log_guard.flush()
    assert harness.log.recovery_point == 3


def test_a_failed_fsync_takes_the_partition_offline(harness, monkeypatch) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch())
    flush = type(harness.log.begin_flush())

    def broken(_self):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(flush, "run", of_this_thread(flush.run, broken))
    harness.partition.log_guard.flush()
    assert harness.partition.is_offline
    assert harness.log.recovery_point == 0


def test_a_batch_that_a_reply_cuts_off_is_not_appended(harness) -> None:
    harness.told(leader=2, epoch=3)
    assert take_over(harness.partition, stamped(0, 3, 2) + stamped(2, 3)[:70], leader_epoch=3)
    assert harness.partition.log_end_offset == 2
    assert take_over(harness.partition, stamped(2, 3), leader_epoch=3, fetch_offset=2)
    assert harness.log.size_bytes == 2 * len(batch())


def test_bytes_of_a_later_epoch_than_the_one_asked_in_are_not_taken_over(harness) -> None:
    """KAFKA-18723: the leader was deposed and truncated while the reply was on its way by sendfile."""
    harness.told(leader=2, epoch=3)
    harness.taken()
    assert take_over(harness.partition, stamped(0, 3) + stamped(1, 4), leader_epoch=3)
    assert harness.partition.log_end_offset == 1
    assert not take_over(harness.partition, stamped(1, 4), leader_epoch=3, fetch_offset=1)
    assert harness.log.epochs.latest_epoch == 3
    assert harness.taken() == [BackOff(ErrorCode.corrupt_message)]


def test_batches_that_do_not_continue_the_log_are_refused_and_the_partition_stays_online(harness) -> None:
    harness.told(leader=2, epoch=3)
    take_over(harness.partition, stamped(0, 3, 5), leader_epoch=3)
    assert not take_over(harness.partition, stamped(3, 3), leader_epoch=3, fetch_offset=5)
    assert not take_over(harness.partition, stamped(5, 2), leader_epoch=3, fetch_offset=5)
    assert take_over(harness.partition, stamped(5, 3), leader_epoch=3, fetch_offset=5)
    assert not harness.partition.is_offline


def test_an_effect_that_fails_stops_neither_the_next_nor_the_one_who_delivers(harness) -> None:
    told = []

    def outlet(effect):
        if not told:
            told.append(effect)
            raise CorruptBatch("an unrelated reader's trouble")
        told.append(effect)

    harness.told(leader=1, epoch=1)
    harness.produce(batch(), token=1)
    harness.partition.log_guard._outlet = outlet
    harness.follower_fetches(1)
    assert told == [CompleteProduce(1, ErrorCode.none)]


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (CorruptBatch("no batch there"), ErrorCode.corrupt_message),
        (OSError(5, "Input/output error"), ErrorCode.kafka_storage_error),
    ],
)
def test_a_range_that_cannot_be_read_is_answered_with_an_error(harness, trouble, error) -> None:
    harness.told(leader=1, epoch=1)

    def broken(*_args, **_named):
        raise trouble

    harness.log.read = broken
    assert harness.consumer_fetches(0).error is error
    assert harness.partition.reads.leader_offset(-1, broken) is error
    assert harness.produce(batch(), acks=1).error is ErrorCode.none


def test_a_log_left_half_changed_by_a_bug_takes_the_partition_offline(harness) -> None:
    harness.told(leader=1, epoch=1)

    def broken(*_args):
        raise AssertionError("the file is longer than the segment")

    harness.log.append = broken
    assert harness.produce(batch()).error is ErrorCode.kafka_storage_error
    assert harness.partition.is_offline


def test_producers_that_fell_silent_are_forgotten(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(producer_id=9, sequence=0))
    harness.partition.log_guard.expire_producers(60_000)
    assert list(harness.log.producers.producers) == [9]
    harness.partition.log_guard.expire_producers(0)
    assert list(harness.log.producers.producers) == []


@pytest.mark.parametrize(
    ("lost_in_epoch", "sequence", "error"),
    [
        pytest.param(-1, 5, ErrorCode.invalid_txn_state, id="no loss: unverified only"),
        pytest.param(3, 5, ErrorCode.out_of_order_sequence_number, id="its beginning may be lost"),
        pytest.param(3, 0, ErrorCode.invalid_txn_state, id="it begins here"),
    ],
)
def test_a_transaction_whose_beginning_may_be_lost_is_not_continued(tmp_path, lost_in_epoch, sequence, error):
    harness = Harness(tmp_path)
    harness.told(1, 4, isr=(1,), replicas=(1,), lost_in_epoch=lost_in_epoch)
    records = bytearray(
        build_records_batch(
            [Record(value=b"a")],
            now_ms=1_000,
            producer_id=5,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
    )
    assert harness.produce(records).error is error


def test_a_producer_without_a_transaction_begins_at_any_sequence_also_after_a_loss(tmp_path):
    harness = Harness(tmp_path)
    harness.told(1, 4, isr=(1,), replicas=(1,), lost_in_epoch=3)
    assert harness.produce(batch(producer_id=5, sequence=7)).error is ErrorCode.none
