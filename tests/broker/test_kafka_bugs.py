"""Bugs that Kafka's replication once had, played again between brokers' rooms over real logs.

Broker 1 is A, broker 2 is B, broker 3 is C. Each test lets happen what led to the damage, and asserts what
Kafka got wrong then. ``python -m proof_index K`` lists them.
"""

import threading

import pytest

from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.replicas.replica_parts import ReplicaParts
from sparklog.core.replication.leader import IsrReply
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.records.envelope import build_envelope, split
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.wire.messages.data.fetch import (
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)

TP = TopicPartition("quakes", 0)


def batch(text: str) -> bytearray:
    """One record that differs from all others."""
    return bytearray(
        build_envelope(
            text.encode().ljust(20),
            attributes=0,
            record_count=1,
            last_offset_delta=0,
            base_timestamp_ms=1_000,
            max_timestamp_ms=1_000,
        )
    )


@pytest.fixture
def trio(members, tmp_path, clock):
    """Brokers 1, 2 and 3, which can reach each other."""
    (tmp_path / "3").mkdir()
    members[3] = type(members[1])(3, tmp_path / "3", clock)
    members[3].members = members
    return members


def roles(members, leader, epoch, **how):
    """The controller tells everybody; the leader first."""
    replicas = tuple(members)
    for number in sorted(members, key=lambda one: one != leader):
        members[number].become(leader, epoch, replicas=replicas, **{"isr": replicas, **how})


def pull(member, rounds=5):
    for _ in range(rounds):
        member.fetch_once()


def contents(member) -> bytes:
    log = member.partition.log
    found = log.read(log.log_start_offset, 1 << 20, log.log_end_offset, at_least_one_batch=True)
    return bytes(read_parts(found.parts))


def epochs(member):
    return [tuple(entry) for entry in member.partition.log.epochs.entries]


def cuts(member):
    """(where to, the high watermark at that moment) of every truncation from now on."""
    seen = []
    partition = member.partition
    partition.log.before_cut = lambda end: seen.append((end, partition.high_watermark))
    return seen


def restart(member, high_watermark=0):
    """The process dies and comes back with its log, and what its last checkpoint knew."""
    before, directories = member.parts, member.parts.log_dirs
    log = member.partition.log
    before.roles.stop_serving("killed")
    again = type(directories)(directories.folder, directories.clock)
    again.made = {
        TP: Log.open(
            log.directory, TP, log.topic_id, LogConfig(), LocalDisk(), member.clock, recovery_point=0,
            clean=False,
        )
    }  # fmt: skip
    again.high_watermarks = lambda: {TP: high_watermark} if high_watermark else {}
    member.parts = ReplicaParts.compose(
        member.id, before.settings.now, again, member.ports, fetchers=member, proposals=member
    )
    member.parts.fence.broker_epoch = member.epoch
    member.parts.logs.load()
    return again


def errors(answers):
    return [result.error for answer in answers for result in answer.values()]


def consume(member, offset):
    return member.partition.reads.read(ReadRequest(offset, 1 << 20), at_least_one_batch=True)


@pytest.mark.kafka_bug(
    "K1",
    "KAFKA-1211, KIP-101",
    "A restarted follower truncated at its late high watermark, then led: an acknowledged record was lost.",
)
def test_kafka_1211_a_restarted_follower_keeps_what_was_committed_above_its_watermark(members) -> None:
    """KIP-101's loss: B restarts, A dies before B has fetched again, B leads."""
    roles(members, 1, 1)
    answers = members[1].produce(batch("m1"))
    pull(members[2])
    answers = members[1].produce(batch("m2"))
    members[2].fetch_once()
    lost = members[2].fetcher.round()
    members[1].answer(next(lost).message)  # proves m2 to A; its reply never arrives
    lost.close()
    assert errors(answers) == [ErrorCode.none]
    assert (members[1].partition.high_watermark, members[2].partition.high_watermark) == (2, 1)
    restart(members[2], high_watermark=1)
    members[2].become(1, 2)
    assert members[2].partition.log_end_offset == 2
    members[2].become(2, 3, isr=(2,))
    assert contents(members[2]) == contents(members[1])


@pytest.mark.kafka_bug(
    "K2",
    "KIP-101",
    "After a power cut of both replicas the shorter log led; both had different records at one offset.",
)
def test_kip_101_two_logs_that_lost_power_hold_the_same_records_again(members) -> None:
    """B comes back first, without m2, and leads; A comes back with m2 below its watermark."""
    roles(members, 1, 1)
    for text in ("m1", "m2"):
        members[1].produce(batch(text))
        pull(members[2])
    assert members[1].partition.high_watermark == 2
    members[2].partition.log.truncate_to(1)
    restart(members[2], high_watermark=1)
    members[2].become(2, 2, isr=(2,), min_isr=1)
    members[2].produce(batch("m3"))
    restart(members[1], high_watermark=2)
    members[1].become(2, 2, isr=(2,), min_isr=1)
    pull(members[1])
    assert contents(members[1]) == contents(members[2])
    assert epochs(members[1]) == epochs(members[2]) == [(1, 0), (2, 1)]


@pytest.mark.kafka_bug(
    "K3",
    "KAFKA-6361, KIP-279",
    "A leader answered for an unknown epoch with its own start, and a foreign record stayed.",
)
def test_kafka_6361_a_leader_answers_for_an_epoch_that_it_never_saw_with_the_one_before(members) -> None:
    """KIP-279: A leads e1 and, after B's e2 of which it knows nothing, e3."""
    roles(members, 1, 1)
    members[1].produce(batch("m"))
    pull(members[2])
    members[1].produce(batch("x"), acks=1)
    members[2].become(2, 2)
    members[2].produce(batch("y"), acks=1)
    members[1].become(1, 3)
    members[2].become(1, 3)
    pull(members[2])
    assert contents(members[2]) == contents(members[1])
    assert members[2].partition.log_end_offset == 2


@pytest.mark.kafka_bug(
    "K4",
    "KAFKA-7415",
    "A leader without a record had no epoch, and followers truncated at their high watermark.",
)
def test_kafka_7415_after_elections_back_to_back_nothing_that_both_have_is_cut(members) -> None:
    """A has led e4 without a record when B, who holds one of e3, asks where they part."""
    roles(members, 1, 1)
    for text in ("a", "b", "c"):
        members[1].produce(batch(text), acks=1)
    members[2].fetch_once()
    members[2].become(2, 2)
    members[1].become(1, 3)
    members[2].become(2, 3)
    members[2].produce(batch("of B alone"), acks=1)
    members[1].become(1, 4)
    seen = cuts(members[2])
    assert members[2].partition.high_watermark == 0
    members[2].become(1, 4)
    members[2].requests.clear()
    pull(members[2])
    assert [end for end, _ in seen] == [3]
    assert all(isinstance(one, FetchRequest) for one in members[2].requests), "A knew the answer"
    assert contents(members[2]) == contents(members[1])


@pytest.mark.kafka_bug(
    "K5",
    "KAFKA-10706",
    "An epoch without a record, at the log's end, was never forgotten: the logs diverged forever.",
)
def test_kafka_10706_epochs_without_a_record_do_not_make_logs_diverge_for_ever(members) -> None:
    roles(members, 1, 1)
    members[1].produce(batch("m"))
    pull(members[2])
    members[2].become(2, 2)
    members[2].become(2, 3)
    assert epochs(members[2])[-1] == (3, 1)
    members[1].become(1, 4)
    members[2].become(1, 4)
    members[1].produce(batch("n"), acks=1)
    members[2].requests.clear()
    pull(members[2], rounds=2)
    assert contents(members[2]) == contents(members[1])
    assert epochs(members[2]) == [(1, 0), (4, 1)]
    assert len(members[2].requests) == 2


@pytest.mark.kafka_bug(
    "K6",
    "KAFKA-7128",
    "A replica joined at a new leader's stale high watermark, and was elected without committed records.",
)
def test_kafka_7128_a_replica_that_lacks_committed_records_is_not_elected(
    trio,
) -> None:
    """A and B hold 20 records, B knows of 10 that they are committed. A dies; C holds 12."""
    roles(trio, 1, 1, isr=(1, 2))
    for number in range(10):
        trio[1].produce(batch(f"{number}"))
    pull(trio[2])
    for number in range(10, 20):
        trio[1].produce(batch(f"{number}"))
        if number == 11:
            trio[3].fetch_once()
    trio[2].fetch_once()
    ends = [trio[number].partition.log_end_offset for number in (1, 2, 3)]
    assert ends == [20, 20, 12]
    assert trio[2].partition.high_watermark == 10
    trio[2].become(2, 2, isr=(2,), replicas=(1, 2, 3))
    trio[3].become(2, 2, isr=(2,), replicas=(1, 2, 3))
    trio[3].fetch_once()
    assert trio[2].proposals == []
    trio[3].fetch_once()
    (proposal,) = trio[2].proposals
    assert [member for member, _ in proposal.members] == [2, 3]
    assert trio[3].partition.log_end_offset == 20


@pytest.mark.kafka_bug(
    "K7", "KAFKA-7164", "A follower missed an epoch and did not compare logs with the same leader."
)
@pytest.mark.scenario(
    "S43", "A follower that missed an epoch truncates although its leader is the same as before (KAFKA-7164)."
)
def test_kafka_7164_a_follower_that_missed_an_epoch_cuts_although_its_leader_is_the_same(trio) -> None:
    """A leads e5 and e7, C led e6, and B never heard of that."""
    roles(trio, 1, 5)
    trio[1].produce(batch("both"))
    pull(trio[2])
    pull(trio[3])
    trio[1].produce(batch("lost"), acks=1)
    pull(trio[2])
    trio[3].become(3, 6, replicas=(1, 2, 3))
    trio[1].become(3, 6, replicas=(1, 2, 3))
    trio[3].produce(batch("kept"), acks=1)
    pull(trio[1])
    trio[1].become(1, 7, replicas=(1, 2, 3))
    assert contents(trio[2]) != contents(trio[1])
    trio[2].become(1, 7, replicas=(1, 2, 3))
    pull(trio[2])
    assert contents(trio[2]) == contents(trio[1]) == contents(trio[3])


@pytest.mark.kafka_bug(
    "K8",
    "KAFKA-14704",
    "A deposed leader applied the high watermark of a truncating reply before it truncated.",
)
@pytest.mark.scenario("S44", "A reply with a divergence truncates and moves no watermark (KAFKA-14704).")
def test_kafka_14704_a_reply_that_says_where_logs_part_moves_no_watermark(members) -> None:
    """Otherwise a deposed leader took its own uncommitted tail for committed until it was cut."""
    roles(members, 1, 1)
    members[1].produce(batch("both"))
    pull(members[2])
    for text in ("a", "b", "c"):
        members[1].produce(batch(text), acks=1)
    members[2].become(2, 2, isr=(2,), min_isr=1)
    for text in ("d", "e", "f"):
        members[2].produce(batch(text), acks=1)
    assert members[2].partition.high_watermark == 4
    seen = cuts(members[1])
    members[1].become(2, 2, isr=(2,), min_isr=1)
    members[1].fetch_once()
    assert seen == [(1, 1)]
    assert members[1].partition.high_watermark == 1


@pytest.mark.kafka_bug("K9", "KAFKA-13207", "A former leader's late reply truncated a log.")
def test_kafka_13207_a_reply_of_the_leader_before_cuts_nothing(trio) -> None:
    """B follows C by the time that A's answer, where their logs part, arrives."""
    roles(trio, 1, 1)
    trio[1].produce(batch("both"))
    pull(trio[2])
    pull(trio[3])
    trio[2].become(2, 2, replicas=(1, 2, 3))
    trio[2].produce(batch("of B"), acks=1)
    trio[1].become(1, 3, replicas=(1, 2, 3))
    trio[2].become(1, 3, replicas=(1, 2, 3))
    late = trio[2].fetcher.round()
    answer = trio[1].answer(next(late).message)
    assert answer.responses[0].partitions[0].diverging_epoch is not None
    trio[2].become(3, 4, replicas=(1, 2, 3))
    before = contents(trio[2])
    with pytest.raises(StopIteration):
        late.send(answer)
    assert contents(trio[2]) == before


@pytest.mark.kafka_bug(
    "K10", "KAFKA-7786", "A late FENCED_LEADER_EPOCH for an old epoch ended replication for good."
)
def test_kafka_7786_a_refusal_of_an_epoch_that_is_over_does_not_stop_replication(members) -> None:
    """B's question is on its way when both hear of the next epoch: A refuses it as of an old one."""
    roles(members, 1, 1)
    members[1].produce(batch("m"), acks=1)
    late = members[2].fetcher.round()
    question = next(late).message
    members[1].become(1, 2)
    answer = members[1].answer(question)
    assert answer.responses[0].partitions[0].error_code is ErrorCode.fenced_leader_epoch
    members[2].become(1, 2)
    with pytest.raises(StopIteration):
        late.send(answer)
    pull(members[2])
    assert contents(members[2]) == contents(members[1])


@pytest.mark.kafka_bug(
    "K12",
    "KAFKA-2143",
    "A leader overtook a follower during its question for the log end, and the follower wiped its log.",
)
def test_kafka_2143_a_leader_that_grows_while_asked_for_its_ends_costs_no_records(
    members,
) -> None:
    """B was ahead when A refused its fetch; A has overtaken it when B asks where A's log ends."""
    roles(members, 1, 1)
    members[1].produce(batch("both"))
    pull(members[2])
    refused = FetchPartitionData(partition_index=0, error_code=ErrorCode.offset_out_of_range)
    answer = members[1].answer
    members[1].answer = lambda _: FetchResponse(
        responses=[FetchableTopicResponse(topic_id=members[2].partition.topic_id, partitions=[refused])]
    )
    members[2].fetch_once()
    members[1].answer = answer
    for text in ("a", "b", "c"):
        members[1].produce(batch(text), acks=1)
    seen = cuts(members[2])
    pull(members[2])
    assert seen == []
    assert contents(members[2]) == contents(members[1])


@pytest.mark.kafka_bug(
    "K13",
    "KAFKA-9491",
    "A follower began its log anew, kept a high watermark below it, then led and answered out of range.",
)
def test_kafka_9491_a_log_that_began_anew_is_readable_from_there_when_its_replica_leads(members) -> None:
    """Its watermark begins where its log does; behind the log's start it made every read out of range."""
    roles(members, 1, 1)
    for number in range(30):
        members[1].produce(batch(f"{number}"), acks=1)
    members[1].partition.log_guard.configure(LogConfig(segment_bytes=1))
    members[1].produce(batch("rolls"), acks=1)
    members[1].partition.log.raise_log_start(30)
    members[1].partition.delete_old_segments()
    members[2].fetch_once()
    members[2].fetch_once()
    follower = members[2].partition
    assert (follower.log_start_offset, follower.high_watermark, follower.log_end_offset) == (30, 30, 30)
    members[2].become(2, 2, isr=(2,), min_isr=1)
    members[2].produce(batch("on"))
    assert consume(members[2], 30).error is ErrorCode.none
    assert consume(members[2], 30).size_bytes > 0


@pytest.mark.kafka_bug("K14", "KAFKA-5634", "Retention removed uncommitted records.")
@pytest.mark.scenario("S48")
def test_kafka_5634_retention_removes_nothing_that_is_not_committed(members) -> None:
    """The log's start may not overtake the high watermark."""
    roles(members, 1, 1)
    members[1].partition.log_guard.configure(LogConfig(segment_bytes=1, retention_bytes=0, retention_ms=0))
    for number in range(5):
        members[1].produce(batch(f"{number}"), acks=1)
    members[1].clock.now_ms += 10_000_000
    assert members[1].partition.delete_old_segments() == 0
    pull(members[2], rounds=1)
    members[2].fetch_once()
    assert members[1].partition.delete_old_segments() > 0
    assert members[1].partition.log_start_offset <= members[1].partition.high_watermark == 5


@pytest.mark.kafka_bug(
    "K15",
    "KAFKA-1647",
    "The checkpoint of high watermarks left out followers of a dead leader; after a crash theirs was 0.",
)
def test_kafka_1647_a_replica_without_a_leader_keeps_its_checkpointed_watermark(members) -> None:
    """It was left out until its leader came back; a crash meanwhile began again from 0."""
    roles(members, 1, 1)
    for text in ("a", "b", "c"):
        members[1].produce(batch(text))
        pull(members[2])
    directories = restart(members[2], high_watermark=3)
    written = []
    directories.write_high_watermarks = lambda watermarks: written.append(dict(watermarks))
    members[2].parts.chores.checkpoint_high_watermarks()
    del members[2].members[1]
    members[2].become(1, 2)
    pull(members[2])
    members[2].parts.chores.checkpoint_high_watermarks()
    members[2].become(-1, 3)
    members[2].parts.chores.checkpoint_high_watermarks()
    assert written == [{TP: 3}] * 3


@pytest.mark.kafka_bug("K16")
def test_kafka_2729_a_leader_that_missed_its_successor_commits_nothing(
    members,
) -> None:
    """Its wish to go on without B is refused as of the past, and never taken for granted."""
    roles(members, 1, 1)
    answers = members[1].produce(batch("uncommitted"))
    members[1].clock.now_ms += 100_000
    members[1].partition.on_tick()
    (wish,) = members[1].proposals
    reply = IsrReply(ErrorCode.fenced_leader_epoch)
    members[1].partition.on_isr_reply(1, wish.proposal, reply)
    members[1].clock.now_ms += 100_000
    members[1].partition.on_tick()
    assert members[1].proposals == [wish]
    assert (members[1].partition.high_watermark, answers) == (0, [])
    members[2].become(2, 2, isr=(2,), min_isr=1)
    members[2].produce(batch("committed"))
    members[1].become(2, 2, isr=(2,), min_isr=1)
    assert errors(answers) == [ErrorCode.not_leader_or_follower]
    pull(members[1])
    assert contents(members[1]) == contents(members[2])


@pytest.mark.kafka_bug("K17")
def test_kafka_7235_words_of_the_controller_to_an_earlier_life_of_a_broker_are_refused(members) -> None:
    fence = members[1].parts.fence
    assert fence.accept_controller(5, members[1].epoch - 1) is ErrorCode.stale_broker_epoch
    assert fence.accept_controller(5, members[1].epoch) is ErrorCode.none
    assert fence.accept_controller(4, members[1].epoch) is ErrorCode.stale_controller_epoch


@pytest.mark.kafka_bug(
    "K26", "KAFKA-9539, KIP-570", "A late StopReplica stopped a replica with a newer role."
)
@pytest.mark.scenario(
    "S41",
    "StopReplica of an older epoch is fenced; marks for deletion and an unknown epoch are obeyed (KIP-570).",
)
def test_kafka_9539_a_late_stop_of_an_earlier_epoch_stops_no_replica(members) -> None:
    """KIP-570. Only who deletes (-2), or is too old to know an epoch (-1), is obeyed without one."""
    roles(members, 1, 5)
    its_roles = members[1].parts.roles
    for delete in (False, True):
        assert its_roles.stop_replica(TP, 4, delete=delete) is ErrorCode.fenced_leader_epoch
    assert members[1].partition.is_leader
    assert its_roles.stop_replica(TP, 5, delete=False) is ErrorCode.none
    assert not members[1].partition.is_leader
    members[1].become(1, 6)
    assert its_roles.stop_replica(TP, -1, delete=False) is ErrorCode.none
    assert its_roles.stop_replica(TP, -2, delete=True) is ErrorCode.none
    assert members[1].partition is None


@pytest.mark.kafka_bug(
    "K19", "KAFKA-12686", "A late answer to an ISR proposal cleared a newer role's proposal."
)
@pytest.mark.scenario(
    "S31", "A controller's answer that is older than a role or proposal changes nothing (KAFKA-12686)."
)
def test_kafka_12686_an_answer_that_a_new_role_has_overtaken_settles_nothing(members) -> None:
    """Both roles number their proposals from 1."""
    roles(members, 1, 1, isr=(1,))
    members[2].fetch_once()
    members[2].fetch_once()
    (first,) = members[1].proposals
    members[1].become(1, 2, isr=(1,))
    members[2].become(1, 2, isr=(1,))
    members[2].fetch_once()
    first_again = members[1].proposals[-1]
    assert (first_again.proposal, first_again.leader_epoch) == (first.proposal, 2)
    reverted = IsrReply(ErrorCode.ineligible_replica)
    members[1].partition.on_isr_reply(1, first.proposal, reverted)
    accepted = IsrReply(ErrorCode.none, (BrokerId(1), BrokerId(2)), 1, 1)
    for epoch in (1, 2):
        members[1].partition.on_isr_reply(epoch, first.proposal, accepted)
    leader = members[1].partition._replica.leader
    assert leader.isr.proposal == first_again.proposal, "still in flight"


@pytest.mark.kafka_bug("K25")
def test_kafka_1097_a_fetch_of_a_replica_that_was_moved_away_does_not_count(trio) -> None:
    roles(trio, 1, 1)
    pull(trio[3])
    late = trio[3].fetcher.round()
    question = next(late).message
    late.close()
    trio[1].become(1, 2, isr=(1, 2), replicas=(1, 2))
    assert trio[1].answer(question).responses[0].partitions[0].error_code is ErrorCode.fenced_leader_epoch
    trio[3].become(1, 2, isr=(1, 2), replicas=(1, 2, 3))  # a controller's mistake
    trio[3].fetch_once()
    assert trio[3].paused[-1] is ErrorCode.unknown_leader_epoch
    assert trio[1].proposals == []


@pytest.mark.kafka_bug(
    "K28",
    "KAFKA-9835, KAFKA-9807, KAFKA-9196",
    "Sizes or the high watermark were read twice during an append or roll: uncommitted records were read.",
)
def test_kafka_9835_a_read_ends_below_its_watermark_while_the_log_rolls(members) -> None:
    """KAFKA-9807, KAFKA-9196: size, segment and watermark of one read are of one moment."""
    roles(members, 1, 1)
    members[1].partition.log_guard.configure(LogConfig(segment_bytes=400))
    is_over = threading.Event()
    wrong, reads = [], []

    def consume_all() -> None:
        offset = 0
        while not is_over.is_set() or offset < members[1].partition.high_watermark:
            result = consume(members[1], offset)
            headers = [header for _, header in split(read_parts(result.parts))]
            reads.append(len(headers))
            if any(header.last_offset >= result.high_watermark for header in headers):
                wrong.append((headers[-1], result.high_watermark))
            offset = headers[-1].next_offset if headers else offset

    reader = threading.Thread(target=consume_all)
    reader.start()
    for number in range(150):
        members[1].produce(batch(f"{number}"), acks=1)
        members[2].fetch_once()
    members[2].fetch_once()
    is_over.set()
    reader.join(20)
    assert not reader.is_alive()
    assert wrong == []
    assert sum(reads) == 150
    assert len(members[1].partition.log.segment_bases) > 10
