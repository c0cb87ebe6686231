"""Lag by group and topic: bounded, however many there are."""

from sparklog.client.group.committed_offsets import CommittedOffset
from sparklog.client.group.group_admin import GroupListing
from sparklog.client.group.lag_look import GroupLag, LagLook, PartitionLag
from sparklog.model.ids import TopicPartition
from sparklog.web.lag_metrics import SERIES_MAX, lag_metrics


def group(name: str, *ends: tuple[str, int, int]) -> GroupLag:
    """``ends``: topic, partition, and the end of a partition whose first record alone was read."""
    listing = GroupListing(group_id=name, protocol_type="", group_state="Empty", coordinator=1)
    partitions = tuple(
        PartitionLag(TopicPartition(topic, partition), CommittedOffset(1), end)
        for topic, partition, end in ends
    )
    return GroupLag(listing, partitions)


def series(look: LagLook | None) -> dict[tuple[str, str], float]:
    return {(one.labels[0][1], one.labels[1][1]): one.value for one in lag_metrics(look)}


def test_partitions_of_a_topic_are_summed() -> None:
    groups = {"g": group("g", ("t", 0, 11), ("t", 1, 6), ("s", 0, 1)), "h": group("h", ("t", 0, 3))}
    assert series(LagLook(0, groups)) == {("g", "t"): 15, ("g", "s"): 0, ("h", "t"): 2, ("", ""): 0}


def test_of_20000_topics_the_largest_lags_have_series_and_the_rest_share_one() -> None:
    ends = [(f"t{number}", 0, number + 1) for number in range(20_000)]
    found = series(LagLook(0, {"g": group("g", *ends)}))
    assert len(found) == SERIES_MAX + 1
    assert found["g", "t19999"] == 19_999
    assert found["", ""] == sum(range(20_000 - SERIES_MAX))


def test_before_the_first_look_there_is_no_lag() -> None:
    assert series(None) == {}
