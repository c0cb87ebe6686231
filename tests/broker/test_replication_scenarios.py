"""What Kafka's own tests of replication demand, between brokers' rooms over real logs."""

import uuid

import pytest

from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.waiting.fetch_purgatory import FetchLimits
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.records.envelope import split
from sparklog.wire.messages.data.fetch import FetchableTopicResponse, FetchPartitionData, FetchResponse

TP = TopicPartition("quakes", 0)
OTHER = TopicPartition("quakes", 1)


def both(members, leader, epoch, **how):
    """The controller tells both; the leader first."""
    for number in (leader, 3 - leader):
        members[number].become(leader, epoch, **how)


def pull(member, rounds=5):
    for _ in range(rounds):
        member.fetch_once()


def contents(member) -> bytes:
    log = member.partition.log
    found = log.read(log.log_start_offset, 1 << 20, log.log_end_offset, at_least_one_batch=True)
    return bytes(read_parts(found.parts))


def headers(member):
    return [header for _, header in split(contents(member))]


def read(member, *, epoch=-1, follower=None, offset=0):
    number = None if follower is None else BrokerId(follower)
    request = ReadRequest(offset, 1 << 20, epoch, -1, number, BrokerEpoch(10 * (follower or 0)))
    return member.partition.reads.read(request, at_least_one_batch=True)


@pytest.mark.bug("B87")
def test_a_producer_waits_on_when_its_leader_stays_leader_without_the_follower_that_left(members, batch):
    both(members, 1, 1, isr=(1, 2), min_isr=1)
    answers = members[1].produce(batch())
    assert answers == []
    members[1].become(1, 2, isr=(1,), min_isr=1)
    assert [(one[TP].error, one[TP].base_offset) for one in answers] == [(ErrorCode.none, 0)]
    assert members[1].partition.log_end_offset == 1


@pytest.mark.scenario(
    "S21",
    "A crash shortens the leader's log, and it writes something else there: logs are equal again (KIP-101).",
)
def test_a_leader_whose_log_a_crash_has_shortened_does_not_make_logs_diverge(members, batch) -> None:
    both(members, 1, 1)
    for sequence in range(10):
        members[1].produce(batch(producer_id=1, sequence=sequence))
        pull(members[2])
    members[1].partition.log.truncate_to(5)
    members[1].partition.stop("crashed")
    members[1].partition.log_guard.deliver()
    both(members, 1, 2, isr=(1,), min_isr=1)
    for sequence in range(3):
        members[1].produce(batch(producer_id=2, sequence=sequence))
    pull(members[2])
    assert contents(members[2]) == contents(members[1])
    assert [header.producer_id for header in headers(members[2])] == [1] * 5 + [2] * 3


@pytest.mark.scenario("S22", "Leaders change and followers truncate: along a log, offsets only grow.")
def test_offsets_do_not_go_backwards_whoever_leads(members, batch) -> None:
    both(members, 1, 1)
    for epoch in range(1, 9):
        leader, follower = (members[1], members[2]) if epoch % 2 else (members[2], members[1])
        both(members, leader.id, epoch)
        for records in (3, 1, 7):
            leader.produce(batch(records), acks=1)
        pull(follower, rounds=epoch % 3)
    both(members, 1, 9)
    pull(members[2])
    for member in members.values():
        ends = [header.next_offset for header in headers(member)]
        assert [header.base_offset for header in headers(member)] == [0, *ends[:-1]]
    assert contents(members[1]) == contents(members[2])


@pytest.mark.scenario("S23", "Leadership alternates as fast as possible: nothing acknowledged is lost.")
def test_leaders_that_change_fast_lose_nothing_that_was_acknowledged(members, batch) -> None:
    both(members, 1, 1)
    acknowledged, asked = [], []
    for epoch in range(2, 42):
        leader, follower = (members[1], members[2]) if epoch % 2 else (members[2], members[1])
        both(members, leader.id, epoch)
        for sequence in range(3):
            asked.append(leader.produce(batch(producer_id=epoch, sequence=sequence)))
            pull(follower, rounds=(epoch * 7 + sequence) % 3)
    pull(members[2])
    for answers in asked:
        results = [result for answer in answers for result in answer.values()]
        acknowledged += [result.base_offset for result in results if result.error is ErrorCode.none]
    assert len(acknowledged) > 40
    assert len(set(acknowledged)) == len(acknowledged)
    assert contents(members[1]) == contents(members[2])
    assert {header.base_offset for header in headers(members[1])} >= set(acknowledged)


@pytest.mark.scenario(
    "S24",
    "Replicas led alone by unclean elections and wrote different records: their logs become equal (KIP-279).",
)
def test_logs_that_unclean_elections_parted_are_equal_once_they_meet(members, batch) -> None:
    both(members, 1, 1, isr=(1, 2), min_isr=1)
    members[1].produce(batch(2), acks=1)
    pull(members[2])
    for epoch in range(2, 8):
        alone = members[2 - epoch % 2]
        alone.become(alone.id, epoch, isr=(alone.id,), min_isr=1)
        for sequence in range(epoch):
            alone.produce(batch(producer_id=epoch, sequence=sequence))
    assert contents(members[1]) != contents(members[2])
    both(members, 1, 8, isr=(1,), min_isr=1)
    pull(members[2], rounds=20)
    assert contents(members[2]) == contents(members[1])
    histories = [[tuple(one) for one in member.partition.log.epochs.entries] for member in members.values()]
    assert [epoch for epoch, _ in histories[1]] == [epoch for epoch, _ in histories[0]][: len(histories[1])]


@pytest.mark.bug(
    "B38", "records", "A replica in sync lacks what its leader kept through an unclean election."
)
def test_a_log_that_parts_before_its_own_start_takes_over_all_that_an_unclean_leader_has(
    members, batch
) -> None:
    both(members, 1, 1, isr=(1, 2), min_isr=1)
    members[1].produce(batch(4), acks=1)
    pull(members[2])
    members[2].become(2, 2, isr=(2,), min_isr=1)
    for sequence in range(10):
        members[2].produce(batch(producer_id=2, sequence=sequence))
    members[2].partition.delete_records(9, [BrokerId(2)], token=1)
    assert members[2].partition.log_start_offset == 9
    both(members, 1, 3, isr=(1,), min_isr=1)
    members[1].produce(batch(producer_id=3, sequence=0), acks=1)
    pull(members[2])
    assert contents(members[2]) == contents(members[1])
    assert (members[2].partition.log_start_offset, members[2].partition.log_end_offset) == (0, 5)


@pytest.mark.scenario(
    "S36", "An unassigned follower gets UNKNOWN_LEADER_EPOCH, or NOT_LEADER_OR_FOLLOWER if it names no epoch."
)
def test_a_replica_that_does_not_belong_here_is_told_to_ask_for_news(members) -> None:
    both(members, 1, 3)
    assert read(members[1], epoch=3, follower=9).error is ErrorCode.unknown_leader_epoch
    assert read(members[1], follower=9).error is ErrorCode.not_leader_or_follower


@pytest.mark.scenario(
    "S37",
    "An older epoch is answered with FENCED_LEADER_EPOCH, a newer one with UNKNOWN_LEADER_EPOCH (KIP-320).",
)
@pytest.mark.parametrize(
    ("epoch", "leader_says", "follower_says"),
    [
        (4, ErrorCode.fenced_leader_epoch, ErrorCode.fenced_leader_epoch),
        (5, ErrorCode.none, ErrorCode.not_leader_or_follower),
        (6, ErrorCode.unknown_leader_epoch, ErrorCode.unknown_leader_epoch),
        (-1, ErrorCode.none, ErrorCode.not_leader_or_follower),
    ],
)
def test_leaders_and_followers_compare_epochs_before_they_say_anything_else(
    members, epoch, leader_says, follower_says
) -> None:
    """Reads, offsets and ends of epochs alike."""
    both(members, 1, 5)
    for member, expected in ((members[1], leader_says), (members[2], follower_says)):
        assert read(member, epoch=epoch).error is expected
        offset = member.partition.reads.leader_offset(epoch, lambda leader, log: 0)
        end = member.partition.reads.epoch_end(epoch, 5)
        if expected is ErrorCode.none:
            assert (offset, end) == (0, (5, 0))
        else:
            assert (offset, end) == (expected, expected)


@pytest.mark.scenario("S38", "A follower's fetch whose read fails is no progress of that follower.")
def test_a_read_that_failed_is_no_progress_of_the_follower_that_asked(members, batch) -> None:
    both(members, 1, 1)
    answers = members[1].produce(batch(2))
    log = members[1].partition.log
    sound = log.read

    def broken(*_args, **_named):
        raise OSError(5, "Input/output error")

    log.read = broken
    assert read(members[1], follower=2, offset=2).error is ErrorCode.kafka_storage_error
    assert (members[1].partition.high_watermark, answers) == (0, [])
    log.read = sound
    assert read(members[1], follower=2, offset=2).error is ErrorCode.none
    assert members[1].partition.high_watermark == 2


@pytest.mark.scenario("S40", "A parked fetch is fenced at once when its epoch ends.")
def test_a_parked_fetch_of_an_epoch_that_ends_is_fenced_at_once(members) -> None:
    """The same broker leads the next epoch; who waits learns that it is another one."""
    both(members, 1, 1)
    answers = []
    wanted = [(TP, members[1].partition, ReadRequest(0, 1 << 20, 1))]
    members[1].parts.waits.fetches.fetch(wanted, FetchLimits(500, 1, 1 << 20), answers.append)
    assert answers == []
    both(members, 1, 2)
    assert [answer[TP].error for answer in answers] == [ErrorCode.fenced_leader_epoch]


@pytest.mark.scenario(
    "S42", "A role or a fetch for another topic of the same name is INCONSISTENT_TOPIC_ID (KIP-516)."
)
def test_a_role_in_another_topic_of_the_same_name_is_refused(members) -> None:
    both(members, 1, 1)
    another, parts = uuid.UUID(int=99), members[1].parts
    assert parts.table.find(TP, another) is ErrorCode.inconsistent_topic_id
    assert (
        members[1].parts.roles.become(TP, another, led_by_1(2), {}, is_new=False)
        is ErrorCode.inconsistent_topic_id
    )
    assert members[1].partition.leader_epoch == 1


@pytest.mark.scenario("S47", "One partition's log fails in a reply: the other partitions continue.")
def test_a_partition_whose_log_fails_in_a_reply_keeps_no_other_from_following(members, batch) -> None:
    both(members, 1, 1)
    for member in members.values():
        member.parts.roles.become(OTHER, member.partition.topic_id, led_by_1(1), {}, is_new=True)
    members[1].answer = answers_of_all_partitions(members[1])
    fetcher = members[2].fetcher
    fetcher.add(members[2].partition)
    append(members[1], TP, batch(2))
    append(members[1], OTHER, batch(2))

    def broken(*_args):
        raise OSError(28, "No space left on device")

    members[2].partition.log.append = broken
    members[2].fetch_once(fetcher)
    assert members[2].partition.is_offline
    append(members[1], OTHER, batch(3))
    members[2].fetch_once(fetcher)
    assert members[2].replicas.get(OTHER).log_end_offset == 5
    assert not members[2].replicas.get(OTHER).is_offline


def led_by_1(epoch: int) -> PartitionState:
    isr = (BrokerId(1), BrokerId(2))
    return PartitionState(leader=isr[0], leader_epoch=LeaderEpoch(epoch), isr=isr, replicas=isr)


def append(member, topic_partition, records) -> None:
    result = member.replicas.get(topic_partition).leader_append.append(
        AppendRequest(records, split(records), 1), 0
    )
    assert result.error is ErrorCode.none


def answers_of_all_partitions(member):
    def answer(message):
        (topic,) = message.topics
        parts = []
        for asked in topic.partitions:
            request = ReadRequest(
                asked.fetch_offset, asked.partition_max_bytes, asked.current_leader_epoch,
                asked.last_fetched_epoch, BrokerId(message.replica_id), BrokerEpoch(message.replica_epoch),
            )  # fmt: skip
            partition = member.replicas.get(TopicPartition("quakes", asked.partition))
            result = partition.reads.read(request, at_least_one_batch=True)
            parts.append(
                FetchPartitionData(
                    partition_index=asked.partition, error_code=result.error, records=result.parts,
                    high_watermark=result.high_watermark,
                )
            )  # fmt: skip
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic.topic_id, partitions=parts)])

    return answer
