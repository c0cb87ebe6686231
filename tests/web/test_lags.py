"""The history of groups: their lag at each look, since when they have not moved, and which query they are."""

import pytest

from sparklog.client.group.committed_offsets import CommittedOffset
from sparklog.client.group.group_admin import GroupListing
from sparklog.model.ids import TopicPartition
from sparklog.web.lags import LOOKS_KEPT, GroupLag, LagHistory, Look, PartitionLag, query_of


def group(committed: int, end: int, metadata: str = "") -> GroupLag:
    listing = GroupListing(group_id="g", protocol_type="", group_state="Empty", coordinator=1)
    one = PartitionLag(TopicPartition("t", 0), CommittedOffset(committed, metadata=metadata), end)
    return GroupLag(listing, (one,))


def test_lag_is_what_is_not_read_and_never_negative() -> None:
    assert [group(3, 10).lag, group(10, 10).lag, group(11, 10).lag, group(3, -1).lag] == [7, 0, 0, 0]


def test_a_group_has_not_moved_since_the_look_that_first_saw_it_where_it_is() -> None:
    history = LagHistory()
    for time_ms, committed in ((100, 3), (200, 3), (300, 5), (400, 5)):
        history.add(Look(time_ms, {"g": group(committed, 10)}))
    assert history.of_group("g") == [(100, 7), (200, 7), (300, 5), (400, 5)]
    assert history.moved_ms("g") == 300
    assert history.of_group("another") == []
    assert history.moved_ms("another") is None


def test_the_oldest_looks_go() -> None:
    history = LagHistory()
    for time_ms in range(LOOKS_KEPT + 5):
        history.add(Look(time_ms, {"g": group(0, 1)}))
    assert history.of_group("g")[0] == (5, 1)
    assert len(history.of_group("g")) == LOOKS_KEPT


def test_a_query_is_known_by_the_metadata_of_its_commits() -> None:
    metadata = '{"name": "bills", "id": "abc", "run": "r", "batch": 17}'
    assert group(0, 1, metadata).query() == {"name": "bills", "id": "abc", "run": "r", "batch": 17}
    assert group(0, 1).query() is None


@pytest.mark.parametrize(
    "metadata", ["", "{", "[1]", '{"name": "x"}', '{"id": 7}', "{" * 5000, '{"id": null}']
)
def test_metadata_of_other_clients_are_no_query(metadata: str) -> None:
    assert query_of(metadata) is None
