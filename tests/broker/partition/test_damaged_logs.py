"""Logs that are damaged, at a start or under their broker: who cuts, who serves what, who leads."""

import pytest

from sparklog.broker.partition.answers import ReadRequest
from sparklog.core.replication.actions import CheckLog, HandOver, ProposeIsr
from sparklog.core.replication.leader import IsrReply
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.model.parts import read_parts
from sparklog.records.envelope import split
from sparklog.storage.disk import LocalDisk
from sparklog.storage.recovery.log_recovery import CORRUPTION, Corruption
from tests.broker.partition_harness import Harness, batch, stamped, take_over


@pytest.fixture
def harness(tmp_path) -> Harness:
    return Harness(tmp_path)


def corrupt(harness) -> None:
    harness.told(leader=2, epoch=1)
    take_over(harness.partition, stamped(0, 1, 5), leader_epoch=1)
    harness.log.corruption = Corruption(5, 0, 81, "the CRC of the batch at 5 is wrong")
    LocalDisk().write_atomically(f"{harness.log.directory}/{CORRUPTION}", b"")


def test_a_corrupt_log_is_not_cut_while_its_replica_is_in_the_isr(harness) -> None:
    corrupt(harness)
    assert harness.told(leader=2, epoch=2, isr=(1, 2)) is ErrorCode.kafka_storage_error
    assert harness.log.log_end_offset == 5
    assert harness.log.corruption is not None


@pytest.mark.parametrize("isr", [(1, 2), (2,)])
def test_a_corrupt_log_is_not_cut_while_nobody_leads_and_tells_where_it_ends(harness, isr) -> None:
    corrupt(harness)
    assert harness.told(leader=-1, epoch=2, isr=isr) is ErrorCode.none
    assert harness.log.corruption is not None
    assert harness.partition.end_without_leader(2) == (1, 5)
    assert harness.partition.end_without_leader(1) == (-1, -1)


def test_the_only_replica_in_sync_leads_with_a_corrupt_log_and_serves_what_can_be_read(harness) -> None:
    corrupt(harness)
    assert harness.told(leader=1, epoch=2, isr=(1,), replicas=(1,)) is ErrorCode.none
    assert harness.log.corruption is not None
    whole = harness.partition.reads.read(ReadRequest(0, 10_000), at_least_one_batch=True)
    assert (whole.error, whole.high_watermark) == (ErrorCode.none, 5)
    assert whole.size_bytes > 0
    beyond = harness.partition.reads.read(ReadRequest(5, 10_000), at_least_one_batch=True)
    assert beyond.error is ErrorCode.corrupt_message
    refused = harness.produce(batch())
    assert refused.error is ErrorCode.kafka_storage_error
    assert "the CRC of the batch at 5 is wrong" in refused.message
    assert not harness.partition.is_offline


@pytest.mark.bug(
    "B12", "away", "After a power cut of everything the largest log leads, and accepts no append."
)
def test_a_corrupt_log_that_was_elected_at_a_loss_is_cut_there_and_takes_appends_again(harness) -> None:
    """Found by the simulation: after a power cut of everything the greatest log led, and took nothing."""
    corrupt(harness)
    assert harness.told(leader=1, epoch=3, isr=(1,), lost_in_epoch=2) is ErrorCode.none
    assert harness.log.corruption is None
    assert harness.produce(batch(), acks=1).error is ErrorCode.none


def test_the_only_replica_that_there_is_cuts_nothing_though_it_may_have_lost_something(harness) -> None:
    corrupt(harness)
    assert harness.told(leader=1, epoch=3, isr=(1,), replicas=(1,), lost_in_epoch=3) is ErrorCode.none
    assert harness.log.corruption is not None


def test_what_was_damaged_since_an_election_at_a_loss_is_not_cut(harness) -> None:
    corrupt(harness)
    assert harness.told(leader=1, epoch=2, isr=(1,), replicas=(1,), lost_in_epoch=1) is ErrorCode.none
    assert harness.log.corruption is not None


def test_a_follower_that_has_what_its_leader_cannot_read_any_more_is_not_made_to_cut_it(harness) -> None:
    corrupt(harness)
    harness.told(leader=1, epoch=2, isr=(1,))
    assert harness.follower_fetches(offset=9, last_epoch=1).error is ErrorCode.corrupt_message
    assert harness.follower_fetches(offset=9, last_epoch=1).diverging is None


def rot(harness, at: int) -> None:
    """Flip a bit in the payload of the batch that begins at offset ``at``."""
    position = harness.log.segments[0].locate(at).position
    with open(harness.log.segments[0].file.path, "r+b") as file:
        file.seek(position + 70)
        byte = file.read(1)
        file.seek(position + 70)
        file.write(bytes([byte[0] ^ 1]))


def test_a_leader_whose_follower_refuses_a_batch_finds_it_damaged_and_hands_over(harness) -> None:
    harness.told(leader=1, epoch=1)
    for _ in range(4):
        harness.produce(batch(5), acks=1)
    rot(harness, at=10)
    for _ in range(3):
        assert harness.follower_fetches(offset=5, last_epoch=1).error is ErrorCode.none
    assert CheckLog(5) in harness.taken()
    harness.partition.check_log(5)
    assert HandOver() in harness.taken()
    assert harness.told(leader=2, epoch=2, isr=(2,)) is ErrorCode.none
    assert harness.log.log_end_offset == 10
    assert harness.log.corruption is None


def test_the_only_replica_in_sync_keeps_a_batch_that_rotted_and_serves_all_others(harness) -> None:
    harness.told(leader=1, epoch=1, isr=(1,), replicas=(1,))
    for _ in range(4):
        harness.produce(batch(5))
    rot(harness, at=10)
    harness.taken()
    harness.partition.check_log(5)
    assert HandOver() not in harness.taken()
    reads = {
        offset: harness.partition.reads.read(ReadRequest(offset, 10_000), at_least_one_batch=True)
        for offset in (0, 10, 14, 15)
    }
    assert [one.error for one in reads.values()] == [
        ErrorCode.none, ErrorCode.corrupt_message, ErrorCode.corrupt_message, ErrorCode.none,
    ]  # fmt: skip
    assert [header.base_offset for _, header in split(read_parts(reads[0].parts))] == [0, 5]
    assert harness.produce(batch(5)).error is ErrorCode.none
    assert harness.log.log_end_offset == 25


def test_a_follower_that_lost_its_connection_makes_nobody_give_up_an_intact_log(harness) -> None:
    harness.told(leader=1, epoch=1)
    harness.produce(batch(5), acks=1)
    harness.taken()
    harness.partition.check_log(0)
    assert harness.taken() == []
    assert harness.log.corruption is None


def test_a_corrupt_log_is_cut_once_its_replica_is_out_of_the_isr(harness) -> None:
    corrupt(harness)
    harness.told(leader=2, epoch=2, isr=(1, 2))
    assert harness.told(leader=2, epoch=3, isr=(2,)) is ErrorCode.none
    assert harness.log.corruption is None


@pytest.mark.bug("B4", "away", "A replica that should lead with a corrupt log stays offline.")
def test_a_replica_that_cannot_lead_because_its_log_is_corrupt_follows_later(harness) -> None:
    """Found by the simulation: it stayed offline until its broker restarted."""
    corrupt(harness)
    assert harness.told(leader=1, epoch=2, isr=(1, 2)) is ErrorCode.kafka_storage_error
    assert not harness.partition.is_leader
    assert harness.told(leader=2, epoch=3, isr=(2,)) is ErrorCode.none
    assert harness.log.corruption is None


@pytest.mark.bug(
    "B34",
    "away",
    "A replica requests a damaged batch for ever, though another replica in sync has it intact.",
)
def test_a_leader_with_a_damaged_batch_hands_over_once_it_has_company_in_the_isr(harness) -> None:
    """Found by the simulation: a third replica asked for that batch for ever, with a whole one in sync."""
    harness.told(leader=1, epoch=1, isr=(1,))
    for _ in range(4):
        harness.produce(batch(5), acks=1)
    rot(harness, at=10)
    harness.partition.check_log(5)
    assert HandOver() not in harness.taken()
    harness.follower_fetches(offset=20, last_epoch=1)
    (proposal,) = [effect for effect in harness.taken() if isinstance(effect, ProposeIsr)]
    reply = IsrReply(ErrorCode.none, (BrokerId(1), BrokerId(2)), leader_epoch=1, partition_epoch=1)
    assert harness.partition.on_isr_reply(1, proposal.proposal, reply) == 1
    assert HandOver() in harness.taken()


@pytest.mark.bug("B49", "away", "The next controller has no report of a damaged leader.")
def test_a_leader_with_a_damaged_batch_tells_the_next_controller_of_it(harness) -> None:
    """Found by the simulation, seed 303088: the one that was told died before it had elected another."""
    harness.told(leader=1, epoch=1)
    for _ in range(4):
        harness.produce(batch(5), acks=1)
    assert harness.told(leader=1, epoch=1) is ErrorCode.none
    rot(harness, at=10)
    harness.partition.check_log(5)
    assert harness.told(leader=1, epoch=1) is ErrorCode.kafka_storage_error
    assert harness.partition.is_leader
    assert harness.told(leader=1, epoch=0) is ErrorCode.stale_controller_epoch


@pytest.mark.bug("B49")
def test_a_damaged_leader_hands_over_by_the_isr_that_the_controller_knows(harness) -> None:
    """It wrote that this leader is alone, and died before it said so: nobody else may lead without loss."""
    harness.told(leader=1, epoch=1)
    for _ in range(4):
        harness.produce(batch(5), acks=1)
    rot(harness, at=10)
    harness.partition.check_log(5)
    assert harness.told(leader=1, epoch=1, isr=(1,)) is ErrorCode.none


@pytest.mark.bug("B67", "away", "A replica that repaired its log stays damaged for its controller.")
def test_who_is_told_again_of_its_role_has_it(harness) -> None:
    """The answer was lost: who has cut a damaged log would be taken for damaged while that epoch lasts."""
    corrupt(harness)
    assert harness.told(leader=2, epoch=2, isr=(1, 2)) is ErrorCode.kafka_storage_error
    assert harness.told(leader=2, epoch=3, isr=(2,)) is ErrorCode.none
    assert harness.told(leader=2, epoch=3, isr=(2,)) is ErrorCode.none


@pytest.mark.bug("B35", "away", "Damage is reported after the damaged batch was removed.")
def test_who_asks_for_a_damaged_batch_that_was_deleted_hears_that_the_log_begins_later(harness) -> None:
    """Found by the simulation: it was told of the damage for ever, and never came into the ISR."""
    harness.told(leader=1, epoch=1, isr=(1,), replicas=(1,))
    for _ in range(4):
        harness.produce(batch(5))
    rot(harness, at=10)
    harness.partition.check_log(5)
    assert harness.consumer_fetches(12).error is ErrorCode.corrupt_message
    harness.partition.delete_records(13, live=(), token=9)
    assert harness.consumer_fetches(12).error is ErrorCode.offset_out_of_range
    assert harness.consumer_fetches(13).error is ErrorCode.corrupt_message
    harness.partition.delete_records(15, live=(), token=10)
    assert harness.consumer_fetches(14).error is ErrorCode.offset_out_of_range
    assert harness.consumer_fetches(15).error is ErrorCode.none
