"""The history of groups: their lag at each look, and since when they have not moved."""

from sparklog.client.group.committed_offsets import CommittedOffset
from sparklog.client.group.group_admin import GroupListing
from sparklog.client.group.lag_look import GroupLag, LagLook, PartitionLag
from sparklog.model.ids import TopicPartition
from sparklog.web.lags import LOOKS_KEPT, LagHistory


def group(committed: int, end: int) -> GroupLag:
    listing = GroupListing(group_id="g", protocol_type="", group_state="Empty", coordinator=1)
    one = PartitionLag(TopicPartition("t", 0), CommittedOffset(committed), end)
    return GroupLag(listing, (one,))


def test_a_group_has_not_moved_since_the_look_that_first_saw_it_where_it_is() -> None:
    history = LagHistory()
    for time_ms, committed in ((100, 3), (200, 3), (300, 5), (400, 5)):
        history.add(LagLook(time_ms, {"g": group(committed, 10)}))
    assert history.of_group("g") == [(100, 7), (200, 7), (300, 5), (400, 5)]
    assert history.moved_ms("g") == 300
    assert history.of_group("another") == []
    assert history.moved_ms("another") is None


def test_the_oldest_looks_go() -> None:
    history = LagHistory()
    for time_ms in range(LOOKS_KEPT + 5):
        history.add(LagLook(time_ms, {"g": group(0, 1)}))
    assert history.of_group("g")[0] == (5, 1)
    assert len(history.of_group("g")) == LOOKS_KEPT
