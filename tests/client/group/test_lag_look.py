"""What one look at groups says: their lag, and which query they are."""

import pytest

from sparklog.client.group.committed_offsets import CommittedOffset
from sparklog.client.group.group_admin import GroupListing
from sparklog.client.group.lag_look import GroupLag, PartitionLag, query_of
from sparklog.model.ids import TopicPartition


def group(committed: int, end: int, metadata: str = "") -> GroupLag:
    listing = GroupListing(group_id="g", protocol_type="", group_state="Empty", coordinator=1)
    one = PartitionLag(TopicPartition("t", 0), CommittedOffset(committed, metadata=metadata), end)
    return GroupLag(listing, (one,))


def test_lag_is_what_is_not_read_and_never_negative() -> None:
    assert [group(3, 10).lag, group(10, 10).lag, group(11, 10).lag, group(3, -1).lag] == [7, 0, 0, 0]


def test_a_query_is_known_by_the_metadata_of_its_commits() -> None:
    metadata = '{"name": "bills", "id": "abc", "run": "r", "batch": 17}'
    assert group(0, 1, metadata).query() == {"name": "bills", "id": "abc", "run": "r", "batch": 17}
    assert group(0, 1).query() is None


@pytest.mark.parametrize(
    "metadata", ["", "{", "[1]", '{"name": "x"}', '{"id": 7}', "{" * 5000, '{"id": null}']
)
def test_metadata_of_other_clients_are_no_query(metadata: str) -> None:
    assert query_of(metadata) is None
