"""Producer states: what counts as a retry, what as a gap, and what a snapshot keeps."""

import dataclasses
import struct

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.core.producers.producer_state import (
    NO_SEQUENCE,
    PRODUCERS_HANDED_ON_MAX,
    SEQUENCE_MAX,
    CorruptSnapshot,
    Duplicate,
    Fresh,
    ProducerBatch,
    ProducerStates,
    RefusedSequence,
    handed_on,
    taken_over,
)
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import ProducerId
from sparklog.model.transaction_end import TransactionEnd
from sparklog.model.write_ids import FIRST_PRODUCER_ID


def batch(
    first: int,
    last: int | None = None,
    *,
    offset: int = 0,
    epoch: int = 0,
    pid: int = 7,
    transactional: bool = False,
) -> ProducerBatch:
    last = first if last is None else last
    return ProducerBatch(
        producer_id=pid,
        producer_epoch=epoch,
        first_sequence=first,
        last_sequence=last,
        first_offset=offset,
        last_offset=offset + (last - first) % (SEQUENCE_MAX + 1),
        timestamp_ms=1_000 + offset,
        is_transactional=transactional,
    )


def marker(
    *, offset: int, epoch: int = 0, pid: int = 7, commits: bool = True, coordinator_epoch: int = 0
) -> ProducerBatch:
    plain = batch(0, offset=offset, epoch=epoch, pid=pid, transactional=True)
    end = TransactionEnd(commits, coordinator_epoch)
    return dataclasses.replace(plain, first_sequence=-1, last_sequence=-1, is_control=True, end=end)


def states_after(*batches: ProducerBatch) -> ProducerStates:
    states = ProducerStates()
    for one in batches:
        states.apply(one, now_ms=5_000)
    states.check_invariants()
    return states


def refusal(states: ProducerStates, one: ProducerBatch) -> ErrorCode:
    verdict = states.check(one)
    assert isinstance(verdict, RefusedSequence), verdict
    assert str(one.producer_id) in verdict.message
    return verdict.code


def test_an_unknown_producer_may_start_anywhere() -> None:
    assert ProducerStates().check(batch(42)) == Fresh()


def test_the_next_sequence_is_fresh() -> None:
    assert states_after(batch(0, 4)).check(batch(5, 9, offset=5)) == Fresh()


def test_a_gap_and_an_overlap_are_out_of_order() -> None:
    states = states_after(batch(0, 4))
    assert refusal(states, batch(6, offset=5)) == ErrorCode.out_of_order_sequence_number
    assert refusal(states, batch(4, 6, offset=5)) == ErrorCode.out_of_order_sequence_number


@pytest.mark.scenario(
    "S51", "Any of a producer's last five batches, sent again, is answered with its own offsets (KIP-98)."
)
def test_any_of_the_last_five_batches_is_answered_with_its_own_offsets() -> None:
    states = states_after(*(batch(number, offset=100 + number) for number in range(6)))
    for number in range(1, 6):
        assert states.check(batch(number)) == Duplicate(100 + number, 100 + number, 1_100 + number)
    assert refusal(states, batch(0)) == ErrorCode.out_of_order_sequence_number


def test_a_batch_of_another_extent_is_no_retry() -> None:
    assert refusal(states_after(batch(0, 4)), batch(0, 3)) == ErrorCode.out_of_order_sequence_number


def test_an_older_epoch_is_fenced() -> None:
    assert refusal(states_after(batch(0, epoch=3)), batch(1, epoch=2)) == ErrorCode.invalid_producer_epoch


def test_a_newer_epoch_begins_at_zero_and_forgets_the_old_window() -> None:
    states = states_after(batch(0, 4, epoch=0))
    assert refusal(states, batch(5, epoch=1)) == ErrorCode.out_of_order_sequence_number
    assert states.check(batch(0, 4, epoch=1)) == Fresh()
    states.apply(batch(0, 4, epoch=1, offset=5), 0)
    assert states.check(batch(0, 4, epoch=1)) == Duplicate(5, 9, 1_005)


@pytest.mark.scenario("S52", "Sequences go on at 0 after 2³¹ − 1.")
def test_sequences_wrap_to_zero() -> None:
    assert states_after(batch(SEQUENCE_MAX)).check(batch(0, offset=1)) == Fresh()
    wrapped = dataclasses.replace(batch(SEQUENCE_MAX - 1, offset=0), last_sequence=1, last_offset=3)
    assert states_after(wrapped).check(batch(2, offset=4)) == Fresh()


def test_a_producer_id_without_a_sequence_is_refused() -> None:
    assert refusal(ProducerStates(), batch(-1)) == ErrorCode.invalid_record


def test_a_coordinators_batch_has_no_sequence_and_is_no_retry() -> None:
    coordinators = batch(NO_SEQUENCE, offset=10)
    states = states_after(batch(0, 9), coordinators)
    assert states.check(coordinators, AppendOrigin.COORDINATOR) == Fresh()
    assert states.check(batch(10, offset=11)) == Fresh(), "its producer's own numbers go on"


def test_a_coordinators_batch_of_an_older_epoch_is_fenced() -> None:
    verdict = states_after(batch(0, epoch=3)).check(batch(NO_SEQUENCE, epoch=2), AppendOrigin.COORDINATOR)
    assert isinstance(verdict, RefusedSequence)
    assert verdict.code is ErrorCode.invalid_producer_epoch


def test_replicated_batches_are_taken_as_they_come() -> None:
    states = states_after(batch(0), batch(9, offset=1), batch(3, offset=2, epoch=2))
    assert states.check(batch(4, offset=3, epoch=2)) == Fresh()


def test_an_open_transaction_admits_only_transactional_batches_until_its_marker() -> None:
    states = states_after(batch(0, offset=10, transactional=True), batch(1, offset=11, transactional=True))
    assert states.transactions.first_open() == 10
    assert refusal(states, batch(2, offset=12)) == ErrorCode.invalid_txn_state
    assert states.check(batch(2, offset=12, transactional=True)) == Fresh()
    states.apply(marker(offset=12), 0)
    assert states.transactions.first_open() is None
    assert states.check(batch(2, offset=13)) == Fresh()


def test_a_marker_with_a_newer_epoch_makes_the_next_batch_start_at_zero() -> None:
    states = states_after(batch(0, offset=1, transactional=True), marker(offset=2, epoch=1))
    assert refusal(states, batch(1, epoch=0)) == ErrorCode.invalid_producer_epoch
    assert states.check(batch(0, epoch=1, offset=3)) == Fresh()


@pytest.mark.scenario(
    "S53", "A deposed transaction coordinator's markers are fenced: TRANSACTION_COORDINATOR_FENCED."
)
def test_a_marker_of_an_older_coordinator_is_fenced_and_of_an_unknown_producer_taken() -> None:
    states = states_after(batch(0, transactional=True), marker(offset=1, coordinator_epoch=4))
    verdict = states.check(marker(offset=2, coordinator_epoch=3), AppendOrigin.COORDINATOR)
    assert isinstance(verdict, RefusedSequence)
    assert verdict.code is ErrorCode.transaction_coordinator_fenced
    for taken in (marker(offset=2, coordinator_epoch=4), marker(offset=2, pid=9, coordinator_epoch=0)):
        assert states.check(taken, AppendOrigin.COORDINATOR) == Fresh()


def test_what_compaction_left_of_a_batch_or_marker_begins_and_ends_no_transaction() -> None:
    emptied = dataclasses.replace(batch(0, transactional=True), has_records=False)
    assert states_after(emptied).transactions.first_open() is None
    empty_marker = dataclasses.replace(marker(offset=5), has_records=False, end=None)
    assert states_after(batch(0, transactional=True), empty_marker).transactions.first_open() == 0


def test_an_abort_marker_tells_what_it_aborts_and_a_commit_marker_nothing() -> None:
    states = states_after(
        batch(0, offset=3, transactional=True), batch(0, offset=5, pid=8, transactional=True)
    )
    assert states.apply(marker(offset=6, commits=False), 0) == AbortedTransaction(7, 3, 6, 5)
    assert states.apply(marker(offset=7, pid=8), 0) is None
    assert states.apply(marker(offset=8, commits=False), 0) is None, "it had none"


def test_only_a_batch_that_begins_a_transaction_awaits_verification() -> None:
    states = states_after(batch(0, transactional=True))
    assert not states.awaits_verification(batch(1, transactional=True))
    assert states.awaits_verification(batch(0, epoch=1, transactional=True))
    assert states.awaits_verification(batch(0, pid=8, transactional=True))
    assert not states.awaits_verification(batch(0, pid=8))
    states.apply(marker(offset=1), 0)
    assert states.awaits_verification(batch(1, transactional=True))


def test_ended_transactions_are_in_a_snapshot_until_their_markers_are_committed() -> None:
    states = states_after(batch(0, offset=3, transactional=True), marker(offset=4))
    assert ProducerStates.restore(states.snapshot()).transactions.first_unstable(4) == 3
    states.transactions.on_high_watermark(5)
    assert ProducerStates.restore(states.snapshot()).transactions.first_unstable(5) is None


def test_a_snapshot_from_before_ended_transactions_were_in_it_is_read() -> None:
    data = states_after(batch(0, 4), batch(0, offset=5, pid=8, transactional=True)).snapshot()
    body = data[6:].replace(b"spk2" + bytes(4), b"spk1")
    restored = ProducerStates.restore(data[:2] + struct.pack(">I", crc32c(body)) + body)
    assert restored.snapshot() == data


@pytest.mark.parametrize(
    ("count", "entry", "why"),
    [
        (1, (5, 5), "no sense"),
        (1, (-1, 3), "no sense"),
        (2, (1, 3), "cannot hold"),
        (-1, (1, 3), "cannot hold"),
    ],
)
def test_ended_transactions_of_no_sense_are_not_taken_over(count, entry, why) -> None:
    body = struct.pack(">i", 0) + b"spk2" + struct.pack(">i", count) + struct.pack(">qq", *entry)
    with pytest.raises(CorruptSnapshot, match=why):
        ProducerStates.restore(struct.pack(">hI", 1, crc32c(body)) + body)


def test_the_oldest_open_transaction_decides() -> None:
    states = states_after(
        batch(0, offset=3, pid=2, transactional=True), batch(0, offset=5, pid=1, transactional=True)
    )
    assert states.transactions.first_open() == 3


def test_silent_producers_expire_unless_their_transaction_is_open() -> None:
    states = states_after(batch(0, pid=1), batch(0, pid=2, transactional=True))
    states.apply(batch(0, pid=3), now_ms=9_000)
    assert states.expire(now_ms=9_999, max_age_ms=5_000) == []
    assert states.expire(now_ms=10_000, max_age_ms=5_000) == [1]
    assert set(states.producers) == {2, 3}


applied = st.lists(
    st.builds(
        lambda pid, epoch, first, count, transactional, control: (
            pid,
            epoch,
            first,
            count,
            transactional,
            control,
        ),
        st.integers(0, 3),
        st.integers(0, 2),
        st.integers(0, SEQUENCE_MAX),
        st.integers(1, 9),
        st.booleans(),
        st.booleans(),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(applied)
def test_a_snapshot_restores_everything_all_five_batches_included(
    script: list[tuple[int, int, int, int, bool, bool]],
) -> None:
    states, offset = ProducerStates(), 0
    for pid, epoch, first, count, transactional, control in script:
        last = (first + count - 1) % (SEQUENCE_MAX + 1)
        one = ProducerBatch(
            producer_id=pid,
            producer_epoch=epoch,
            first_sequence=first,
            last_sequence=last,
            first_offset=offset,
            last_offset=offset + count - 1,
            timestamp_ms=offset,
            is_transactional=transactional,
            is_control=control,
            end=TransactionEnd(transactional, epoch) if control else None,
        )
        states.apply(one, now_ms=offset)
        offset += count
    states.check_invariants()
    assert ProducerStates.restore(states.snapshot()) == states


def test_what_is_handed_on_at_a_log_start_is_what_its_batches_no_longer_tell() -> None:
    states = states_after(*(batch(number, offset=number) for number in range(3)), batch(0, offset=3, pid=8))
    before = states.before(2)
    assert list(before.producers) == [7]
    assert before.check(batch(1)) == Duplicate(1, 1, 1_001)
    for later in (batch(2, offset=2), batch(0, offset=3, pid=8)):
        before.apply(later, 5_000)
    assert before == states
    assert states_after(batch(0, offset=4)).before(4) == ProducerStates()


def test_a_batch_across_the_log_start_is_not_handed_on_since_it_comes_whole() -> None:
    assert states_after(batch(0, 9, offset=0)).before(5) == ProducerStates()


def test_a_transaction_that_was_open_at_the_log_start_is_handed_on_and_a_later_one_is_not() -> None:
    states = states_after(
        batch(0, offset=0, transactional=True),
        batch(0, offset=1, pid=8),
        batch(1, offset=2, pid=8, transactional=True),
    )
    before = states.before(2)
    assert [before.producers[ProducerId(pid)].open_since for pid in (7, 8)] == [0, -1]


def test_no_more_are_handed_on_than_fit_and_those_are_the_last_that_were_seen() -> None:
    states = ProducerStates()
    for pid in range(PRODUCERS_HANDED_ON_MAX + 5):
        states.apply(batch(0, offset=pid, pid=pid), now_ms=pid)
    before = states.before(PRODUCERS_HANDED_ON_MAX + 5)
    assert sorted(before.producers) == list(range(5, PRODUCERS_HANDED_ON_MAX + 5))
    assert len(handed_on(before)) < 2_000_000


def test_nothing_is_handed_on_as_nothing_and_damage_is_not_taken_over() -> None:
    states = states_after(batch(0, 4))
    assert (handed_on(None), handed_on(ProducerStates()), taken_over(b"")) == (b"", b"", None)
    assert taken_over(memoryview(handed_on(states))) == states
    with pytest.raises(CorruptSnapshot):
        taken_over(handed_on(states)[:-1])


@pytest.mark.parametrize(
    "last_offset", [2**40, -1], ids=["longer than a batch can be", "ends before it begins"]
)
def test_a_snapshot_with_a_batch_of_no_sense_is_not_taken_over(last_offset: int) -> None:
    """Its CRC is right, and no snapshot of ours could hold it again."""
    data = states_after(batch(0, 9)).snapshot()
    body = bytearray(data[6:])
    struct.pack_into(">q", body, len(body) - 16, last_offset)
    with pytest.raises(CorruptSnapshot, match="no sense"):
        ProducerStates.restore(data[:2] + struct.pack(">I", crc32c(bytes(body))) + bytes(body))


def test_a_snapshot_begins_with_kafkas_entries() -> None:
    states = states_after(
        batch(SEQUENCE_MAX, 1, offset=20, epoch=3, transactional=True), marker(offset=30, epoch=4, pid=8)
    )
    assert struct.unpack_from(">qhiqiqiqqhiqiqiq", states.snapshot(), 10) == (
        *(7, 3, 1, 22, 2, 1_020, -1, 20),
        *(8, 4, -1, -1, 0, -1, 0, -1),
    )


def test_a_snapshot_that_kafka_wrote_has_one_batch_of_each_producer() -> None:
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 7, 3, 1, 22, 2, 1_020, 9, 20)
    states = ProducerStates.restore(struct.pack(">hI", 1, crc32c(body)) + body)
    assert states.check(batch(SEQUENCE_MAX, 1, offset=0, epoch=3)) == Duplicate(20, 22, 1_020)
    assert states.check(batch(2, offset=23, epoch=3, transactional=True)) == Fresh()
    assert (states.producers[ProducerId(7)].last_seen_ms, states.transactions.first_open()) == (1_020, 20)


def test_a_snapshot_with_an_unknown_end_is_not_guessed_at() -> None:
    body = struct.pack(">i", 0) + b"spk9"
    with pytest.raises(CorruptSnapshot, match="unknown"):
        ProducerStates.restore(struct.pack(">hI", 1, crc32c(body)) + body)


@settings(deadline=None)
@given(st.data())
def test_no_damaged_snapshot_is_taken_for_whole(data: st.DataObject) -> None:
    whole = states_after(batch(0, pid=1), batch(1, pid=1, offset=1), batch(5, pid=2)).snapshot()
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptSnapshot):
        ProducerStates.restore(whole[:cut])
    flipped = bytearray(whole)
    flipped[cut] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptSnapshot):
        ProducerStates.restore(bytes(flipped))
    with pytest.raises(CorruptSnapshot):
        ProducerStates.restore(whole + b"\0")


@pytest.mark.parametrize(
    ("sequence", "epoch", "is_so"),
    [
        pytest.param(8, 2, False, id="the next one"),
        pytest.param(9, 2, True, id="behind a gap"),
        pytest.param(7, 2, False, id="the last one again"),
        pytest.param(0, 2, False, id="an old one again"),
        pytest.param(0, 3, False, id="the first of a new epoch"),
        pytest.param(1, 3, True, id="a later one of a new epoch"),
        pytest.param(9, 1, False, id="of an epoch that is over"),
    ],
)
def test_what_is_before_a_batch_is_lacking_where_there_is_a_gap(sequence, epoch, is_so):
    states = ProducerStates()
    for number in range(8):
        states.apply(dataclasses.replace(batch(number, offset=number), producer_epoch=2), 0)
    asked = dataclasses.replace(batch(sequence, offset=8), producer_epoch=epoch)
    assert states.lacks_what_is_before(asked) is is_so


def test_of_an_unknown_producer_all_but_its_first_number_lacks_what_is_before_it():
    assert not ProducerStates().lacks_what_is_before(batch(0))
    assert ProducerStates().lacks_what_is_before(batch(1))


# Members of atomic writes


MEMBER = FIRST_PRODUCER_ID + 5


def test_a_member_of_a_write_is_forgotten_with_its_marker() -> None:
    states = ProducerStates()
    states.apply(batch(0, pid=MEMBER, offset=3, transactional=True), 0)
    assert states.transactions.first_open() == 3
    aborted = states.apply(marker(pid=MEMBER, offset=4, commits=False), 0)
    assert aborted == AbortedTransaction(MEMBER, 3, 4, 5)
    assert states.producers == {}
    assert states.transactions.first_open() is None
    assert states.transactions.first_unstable(4) == 3


def test_a_marker_that_comes_twice_leaves_nothing_of_its_member() -> None:
    states = ProducerStates()
    assert states.apply(marker(pid=MEMBER, offset=4), 0) is None
    assert states.producers == {}


def test_a_member_writes_in_its_transaction_only() -> None:
    verdict = ProducerStates().check(batch(0, pid=MEMBER))
    assert isinstance(verdict, RefusedSequence)
    assert verdict.code is ErrorCode.invalid_txn_state
    assert "belongs to an atomic write" in verdict.message
    assert ProducerStates().check(batch(0, pid=MEMBER, transactional=True)) == Fresh()
