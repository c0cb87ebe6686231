"""Following a leader: two brokers' rooms over real logs, the fetcher run round by round."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_BROKER_EPOCH
from sparklog.model.parts import FileSlice
from sparklog.wire.messages.data.fetch import FetchResponse
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


def ends(members):
    return [members[number].partition.log_end_offset for number in (1, 2)]


def start(members, epoch=1, **options):
    members[1].become(1, epoch, **options)
    members[2].become(1, epoch, **options)


def test_a_follower_pulls_what_the_leader_has_and_the_next_round_brings_the_watermark(members, batch) -> None:
    start(members)
    answers = members[1].produce(batch(3))
    assert answers == []
    assert members[2].fetch_once() == 0
    assert ends(members) == [3, 3]
    assert answers == []
    members[2].fetch_once()
    assert [result.error for result in answers[0].values()] == [ErrorCode.none]
    assert members[2].partition.high_watermark == 3


def test_the_request_names_our_epoch_and_how_far_we_are(members, batch) -> None:
    start(members, epoch=4)
    members[1].produce(batch(3))
    members[2].fetch_once()
    members[2].fetch_once()
    first, second = members[2].requests
    assert (first.replica_id, first.replica_epoch) == (2, 20)
    assert [(p.fetch_offset, p.current_leader_epoch) for p in first.topics[0].partitions] == [(0, 4)]
    assert [(p.fetch_offset, p.last_fetched_epoch) for p in second.topics[0].partitions] == [(3, 4)]


@pytest.mark.scenario("S21")
@pytest.mark.scenario("S24")
def test_logs_that_parted_are_equal_again_after_the_leader_changed(members, batch) -> None:
    """KIP-101: an uncommitted tail of the old leader gives way."""
    start(members)
    members[1].produce(batch(2))
    members[2].fetch_once()
    members[1].produce(batch(3))
    members[2].become(2, 2)
    members[2].produce(batch(4), acks=1)
    members[1].become(2, 2)
    assert ends(members) == [5, 6]
    members[1].fetch_once()
    assert members[1].partition.log_end_offset == 2
    members[1].fetch_once()
    assert ends(members) == [6, 6]
    histories = [[tuple(entry) for entry in members[n].partition.log.epochs.entries] for n in (1, 2)]
    assert histories[0] == histories[1] == [(1, 0), (2, 2)]


@pytest.mark.bug(
    "B14",
    "records",
    "A replica joins the ISR with records that were never committed, below its leader's log start.",
)
@pytest.mark.parametrize("unreplicated", [1, 3, 7])
def test_a_replica_with_uncommitted_records_below_the_leaders_start_begins_anew(
    members, batch, unreplicated
) -> None:
    """The old leader has written at offsets whose true records were committed, and deleted, without it."""
    start(members)
    members[1].produce(batch(2))
    members[2].fetch_once()
    for _ in range(unreplicated):
        members[1].produce(batch(1))
    members[2].become(2, 2, isr=(2,), min_isr=1)
    members[2].produce(batch(3))
    members[2].partition.delete_records(5, (), 1)
    members[1].become(2, 2, isr=(2,), min_isr=1)
    starts = []
    members[2].propose = lambda *_: starts.append(members[1].partition.log.segments[0].base_offset)
    for _ in range(5):
        members[1].fetch_once()
    members[2].produce(batch(1))
    members[1].fetch_once()
    assert starts[:1] == [5]
    assert ends(members) == [6, 6]


@pytest.mark.scenario("S39", "Waiting writes of a deposed leader get NOT_LEADER_OR_FOLLOWER at once.")
def test_a_produce_that_waited_on_a_deposed_leader_is_told(members, batch) -> None:
    start(members)
    answers = members[1].produce(batch())
    members[1].become(2, 2)
    assert [result.error for result in answers[0].values()] == [ErrorCode.not_leader_or_follower]


@pytest.mark.scenario("S4")
def test_idempotence_survives_a_change_of_leader(members, batch) -> None:
    start(members)
    members[1].produce(batch(2, producer_id=5, sequence=0))
    members[2].fetch_once()
    members[2].become(2, 2)
    members[1].become(2, 2)
    answers = members[2].produce(batch(2, producer_id=5, sequence=0))
    assert members[2].partition.log_end_offset == 2
    members[1].fetch_once()
    assert [(r.error, r.base_offset) for r in answers[0].values()] == [(ErrorCode.none, 0)]


def test_a_dead_leader_is_asked_again_after_growing_pauses(members) -> None:
    start(members)
    del members[2].members[1]
    pauses = [members[2].fetch_once() for _ in range(10)]
    assert pauses[0] < pauses[1] < pauses[2]
    assert pauses[-1] == 1_000


def test_a_leader_that_does_not_know_yet_that_it_leads_costs_a_short_pause_only(members, clock) -> None:
    members[1].become(2, 1)
    members[2].become(1, 2)
    members[2].fetch_once()
    assert members[2].paused == [ErrorCode.unknown_leader_epoch]
    assert 0 < members[2].fetch_once() <= 50
    members[1].become(1, 2)
    clock.now_ms += 50
    assert members[2].fetch_once() == 0
    assert len(members[2].paused) == 1


def test_a_corrupt_batch_from_the_leader_is_not_appended(members, batch) -> None:
    start(members)
    members[1].produce(batch(3))
    leader = members[1]
    answer = leader.answer

    def damaged(message):
        response = answer(message)
        (part,) = response.responses[0].partitions[0].records
        assert isinstance(part, FileSlice)
        records = bytearray(part.read())
        records[-1] ^= 1
        response.responses[0].partitions[0].records = (bytes(records),)
        return response

    leader.answer = damaged
    members[2].fetch_once()
    assert members[2].paused == [ErrorCode.corrupt_message]
    assert members[2].partition.log_end_offset == 0


@pytest.mark.scenario("S45")
def test_a_follower_whose_end_is_below_the_leaders_start_begins_anew_there(members, batch) -> None:
    start(members)
    for _ in range(3):
        members[1].produce(batch(10), acks=1)
    members[1].partition.log.raise_log_start(20)
    members[1].partition.delete_old_segments()
    members[2].fetch_once()
    members[2].fetch_once()
    assert members[2].partition.log_end_offset == 20
    members[2].fetch_once()
    assert (members[2].partition.log_start_offset, members[2].partition.log_end_offset) == (20, 30)


def answers_of(answers):
    return [(result.error, result.base_offset) for answer in answers for result in answer.values()]


def lead_by_the_other(members, epoch=3):
    members[2].become(2, epoch, isr=(2,), min_isr=1)
    return members[2]


@pytest.mark.bug(
    "B42",
    "records",
    "A batch that retention removed is stored a second time when its producer sends it again.",
)
@pytest.mark.parametrize("start_offset", [20, 25], ids=["between batches", "within a batch"])
def test_who_began_anew_where_its_leader_begins_knows_a_batch_that_was_removed_before(
    members, batch, start_offset
) -> None:
    start(members, isr=(1,), min_isr=1)
    for sequence in (0, 10, 20):
        members[1].produce(batch(10, producer_id=5, sequence=sequence), acks=1)
    members[1].partition.delete_records(start_offset, (), 1)
    members[1].partition.delete_old_segments()
    for _ in range(4):
        members[2].fetch_once()
    assert (members[2].partition.log_start_offset, ends(members)) == (start_offset, [30, 30])
    leader = lead_by_the_other(members)
    for base_offset in (0, 10, 20):
        again = leader.produce(batch(10, producer_id=5, sequence=base_offset), acks=1)
        assert answers_of(again) == [(ErrorCode.none, base_offset)]
    assert leader.partition.log_end_offset == 30
    assert answers_of(leader.produce(batch(10, producer_id=5, sequence=30), acks=1)) == [(ErrorCode.none, 30)]


def test_who_began_anew_at_the_end_of_an_empty_log_knows_what_was_in_it(members, batch) -> None:
    start(members, isr=(1,), min_isr=1)
    members[1].produce(batch(10, producer_id=5, sequence=0), acks=1)
    members[1].partition.delete_records(10, (), 1)
    for _ in range(3):
        members[2].fetch_once()
    assert ends(members) == [10, 10]
    leader = lead_by_the_other(members)
    assert answers_of(leader.produce(batch(10, producer_id=5, sequence=0), acks=1)) == [(ErrorCode.none, 0)]
    assert leader.partition.log_end_offset == 10


@pytest.mark.bug("B42")
def test_a_replica_that_cuts_everything_knows_the_producers_from_before_its_start(members, batch) -> None:
    start(members)
    members[1].produce(batch(2, producer_id=5, sequence=0))
    members[2].fetch_once()
    for _ in range(7):
        members[1].produce(batch(1))
    members[2].become(2, 2, isr=(2,), min_isr=1)
    members[2].produce(batch(3, producer_id=5, sequence=2))
    members[2].partition.delete_records(5, (), 1)
    members[1].become(2, 2, isr=(2,), min_isr=1)
    for _ in range(4):
        members[1].fetch_once()
    assert ends(members) == [5, 5]
    known = [members[number].partition.log.producers.producers[5].batches for number in (1, 2)]
    assert known[0] == known[1]
    assert [one.first_sequence for one in known[0]] == [0, 2]


def test_a_replica_that_begins_anew_uses_the_leaders_latest_start_and_its_producers(members, batch) -> None:
    start(members, isr=(1,), min_isr=1)
    for sequence in (0, 10, 20):
        members[1].produce(batch(10, producer_id=5, sequence=sequence), acks=1)
    leader = members[1]
    leader.partition.delete_records(10, (), 1)
    answer, starts = leader.answer, []

    def answer_and_delete_more(message):
        response = answer(message)
        if isinstance(response, ListOffsetsResponse):
            starts.append(leader.partition.log_start_offset)
            leader.partition.delete_records(20, (), 2)
        return response

    leader.answer = answer_and_delete_more
    for _ in range(5):
        members[2].fetch_once()
    assert starts[0] == 10
    assert (members[2].partition.log_start_offset, ends(members)) == (20, [30, 30])
    known = members[2].partition.log.producers.producers[5].batches
    assert [one.first_sequence for one in known] == [0, 10, 20]


def test_producer_states_that_came_damaged_are_asked_for_again(members, batch) -> None:
    start(members, isr=(1,), min_isr=1)
    members[1].produce(batch(10, producer_id=5, sequence=0), acks=1)
    members[1].partition.delete_records(10, (), 1)
    leader = members[1]
    answer = leader.answer

    def damaged(message):
        response = answer(message)
        if isinstance(response, ListOffsetsResponse):
            response.topics[0].partitions[0].producers = response.topics[0].partitions[0].producers[:-1]
        return response

    leader.answer = damaged
    members[2].fetch_once()
    members[2].fetch_once()
    assert members[2].paused == [ErrorCode.corrupt_message]
    assert members[2].partition.log_end_offset == 0
    leader.answer = answer
    members[2].clock.now_ms += 60_000
    for _ in range(3):
        members[2].fetch_once()
    assert members[2].partition.log_end_offset == 10
    assert 5 in members[2].partition.log.producers.producers


def test_one_request_is_told_once_of_producers_and_only_if_it_is_by_a_replica(members, batch) -> None:
    """What little asks must not make much, under the partition's lock."""
    start(members, isr=(1,), min_isr=1)
    members[1].produce(batch(10, producer_id=5, sequence=0), acks=1)
    members[1].partition.delete_records(10, (), 1)
    asked = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST_TIMESTAMP)
    for replica_id, times, is_told in (
        (2, 1, True),
        (2, 2, False),
        (77, 1, False),
        (-1, 1, False),
        (-2, 1, False),
    ):
        request = ListOffsetsRequest(
            replica_id=replica_id, topics=[ListOffsetsTopic(name="quakes", partitions=[asked] * times)]
        )
        answer = members[1].answer(request).topics[0].partitions[0]
        assert (answer.offset, bool(answer.producers)) == (10, is_told), (replica_id, times)


def moved(members, batch):
    """A leader of four batches of ten records, the first three of which only its store has."""
    start(members, isr=(1,), min_isr=1)
    for sequence in (0, 10, 20, 30):
        members[1].produce(batch(10, producer_id=5, sequence=sequence), acks=1)
        members[1].partition.log.roll()
    members[1].partition.delete_records(5, (), 1)
    assert members[1].partition.delete_local_segments(30, members[1].partition.log.generation) == 3
    return members[1].partition.log


def test_a_replica_begins_anew_where_the_leaders_disk_begins_and_knows_what_was(members, batch) -> None:
    leader = moved(members, batch)
    for _ in range(4):
        members[2].fetch_once()
    own = members[2].partition.log
    assert [(log.log_start_offset, log.local_start_offset, log.log_end_offset) for log in (leader, own)] == [
        (5, 30, 40)
    ] * 2
    assert own.epochs.entries == leader.epochs.entries == [(1, 5)]
    assert [one.first_sequence for one in own.producers.producers[5].batches] == [0, 10, 20, 30]


@pytest.mark.bug(
    "B78",
    "records",
    "A follower in sync drops its log after a power cut of all, though store and disk had it all.",
)
def test_after_a_loss_a_follower_gives_up_no_front_until_it_has_a_record_since(members, batch) -> None:
    """It is in sync, and would have to begin anew if its disk began later than its leader's (seed 1815)."""
    start(members)
    members[1].produce(batch(10))
    for _ in range(3):
        members[2].fetch_once()
    own = members[2].partition
    own.log.roll()
    for number in (1, 2):
        members[number].become(1, 2, lost_in_epoch=2)
    members[2].fetch_once()
    assert own.high_watermark == 10
    assert own.delete_local_segments(10, own.log.generation) == 0
    members[1].produce(batch(10))
    for _ in range(2):
        members[2].fetch_once()
    assert own.delete_local_segments(10, own.log.generation) == 1
    members[2].fetch_once()
    assert (own.log.local_start_offset, own.log_end_offset) == (10, 20)


def test_after_a_loss_a_replica_begins_anew_where_its_leaders_disk_begins_earlier(members, batch) -> None:
    """And fetches nothing before: the leader would take it for one that has all."""
    moved(members, batch)
    for _ in range(4):
        members[2].fetch_once()
    own = members[2].partition
    own.log.roll()
    members[1].produce(batch(10, producer_id=5, sequence=40), acks=1)
    for _ in range(2):
        members[2].fetch_once()
    assert own.delete_local_segments(40, own.log.generation) == 1
    for number in (1, 2):
        members[number].become(1, 2, isr=(1,), min_isr=1, lost_in_epoch=2)
    asked = []
    answer = members[1].answer
    members[1].answer = lambda message: asked.append(type(message).__name__) or answer(message)
    for _ in range(4):
        members[2].fetch_once()
    assert asked[:3] == ["ListOffsetsRequest", "ListOffsetsRequest", "FetchRequest"]
    assert (own.log.log_start_offset, own.log.local_start_offset, own.log.log_end_offset) == (5, 30, 50)


def test_a_deletion_of_records_that_only_the_store_has_reaches_every_replica(members, batch) -> None:
    moved(members, batch)
    for _ in range(4):
        members[2].fetch_once()
    members[1].partition.delete_records(17, (), 1)
    for _ in range(2):
        members[2].fetch_once()
    assert [members[number].partition.log_start_offset for number in (1, 2)] == [17, 17]
    assert members[2].partition.log.local_start_offset == 30


@pytest.mark.parametrize("epochs", [(3,), (3, 0, 3, 9), (3, 7, 4, 2)])
def test_a_damaged_history_is_asked_for_again(members, batch, epochs) -> None:
    moved(members, batch)
    leader = members[1]
    answer = leader.answer

    def damaged(message):
        response = answer(message)
        if isinstance(response, ListOffsetsResponse):
            response.topics[0].partitions[0].epochs = epochs
        return response

    leader.answer = damaged
    members[2].fetch_once()
    members[2].fetch_once()
    assert members[2].paused == [ErrorCode.corrupt_message]
    assert members[2].partition.log_end_offset == 0


@pytest.mark.parametrize(("timestamp", "offset"), [(EARLIEST_TIMESTAMP, 5), (EARLIEST_LOCAL_TIMESTAMP, 30)])
def test_a_client_may_ask_for_either_start(members, batch, timestamp, offset) -> None:
    moved(members, batch)
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="quakes", partitions=[asked])])
    answer = members[1].answer(request).topics[0].partitions[0]
    assert (answer.offset, answer.log_start_offset, answer.epochs) == (offset, -1, ())


def test_a_caught_up_follower_outside_the_isr_is_proposed(members, batch) -> None:
    start(members, isr=(1,))
    members[1].produce(batch(), acks=1)
    members[2].fetch_once()
    assert [p.members for p in members[1].proposals] == [((1, 10), (2, 20))] or not members[1].proposals
    members[2].fetch_once()
    assert [p.members for p in members[1].proposals] == [((1, 10), (2, 20))]


def test_a_partition_whose_part_of_a_reply_fails_backs_off_alone(members, batch) -> None:
    start(members)
    members[1].produce(batch())
    follower = members[2].partition.follower_append
    take_over = follower.append

    def broken(*_args, **_named):
        raise ValueError("a bug")

    follower.append = broken
    assert members[2].fetch_once() == 0
    assert members[2].fetch_once() > 0
    follower.append = take_over
    members[2].clock.now_ms += 1_000
    members[2].fetch_once()
    assert ends(members) == [1, 1]


def test_a_role_that_cannot_be_taken_up_is_an_error_of_that_partition_alone(members) -> None:
    assert members[1].become(2, 1, replicas=(2, 3)) is ErrorCode.invalid_request
    assert members[1].become(1, 2) is ErrorCode.none


def test_a_reply_that_came_too_late_to_be_used_begins_the_fetch_session_anew(members, batch) -> None:
    start(members)
    members[1].produce(batch(3))
    fetcher = members[2].fetcher
    begun = []
    fetcher._session.begin_again = lambda: begun.append(True)
    conversation = fetcher.round()
    response = members[1].answer(next(conversation).message)
    members[2].become(1, 2)
    with pytest.raises(StopIteration):
        conversation.send(response)
    assert begun == [True]


def test_an_idle_partition_is_asked_for_its_position_once(members, batch, monkeypatch) -> None:
    start(members)
    members[1].produce(batch(3))
    for _ in range(2):
        members[2].fetch_once()
    following, asked = members[2].partition.follower_append, []
    position = following.fetch_position
    monkeypatch.setattr(following, "fetch_position", lambda: asked.append(position()) or asked[-1])
    members[1].answer = lambda _: FetchResponse()  # nothing new
    for _ in range(3):
        members[2].fetch_once()
    assert len(asked) == 1


def test_whatever_changes_a_partition_changes_the_next_request(members, batch) -> None:
    """A step of another thread: here retention, which raises the start of the follower's log."""
    start(members)
    members[1].produce(batch(3))
    for _ in range(3):
        members[2].fetch_once()
    members[2].partition.trim(lambda log, _: log.raise_log_start(2))
    members[2].fetch_once()
    assert members[2].requests[-1].topics[0].partitions[0].log_start_offset == 2


def test_a_leader_that_refuses_is_doubted_until_it_answers_again(members, batch, monkeypatch) -> None:
    start(members)
    follower, doubts = members[2], members[2].fetcher._doubts

    def refuse(_message):
        raise ConnectionRefusedError("nobody listens there")

    with monkeypatch.context() as patch:
        patch.setattr(members[1], "answer", refuse)
        assert follower.fetch_once() > 0
        assert doubts.has(1, NO_BROKER_EPOCH)
    follower.fetch_once()
    assert not doubts.has(1, NO_BROKER_EPOCH)
