"""The follower's rules as sentences."""

import pytest

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.actions import (
    AskLeaderOffsets,
    BackOff,
    RaiseLogStart,
    RestartAt,
    TruncateTo,
    WakeFetch,
)
from sparklog.core.replication.epoch_history import EarlierHistory, EpochHistory
from sparklog.core.replication.follower import FetchPosition, Follower
from sparklog.core.replication.leader import Diverging
from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_LEADER, BrokerId, LeaderEpoch


def follower_with(*, start=0, high_watermark=0, end=20, epoch=6, history=((0, 0), (2, 10), (4, 15))):
    return Follower(
        BrokerId(1), LeaderEpoch(epoch), Watermarks(start, high_watermark, end), EpochHistory.of(history)
    )


def test_it_asks_from_its_end_and_names_the_epoch_of_its_last_record() -> None:
    assert follower_with().fetch_position() == FetchPosition(LeaderEpoch(6), 20, 4)


def test_without_a_leader_it_asks_nobody() -> None:
    follower = follower_with()
    follower.leader = NO_LEADER
    assert follower.fetch_position() is None


@pytest.mark.parametrize(
    ("diverging", "target"),
    [
        pytest.param(Diverging(4, 18), 18, id="the leader's epoch 4 is shorter than ours"),
        pytest.param(Diverging(4, 30), 20, id="our epoch 4 is shorter: nothing to cut"),
        pytest.param(Diverging(3, 14), 15, id="we never had epoch 3: cut to the end of our epoch 2"),
        pytest.param(Diverging(2, 12), 12, id="we part within epoch 2"),
        pytest.param(Diverging(-1, 9), 9, id="no epoch, but an end"),
        pytest.param(Diverging(-1, -1), 7, id="the leader knows nothing: the high watermark is all we have"),
    ],
)
def test_it_truncates_to_where_the_logs_part(diverging, target) -> None:
    """KIP-279; the leader's answers are for our last epoch, 4."""
    follower = follower_with(high_watermark=7)
    assert follower.on_diverging(diverging, 0) == [TruncateTo(target)]
    assert follower.marks.high_watermark == 7


GIVEN_UP = {"start": 128, "high_watermark": 129, "end": 161, "epoch": 7, "history": ((3, 128), (4, 130))}
"""A log whose beginning retention removed; an election of epoch 7 made another one the truth."""


@pytest.mark.bug("B38")
def test_where_the_logs_part_before_its_own_begins_it_begins_anew_where_the_leaders_does() -> None:
    """Begun at the cut it would be counted in sync without what the leader has before."""
    follower = follower_with(**GIVEN_UP)
    assert follower.on_diverging(Diverging(1, 42), 18) == [AskLeaderOffsets()]
    assert follower.on_leader_offsets(18, 200) == [RestartAt(18)]
    assert follower_with(**GIVEN_UP).on_leader_offsets(18, 42) == [RestartAt(18)]


def test_what_it_asked_for_to_begin_anew_is_forgotten_when_something_else_comes_between() -> None:
    for between in (
        lambda follower: follower.on_fetch_error(ErrorCode.offset_out_of_range, 7),
        lambda follower: follower.on_appended(0, 0),
        lambda follower: follower.on_diverging(Diverging(4, 150), 18),
    ):
        follower = follower_with(**GIVEN_UP)
        follower.on_diverging(Diverging(1, 42), 18)
        between(follower)
        assert follower.on_leader_offsets(18, 200) == []


def test_a_leader_without_a_start_below_the_cut_makes_the_follower_truncate() -> None:
    for leader_start in (-1, 43):
        assert follower_with(**GIVEN_UP).on_diverging(Diverging(1, 42), leader_start) == [TruncateTo(42)]


def test_wherever_it_begins_anew_it_takes_what_its_leader_knows_of_producers_from_before() -> None:
    known, parted = ProducerStates(), follower_with(**GIVEN_UP)
    parted.on_diverging(Diverging(1, 42), 42)
    for actions in (
        parted.on_leader_offsets(42, 200, known),
        follower_with(**GIVEN_UP).on_leader_offsets(18, 42, known),
        follower_with().on_leader_offsets(50, 90, known),
    ):
        (action,) = actions
        assert isinstance(action, RestartAt)
        assert action.producers is known


@pytest.mark.bug("B38")
def test_cut_to_its_own_start_it_begins_anew_only_if_an_election_has_lost_its_records() -> None:
    """Without one all that it gave up was committed, and its high watermark need not fall for it."""
    follower = follower_with(**GIVEN_UP)
    assert follower.on_diverging(Diverging(1, 140), 18) == [TruncateTo(128)]
    follower.lost_in_epoch = LeaderEpoch(4)
    assert follower.on_diverging(Diverging(1, 140), 18) == [TruncateTo(128)]
    follower.lost_in_epoch = LeaderEpoch(7)
    assert follower.on_diverging(Diverging(1, 140), 18) == [AskLeaderOffsets()]
    assert follower.on_leader_offsets(18, 200) == [RestartAt(18)]


def test_its_high_watermark_follows_the_leaders_but_never_beyond_its_own_end() -> None:
    follower = follower_with(high_watermark=5)
    assert follower.on_appended(12, 0) == []
    assert follower.marks.high_watermark == 12
    assert follower.on_appended(99, 0) == []
    assert follower.marks.high_watermark == 20
    assert follower.on_appended(3, 0) == []
    assert follower.marks.high_watermark == 20


def test_it_raises_its_log_start_to_the_leaders() -> None:
    assert follower_with(high_watermark=20).on_appended(20, 8) == [RaiseLogStart(8)]


@pytest.mark.kafka_bug("K9")
def test_a_reply_counts_only_for_the_epoch_and_offset_that_it_answers() -> None:
    """KAFKA-13207"""
    follower = follower_with()
    assert follower.expects(6, 20)
    assert not follower.expects(5, 20)
    assert not follower.expects(6, 19)


def test_out_of_range_asks_where_the_leaders_log_is() -> None:
    assert follower_with().on_fetch_error(ErrorCode.offset_out_of_range, 6) == [AskLeaderOffsets()]


@pytest.mark.scenario("S46")
def test_an_error_for_an_earlier_epoch_changes_nothing() -> None:
    """KAFKA-7786"""
    follower = follower_with()
    assert follower.on_fetch_error(ErrorCode.fenced_leader_epoch, 5) == []
    assert follower.failed is None


@pytest.mark.scenario(
    "S46",
    "A follower fenced in its epoch waits for a newer one; fenced for an old one it goes on (KAFKA-7786).",
)
def test_fenced_in_the_epoch_that_it_still_holds_it_waits_for_a_newer_one() -> None:
    follower = follower_with()
    assert follower.on_fetch_error(ErrorCode.fenced_leader_epoch, 6) == [
        BackOff(ErrorCode.fenced_leader_epoch)
    ]
    assert follower.fetch_position() is None


def test_other_errors_only_pause_it() -> None:
    follower = follower_with()
    for error in (
        ErrorCode.unknown_leader_epoch,
        ErrorCode.not_leader_or_follower,
        ErrorCode.corrupt_message,
    ):
        assert follower.on_fetch_error(error, 6) == [BackOff(error)]
    assert follower.fetch_position() is not None


@pytest.mark.scenario(
    "S45",
    "OFFSET_OUT_OF_RANGE: a follower beyond the leader's end truncates, one before its start begins anew.",
)
def test_a_leader_that_ends_below_us_makes_us_truncate() -> None:
    assert follower_with().on_leader_offsets(0, 12) == [TruncateTo(12)]


@pytest.mark.scenario("S45")
def test_a_leader_that_starts_above_us_makes_us_start_anew() -> None:
    assert follower_with().on_leader_offsets(50, 90) == [RestartAt(50)]


@pytest.mark.bug("B14")
def test_a_leader_that_starts_where_we_end_has_nothing_of_ours_either() -> None:
    assert follower_with(end=20).on_leader_offsets(20, 90) == [RestartAt(20)]
    assert follower_with(start=20, high_watermark=20, end=20).on_leader_offsets(20, 90) == []


def test_a_leader_that_has_grown_past_us_meanwhile_costs_us_nothing() -> None:
    """KAFKA-2143"""
    assert follower_with().on_leader_offsets(0, 25) == []


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (4, ErrorCode.offset_out_of_range),
        (5, ErrorCode.none),
        (10, ErrorCode.none),
        (20, ErrorCode.none),
        (21, ErrorCode.offset_not_available),
    ],
)
def test_kip_392_consumers_read_a_follower_s_log_and_what_it_lacks_yet_is_no_lost_offset(
    offset, expected
) -> None:
    assert follower_with(start=5, high_watermark=10, end=20).check_read(offset) is expected


def test_kip_392_a_consumer_with_another_leader_epoch_is_fenced_by_a_follower() -> None:
    follower = follower_with(epoch=6)
    assert [follower.check_epoch(epoch) for epoch in (-1, 6, 5, 7)] == [
        ErrorCode.none,
        ErrorCode.none,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
    ]


def test_kip_392_a_consumer_that_waits_at_a_follower_is_woken_by_its_high_watermark() -> None:
    follower = follower_with(high_watermark=10, end=20)
    assert follower.on_fetch_waits(1, 9, Visibility.HIGH_WATERMARK) == [WakeFetch(1)]
    assert follower.on_fetch_waits(2, 10, Visibility.HIGH_WATERMARK) == []
    assert follower.on_fetch_waits(3, 15, Visibility.HIGH_WATERMARK) == []
    assert follower.on_appended(12, 0) == [WakeFetch(2)]
    assert follower.resign() == [WakeFetch(3)]


def test_what_only_the_leaders_store_has_makes_it_ask_where_the_leaders_disk_begins() -> None:
    moved = ErrorCode.offset_moved_to_tiered_storage
    assert follower_with().on_fetch_error(moved, 6) == [AskLeaderOffsets()]


def test_it_begins_anew_at_the_leaders_local_start_with_the_history_before_it() -> None:
    history = EarlierHistory(3)
    assert follower_with().on_leader_offsets(50, 90, None, history) == [RestartAt(50, None, history)]


def test_where_the_logs_part_in_its_own_remote_part_it_begins_anew() -> None:
    """The records on its disk are none of the leader's, so nothing is left to cut them from."""
    follower = follower_with()
    follower.marks.local_start_offset = 12
    assert follower.on_diverging(Diverging(2, 11), 0) == [AskLeaderOffsets()]
    assert follower.on_leader_offsets(5, 200) == [RestartAt(5)]


def behind_a_history(*, lost_in_epoch, history=((0, 0), (2, 10), (4, 15))):
    """Its log of 20 records has 12 in the remote store only."""
    follower = follower_with(history=history)
    follower.marks.local_start_offset, follower.lost_in_epoch = 12, LeaderEpoch(lost_in_epoch)
    return follower


def test_after_a_loss_it_asks_where_the_leaders_disk_begins_before_it_fetches() -> None:
    """What it gave up on its disk may have been cut from the history since."""
    follower = behind_a_history(lost_in_epoch=5)
    assert follower.fetch_position() == FetchPosition(LeaderEpoch(6), 20, 4, asks_first=True)
    assert follower.check_read(11) is ErrorCode.offset_not_available
    assert follower.check_read(12) is ErrorCode.none
    assert follower.on_leader_offsets(12, 30) == []
    assert follower.fetch_position() == FetchPosition(LeaderEpoch(6), 20, 4)
    assert follower.check_read(11) is ErrorCode.none


@pytest.mark.bug("B77")
def test_after_a_loss_it_begins_anew_where_the_leaders_disk_begins_earlier() -> None:
    assert behind_a_history(lost_in_epoch=5).on_leader_offsets(11, 30) == [RestartAt(11)]
    assert behind_a_history(lost_in_epoch=4).on_leader_offsets(11, 30) == [], "it has records since then"


def test_it_is_in_no_doubt_with_all_on_its_disk_or_with_records_since_the_loss() -> None:
    assert not behind_a_history(lost_in_epoch=4).is_front_in_doubt
    whole = behind_a_history(lost_in_epoch=5)
    whole.marks.log_start_offset = 12
    assert not whole.is_front_in_doubt


def test_a_log_of_which_the_store_has_all_begins_anew_where_its_leader_has_deleted_that() -> None:
    """Else its leader refuses its epoch for ever: no record of that is left there."""
    marks = Watermarks(0, 10, 10, local_start_offset=10)
    follower = Follower(BrokerId(1), LeaderEpoch(6), marks, EpochHistory.of([(0, 0)]))
    assert follower.on_leader_offsets(10, 10) == [RestartAt(10)]
    assert follower_with(start=10, end=10, history=((0, 10),)).on_leader_offsets(10, 10) == []
