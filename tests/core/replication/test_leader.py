"""The leader's rules as sentences."""

import pytest

from sparklog.core.replication.actions import (
    CheckLog,
    CompleteProduce,
    HandOver,
    ProposeIsr,
    WakeFetch,
)
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.core.replication.isr import CommittedIsr, ExpandingIsr, ShrinkingIsr
from sparklog.core.replication.leader import INELIGIBLE_PAUSE_MS, Diverging, IsrReply, Leader
from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch
from sparklog.model.time import MonotonicMs

NOW = MonotonicMs(1_000_000)
LAG_MAX_MS = 10_000
ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)


def at(milliseconds: int) -> MonotonicMs:
    return MonotonicMs(NOW + milliseconds)


def leader_with(
    *,
    isr=(1, 2, 3),
    replicas=(1, 2, 3),
    log_end_offset=0,
    high_watermark=0,
    min_insync_replicas=2,
    epoch=5,
    history=(),
) -> Leader:
    epochs = EpochHistory.of(history)
    epochs.assign(epoch, log_end_offset)
    state = PartitionState(
        leader=ONE,
        leader_epoch=LeaderEpoch(epoch),
        isr=tuple(map(BrokerId, isr)),
        replicas=tuple(map(BrokerId, replicas)),
        partition_epoch=7,
        min_insync_replicas=min_insync_replicas,
    )
    return Leader.take_over(
        state,
        broker_id=ONE,
        broker_epoch=BrokerEpoch(100),
        marks=Watermarks(0, high_watermark, log_end_offset),
        epochs=epochs,
        lag_max_ms=LAG_MAX_MS,
        now_ms=NOW,
    )


def append(leader: Leader, records: int, now=NOW):
    leader.marks.log_end_offset += records
    return leader.on_appended(now)


def fetch(leader: Leader, follower: int, offset: int, now=NOW, epoch=None):
    broker_epoch = BrokerEpoch(100 * follower if epoch is None else epoch)
    actions = leader.on_follower_fetch(BrokerId(follower), broker_epoch, offset, now)
    leader.check_invariants()
    return actions


def proposals(actions):
    return [action for action in actions if isinstance(action, ProposeIsr)]


def answered(leader: Leader, proposal: int, *isr: int, error=ErrorCode.none, partition_epoch=8, now=NOW):
    reply = IsrReply(error, tuple(map(BrokerId, isr)), leader.leader_epoch, partition_epoch)
    actions = leader.on_isr_reply(proposal, reply, now)
    leader.check_invariants()
    return actions


def test_acks_all_completes_when_the_slowest_isr_member_has_the_batch() -> None:
    leader = leader_with()
    append(leader, 10)
    assert leader.on_produce_waits(token=1, required_offset=10) == []
    assert fetch(leader, 2, 10) == []
    assert fetch(leader, 3, 10) == [CompleteProduce(1, ErrorCode.none)]


def test_produces_complete_in_the_order_of_their_offsets() -> None:
    leader = leader_with()
    append(leader, 10)
    leader.on_produce_waits(2, 10)
    leader.on_produce_waits(1, 5)
    fetch(leader, 2, 10)
    assert fetch(leader, 3, 10) == [
        CompleteProduce(1, ErrorCode.none),
        CompleteProduce(2, ErrorCode.none),
    ]


def test_a_produce_that_is_already_committed_completes_at_once() -> None:
    leader = leader_with(log_end_offset=10, high_watermark=10)
    assert leader.on_produce_waits(1, 10) == [CompleteProduce(1, ErrorCode.none)]


def test_a_forgotten_produce_is_never_completed() -> None:
    leader = leader_with()
    append(leader, 1)
    leader.on_produce_waits(1, 1)
    leader.produces.forget(1)
    fetch(leader, 2, 1)
    assert fetch(leader, 3, 1) == []
    assert leader.marks.high_watermark == 1


@pytest.mark.scenario(
    "S64",
    "Below min.insync.replicas acks=all is refused: NOT_ENOUGH_REPLICAS, or its form for after the append.",
)
def test_acks_all_is_refused_below_min_isr_and_acks_one_is_not() -> None:
    leader = leader_with(isr=(1,))
    assert leader.refuse_append(-1) is ErrorCode.not_enough_replicas
    assert leader.refuse_append(1) is ErrorCode.none
    assert leader.refuse_append(0) is ErrorCode.none
    assert leader.refuse_append(2) is ErrorCode.invalid_required_acks


def test_min_isr_above_the_replication_factor_counts_as_the_replication_factor() -> None:
    leader = leader_with(isr=(1,), replicas=(1,), min_insync_replicas=3)
    assert leader.refuse_append(-1) is ErrorCode.none


@pytest.mark.scenario("S34")
def test_after_an_election_the_high_watermark_waits_for_every_isr_member() -> None:
    leader = leader_with(log_end_offset=10, high_watermark=4)
    assert leader.on_appended(NOW) == []
    assert fetch(leader, 2, 10) == []
    assert leader.latest_offset(Visibility.HIGH_WATERMARK) is None
    assert fetch(leader, 3, 10) == []
    assert leader.marks.high_watermark == 10
    assert leader.latest_offset(Visibility.HIGH_WATERMARK) == 10


def test_nothing_is_committed_before_the_log_was_compared_with_the_history() -> None:
    leader = leader_with(isr=(1,), min_insync_replicas=1, log_end_offset=10, high_watermark=4)
    leader.awaits_history = True
    assert leader.on_appended(NOW) == []
    assert leader.marks.high_watermark == 4
    assert leader.on_history(None) == []
    leader.on_appended(NOW)
    assert leader.marks.high_watermark == 10


@pytest.mark.scenario(
    "S34",
    "After an election the latest offset is not available until the epoch's start is committed (KIP-207).",
)
def test_latest_is_not_available_until_the_high_watermark_reaches_the_epochs_start() -> None:
    leader = leader_with(log_end_offset=10, high_watermark=9)
    assert leader.latest_offset(Visibility.HIGH_WATERMARK) is None


def test_the_high_watermark_waits_for_a_caught_up_outsider_who_is_about_to_join() -> None:
    leader = leader_with(isr=(1, 2), min_insync_replicas=1)
    append(leader, 5)
    joining = fetch(leader, 3, 5)
    assert proposals(joining)
    append(leader, 5)
    assert fetch(leader, 2, 10) == []
    assert leader.marks.high_watermark == 5
    assert fetch(leader, 3, 10) == []
    assert leader.marks.high_watermark == 10


def test_the_high_watermark_does_not_wait_for_an_outsider_whose_broker_died_on_its_way_in() -> None:
    leader = leader_with(isr=(1, 2), log_end_offset=10, high_watermark=10)
    fetch(leader, 2, 10)
    fetch(leader, 3, 10)  # its proposal is under way, or waits behind another
    append(leader, 5)
    fetch(leader, 2, 15)
    answered(leader, 1, error=ErrorCode.operation_not_attempted)
    assert leader.marks.high_watermark == 10
    leader.on_live_brokers({ONE, TWO}, at(1))
    assert leader.marks.high_watermark == 15


@pytest.mark.bug("B18", "away", "Writes wait for a replica that almost joined the ISR.")
def test_the_high_watermark_waits_at_most_the_lag_for_an_outsider() -> None:
    """Nothing is appended meanwhile, as whoever writes waits for an answer."""
    leader = leader_with(isr=(1, 2), log_end_offset=10, high_watermark=10)
    fetch(leader, 2, 10)
    fetch(leader, 3, 10)
    append(leader, 5)
    leader.on_produce_waits(1, 15)
    fetch(leader, 2, 15)
    answered(leader, 1, error=ErrorCode.operation_not_attempted)
    assert leader.on_tick(at(LAG_MAX_MS)) == []
    freed = [CompleteProduce(1, ErrorCode.none)]
    assert leader.on_tick(at(LAG_MAX_MS + 1)) == freed


def test_an_outsider_who_fetches_again_after_its_broker_was_said_to_be_away_is_waited_for() -> None:
    leader = leader_with(isr=(1, 2), log_end_offset=10, high_watermark=10)
    fetch(leader, 2, 10)
    leader.on_live_brokers({ONE, TWO}, at(1))
    fetch(leader, 3, 10, at(2))
    append(leader, 5, at(3))
    fetch(leader, 2, 15, at(3))
    assert leader.marks.high_watermark == 10


def test_a_member_of_the_isr_is_waited_for_until_the_controller_removes_it() -> None:
    leader = leader_with(log_end_offset=10, high_watermark=10)
    fetch(leader, 2, 10)
    fetch(leader, 3, 10)
    append(leader, 5)
    fetch(leader, 2, 15)
    assert leader.on_live_brokers({ONE, TWO}, at(1)) == []
    assert leader.marks.high_watermark == 10


@pytest.mark.scenario(
    "S26",
    "A follower at the high watermark but below the leader epoch's start stays out of the ISR (KAFKA-7128).",
)
def test_a_follower_below_the_epochs_start_does_not_join_even_at_the_high_watermark() -> None:
    leader = leader_with(isr=(1, 2), log_end_offset=20, high_watermark=10)
    assert proposals(fetch(leader, 3, 12)) == []
    assert isinstance(leader.isr, CommittedIsr)
    (proposal,) = proposals(fetch(leader, 3, 20))
    assert [member for member, _ in proposal.members] == [1, 2, 3]


def test_a_proposal_names_each_members_broker_epoch() -> None:
    """[bug 23] KIP-903"""
    leader = leader_with(isr=(1, 2))
    fetch(leader, 2, 0, epoch=222)
    (proposal,) = proposals(fetch(leader, 3, 0, epoch=333))
    assert proposal.members == ((1, 100), (2, 222), (3, 333))
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 7)


@pytest.mark.scenario(
    "S27",
    "A joining replica holds the high watermark back at once; the controller makes it a member (KIP-497).",
)
def test_an_expansion_counts_the_newcomer_at_once_and_the_members_after_the_reply() -> None:
    leader = leader_with(isr=(1, 2))
    (proposal,) = proposals(fetch(leader, 3, 0))
    assert isinstance(leader.isr, ExpandingIsr)
    append(leader, 1)
    assert fetch(leader, 2, 1) == []
    answered(leader, proposal.proposal, 1, 2, 3)
    assert leader.isr == CommittedIsr(frozenset({ONE, TWO, THREE}), 8)


@pytest.mark.scenario("S32", "One change of the ISR is in flight; a second one waits.")
def test_a_second_change_waits_for_the_first() -> None:
    leader = leader_with(isr=(1, 2))
    assert proposals(fetch(leader, 3, 0))
    assert proposals(fetch(leader, 3, 0)) == []
    assert leader.on_tick(at(LAG_MAX_MS + 1)) == []


def test_an_ineligible_newcomer_is_dropped_and_may_ask_again_but_not_with_every_fetch() -> None:
    """One that shuts down fetches on, and each proposal costs the controller a round."""
    leader = leader_with(isr=(1, 2))
    (first,) = proposals(fetch(leader, 3, 0))
    answered(leader, first.proposal, error=ErrorCode.ineligible_replica)
    assert leader.isr == CommittedIsr(frozenset({ONE, TWO}), 7)
    assert proposals(fetch(leader, 3, 0, at(INELIGIBLE_PAUSE_MS - 1))) == []
    (second,) = proposals(fetch(leader, 3, 0, at(INELIGIBLE_PAUSE_MS)))
    assert second.proposal != first.proposal


@pytest.mark.scenario("S1")
def test_writes_do_not_wait_for_a_replica_that_shut_down_after_one_more_fetch() -> None:
    """It was caught up, and would have counted as about to join for as long as a follower may lag."""
    leader = leader_with(isr=(1, 2))
    (proposal,) = proposals(fetch(leader, 3, 0))
    append(leader, 1)
    leader.on_produce_waits(7, 1)
    assert fetch(leader, 2, 1) == []
    answer = answered(leader, proposal.proposal, error=ErrorCode.ineligible_replica)
    assert answer == [CompleteProduce(7, ErrorCode.none)]
    append(leader, 1)
    fetch(leader, 2, 2)
    assert leader.marks.high_watermark == 2


def test_a_replica_that_was_refused_is_waited_for_again_when_it_is_proposed_again() -> None:
    leader = leader_with(isr=(1, 2))
    (first,) = proposals(fetch(leader, 3, 0))
    answered(leader, first.proposal, error=ErrorCode.ineligible_replica)
    (second,) = proposals(fetch(leader, 3, 0, at(INELIGIBLE_PAUSE_MS)))
    append(leader, 1)
    assert fetch(leader, 2, 1) == []
    answered(leader, second.proposal, error=ErrorCode.operation_not_attempted)
    assert leader.marks.high_watermark == 0, "it is still about to join"


@pytest.mark.scenario(
    "S28",
    "An expansion that could not be written stays pending, and the newcomer holds the high watermark back.",
)
@pytest.mark.scenario("S33")
@pytest.mark.parametrize(
    "error",
    [ErrorCode.fenced_leader_epoch, ErrorCode.invalid_update_version, ErrorCode.unknown_topic_or_partition],
)
def test_a_change_refused_for_something_newer_stays_pending_until_the_controller_speaks(error) -> None:
    leader = leader_with(isr=(1, 2))
    (proposal,) = proposals(fetch(leader, 3, 0))
    answered(leader, proposal.proposal, error=error)
    assert isinstance(leader.isr, ExpandingIsr)
    append(leader, 1)
    assert fetch(leader, 2, 1) == []


@pytest.mark.scenario("S31")
def test_a_reply_to_an_older_proposal_is_ignored() -> None:
    leader = leader_with(isr=(1, 2))
    (proposal,) = proposals(fetch(leader, 3, 0))
    assert answered(leader, proposal.proposal + 1, 1) == []
    assert isinstance(leader.isr, ExpandingIsr)


@pytest.mark.kafka_bug(
    "K21", "KAFKA-13091", "After an ISR shrank the high watermark was not updated: writes hung."
)
@pytest.mark.scenario("S5", "A follower stops fetching: it leaves the ISR, and acks=all continues.")
def test_kafka_13091_a_follower_that_stopped_fetching_leaves_the_isr_and_ends_waits() -> None:
    """[5, bug 21] KAFKA-13091"""
    leader = leader_with()
    append(leader, 3)
    leader.on_produce_waits(1, 3)
    fetch(leader, 2, 3)
    (proposal,) = proposals(leader.on_tick(at(LAG_MAX_MS + 1)))
    assert [member for member, _ in proposal.members] == [1, 2]
    assert isinstance(leader.isr, ShrinkingIsr)
    assert answered(leader, proposal.proposal, 1, 2, now=at(LAG_MAX_MS + 2)) == [
        CompleteProduce(1, ErrorCode.none),
    ]


@pytest.mark.kafka_bug(
    "K33",
    "KAFKA-8733, KIP-501",
    "A leader's slow disk made followers seem late; the ISR shrank to it, and its death ended all writes.",
)
def test_kip_501_a_follower_of_a_stalled_leader_is_judged_by_its_fetchs_arrival() -> None:
    leader = leader_with()
    append(leader, 3)
    waiting = {BrokerId(2): at(LAG_MAX_MS - 1)}
    (proposal,) = proposals(leader.on_tick(at(LAG_MAX_MS + 1), waiting))
    assert [member for member, _ in proposal.members] == [1, 2]


def test_kip_501_a_follower_that_was_late_already_when_its_fetch_came_leaves_the_isr() -> None:
    leader = leader_with()
    append(leader, 3)
    waiting = dict.fromkeys(map(BrokerId, (2, 3)), at(LAG_MAX_MS + 1))
    assert proposals(leader.on_tick(at(9 * LAG_MAX_MS), waiting))


def test_after_a_pause_of_its_own_a_leader_judges_nobody_before_all_had_time_to_be_heard() -> None:
    leader = leader_with()
    append(leader, 3)
    assert leader.on_tick(at(LAG_MAX_MS // 2)) == []
    assert leader.on_tick(at(9 * LAG_MAX_MS)) == []
    fetch(leader, 2, 3, at(9 * LAG_MAX_MS + 1))
    (proposal,) = proposals(leader.on_tick(at(9 * LAG_MAX_MS + LAG_MAX_MS // 2)))
    assert [member for member, _ in proposal.members] == [1, 2]


def test_a_follower_that_asks_for_the_same_again_and_again_makes_its_leader_check_the_log() -> None:
    leader = leader_with()
    append(leader, 3)
    checks = [CheckLog(0) in fetch(leader, 2, 0) for _ in range(9)]
    assert checks == [False, False, True, False, True, False, False, False, True]
    fetch(leader, 2, 3)
    assert [CheckLog(3) in fetch(leader, 2, 3) for _ in range(4)] == [False] * 4, "it waits for records"


def test_a_damaged_leader_hands_over_only_if_somebody_else_is_in_sync() -> None:
    assert leader_with().on_damage() == [HandOver()]
    assert leader_with(isr=(1,)).on_damage() == []


def test_while_a_shrink_is_pending_the_leaving_replica_still_counts() -> None:
    leader = leader_with()
    append(leader, 3)
    fetch(leader, 2, 3)
    assert proposals(leader.on_tick(at(LAG_MAX_MS + 1)))
    assert fetch(leader, 2, 3, at(LAG_MAX_MS + 2)) == []
    assert leader.marks.high_watermark == 0


@pytest.mark.scenario("S64")
def test_a_shrink_below_min_isr_answers_waiting_writes_at_once() -> None:
    leader = leader_with(isr=(1, 2))
    append(leader, 3)
    leader.on_produce_waits(1, 3)
    (proposal,) = proposals(leader.on_tick(at(LAG_MAX_MS + 1)))
    assert answered(leader, proposal.proposal, 1, now=at(LAG_MAX_MS + 2)) == [
        CompleteProduce(1, ErrorCode.not_enough_replicas_after_append)
    ]
    assert leader.marks.high_watermark == 0


@pytest.mark.bug("B1", "records", "A leader that commits alone loses committed records.")
@pytest.mark.kafka_bug(
    "K34",
    "KAFKA-15583",
    "The high watermark advanced below the minimum ISR: acks=1 records were read, then lost.",
)
def test_kafka_15583_below_min_isr_the_high_watermark_stands_still() -> None:
    """[bug 34] KAFKA-15583; docs/decisions/0004: an eligible replica outside may lack what lies there."""
    leader = leader_with(isr=(1,), log_end_offset=10, high_watermark=4)
    assert leader.on_appended(NOW) == []
    assert append(leader, 5) == []
    assert leader.marks.high_watermark == 4
    assert leader.latest_offset(Visibility.HIGH_WATERMARK) is None


@pytest.mark.scenario("S30", "A follower at the end of an idle log stays in the ISR.")
def test_an_idle_follower_at_the_logs_end_stays_in_the_isr() -> None:
    leader = leader_with(isr=(1, 2))
    fetch(leader, 2, 0)
    assert leader.on_tick(at(100 * LAG_MAX_MS)) == []


@pytest.mark.scenario("S29", "A follower that reached the log end of its previous fetch stays in the ISR.")
def test_a_follower_that_keeps_pace_with_a_moving_end_stays_in_the_isr() -> None:
    leader = leader_with(isr=(1, 2))
    for second in range(60):
        append(leader, 10)
        fetch(leader, 2, max(0, 10 * second), at(1_000 * second))
    assert leader.on_tick(at(60_000)) == []


@pytest.mark.scenario("S29")
def test_a_follower_that_always_trails_leaves_the_isr() -> None:
    leader = leader_with(isr=(1, 2))
    append(leader, 1_000)
    for second in range(15):
        append(leader, 10)
        fetch(leader, 2, second, at(1_000 * second))
    assert proposals(leader.on_tick(at(15_000)))


@pytest.mark.scenario("S36")
def test_an_unknown_follower_and_an_older_incarnation_of_a_known_one_are_refused() -> None:
    leader = leader_with()
    fetch(leader, 2, 0, epoch=200)
    assert leader.check_follower(BrokerId(9), BrokerEpoch(1)) is ErrorCode.unknown_leader_epoch
    assert leader.check_follower(TWO, BrokerEpoch(199)) is ErrorCode.stale_broker_epoch
    assert leader.check_follower(TWO, BrokerEpoch(201)) is ErrorCode.none


@pytest.mark.scenario("S37")
def test_readers_with_another_leader_epoch_are_fenced() -> None:
    leader = leader_with(epoch=5)
    assert leader.check_epoch(-1) is ErrorCode.none
    assert leader.check_epoch(5) is ErrorCode.none
    assert leader.check_epoch(4) is ErrorCode.fenced_leader_epoch
    assert leader.check_epoch(6) is ErrorCode.unknown_leader_epoch


@pytest.mark.scenario(
    "S35", "A fetch names its last record's epoch and gets the exact divergence (KIP-595's form of KIP-320)."
)
@pytest.mark.parametrize(
    ("fetch_offset", "last_epoch", "expected"),
    [
        (20, 5, ErrorCode.none),
        (8, 2, ErrorCode.none),
        (12, 2, Diverging(2, 10)),
        (12, 3, Diverging(2, 10)),
        (12, 4, ErrorCode.none),
        (25, 5, Diverging(5, 20)),
        (5, 9, ErrorCode.offset_out_of_range),
        (21, -1, ErrorCode.offset_out_of_range),
    ],
)
def test_a_fetch_position_is_compared_with_the_leaders_history(fetch_offset, last_epoch, expected) -> None:
    """Epochs: 0 from 0, 2 from 4, 4 from 10, 5 from 15; the log ends at 20."""
    leader = leader_with(epoch=5, log_end_offset=15, history=((0, 0), (2, 4), (4, 10)))
    append(leader, 5)
    assert leader.check_fetch_position(fetch_offset, last_epoch) == expected


@pytest.mark.bug("B14")
@pytest.mark.parametrize(
    ("follower", "fetch_offset", "last_epoch", "log_start", "expected"),
    [
        pytest.param(3, 12, 3, 5, ErrorCode.offset_out_of_range, id="it ends where our log begins"),
        pytest.param(3, 12, 3, -1, ErrorCode.offset_out_of_range, id="it does not say where it begins"),
        pytest.param(3, 15, 3, 5, Diverging(3, 12), id="it ends behind, but has nothing of our epochs"),
        pytest.param(3, 12, 4, 5, ErrorCode.none, id="we know its epoch, and so that our logs are equal"),
        pytest.param(3, 12, 3, 12, ErrorCode.none, id="it has no records"),
        pytest.param(3, 12, -1, 12, ErrorCode.none, id="it never had any"),
        pytest.param(2, 12, 3, 5, ErrorCode.none, id="it is in the ISR"),
    ],
)
def test_nobody_vouches_for_records_of_an_epoch_that_the_leader_has_forgotten(
    follower, fetch_offset, last_epoch, log_start, expected
) -> None:
    """Records were deleted up to 12, and with them what is known of the epochs before 4."""
    leader = leader_with(isr=(1, 2), epoch=5, log_end_offset=15, history=((0, 0), (2, 4), (4, 10)))
    append(leader, 5)
    leader.marks.log_start_offset = leader.marks.high_watermark = 12
    leader.epochs.trim_to(12)
    found = leader.check_follower_log(BrokerId(follower), fetch_offset, last_epoch, log_start)
    assert found == expected


def test_a_parked_follower_is_woken_by_an_append_and_a_consumer_by_the_high_watermark() -> None:
    leader = leader_with(isr=(1, 2))
    assert leader.on_fetch_waits(1, 0, Visibility.LOG_END) == []
    assert leader.on_fetch_waits(2, 0, Visibility.HIGH_WATERMARK) == []
    assert append(leader, 1) == [WakeFetch(1)]
    assert fetch(leader, 2, 1) == [WakeFetch(2)]


def test_a_fetch_that_would_find_something_is_woken_instead_of_parked() -> None:
    leader = leader_with(log_end_offset=5, high_watermark=3)
    assert leader.on_fetch_waits(1, 4, Visibility.LOG_END) == [WakeFetch(1)]
    assert leader.on_fetch_waits(2, 2, Visibility.HIGH_WATERMARK) == [WakeFetch(2)]
    assert leader.on_fetch_waits(3, 3, Visibility.HIGH_WATERMARK) == []


@pytest.mark.scenario("S39")
@pytest.mark.scenario("S40")
def test_a_leader_that_resigns_tells_every_wait() -> None:
    leader = leader_with()
    append(leader, 1)
    leader.on_produce_waits(1, 1)
    leader.on_fetch_waits(2, 1, Visibility.LOG_END)
    leader.on_fetch_waits(3, 1, Visibility.HIGH_WATERMARK)
    assert leader.resign() == [
        CompleteProduce(1, ErrorCode.not_leader_or_follower),
        WakeFetch(2),
        WakeFetch(3),
    ]
    assert leader.resign() == []


def test_a_leader_alone_commits_what_it_appends() -> None:
    leader = leader_with(isr=(1,), replicas=(1,))
    assert append(leader, 3) == []
    assert leader.marks.high_watermark == 3
