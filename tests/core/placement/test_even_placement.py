"""Plans for partitions that exist: even, over racks, and nothing moves that could stay."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.placement.even_placement import plan_placement
from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicPartition


def topic(*replicas, name="t"):
    return {TopicPartition(name, number): tuple(found) for number, found in enumerate(replicas)}


def without_racks(*brokers):
    return dict.fromkeys(brokers)


def copies(current, planned):
    return sum(len(set(planned[one]) - set(current[one])) for one in current)


def loads(planned):
    return Counter(broker for replicas in planned.values() for broker in replicas)


def spread(counts, brokers):
    found = [counts[broker] for broker in brokers]
    return max(found) - min(found)


def test_what_is_even_already_stays_as_it_is():
    current = topic((1, 2), (2, 3), (3, 1))
    assert plan_placement(current, without_racks(1, 2, 3)) == current


def test_a_new_broker_takes_its_share_and_nothing_else_moves():
    current = topic(*[(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 4)
    planned = plan_placement(current, without_racks(1, 2, 3, 4))
    assert copies(current, planned) == 9
    assert set(loads(planned).values()) == {9}
    assert set(Counter(one[0] for one in planned.values()).values()) == {3}


def test_a_broker_that_goes_gives_its_replicas_to_the_others_alone():
    current = topic((1, 2), (2, 3), (3, 4), (4, 1))
    planned = plan_placement(current, without_racks(1, 2, 3))
    assert copies(current, planned) == 2
    assert spread(loads(planned), (1, 2, 3)) <= 1


def test_more_replicas_are_added_and_fewer_leave_the_first_one_in_place():
    current = topic((2, 1), (1, 3))
    more = plan_placement(current, without_racks(1, 2, 3), replication_factor=3)
    assert [set(one) for one in more.values()] == [{1, 2, 3}] * 2
    fewer = plan_placement(current, without_racks(1, 2, 3), replication_factor=1)
    assert fewer == topic((2,), (1,))


def test_many_small_topics_are_even_together():
    current = {}
    for name in "abcdefgh":
        current |= topic((1, 2, 3), name=name)
    planned = plan_placement(current, without_racks(1, 2, 3, 4))
    assert set(loads(planned).values()) == {6}
    assert copies(current, planned) == 6


def test_a_partition_in_one_rack_alone_gets_a_replica_in_another():
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    planned = plan_placement(topic((1, 2), (3, 1)), racks)
    assert [{racks[one] for one in replicas} for replicas in planned.values()] == [{"a", "b"}] * 2
    assert planned[TopicPartition("t", 1)] == (3, 1)


def test_a_replica_that_must_leave_is_replaced_within_its_rack():
    racks = {1: "a", 3: "b", 4: "b"}
    planned = plan_placement(topic((1, 2), (1, 2)), racks)
    assert [set(one) - {1} for one in planned.values()] == [{3}, {4}]


def test_racks_count_only_where_every_broker_names_one():
    current = topic((1, 2))
    assert plan_placement(current, {1: "a", 2: "a", 3: None}) == current


def test_leaders_are_even_although_replicas_overlap_but_little():
    current = topic((1, 2), (1, 2), (2, 3), (2, 3), (3, 1), (1, 3))
    planned = plan_placement(current, without_racks(1, 2, 3))
    assert copies(current, planned) == 0
    assert set(Counter(one[0] for one in planned.values()).values()) == {2}


def test_more_replicas_than_brokers_are_refused():
    with pytest.raises(ConfigError, match="t-0 cannot have 3 replicas on 2 brokers"):
        plan_placement(topic((1, 2)), without_racks(1, 2), replication_factor=3)


@st.composite
def clusters(draw):
    old = draw(st.integers(2, 7))
    current = {}
    for name in "abc"[: draw(st.integers(1, 3))]:
        factor = draw(st.integers(1, old))
        some = st.lists(st.integers(1, old), min_size=factor, max_size=factor, unique=True)
        current |= topic(*draw(st.lists(some, min_size=1, max_size=9)), name=name)
    most = max(len(one) for one in current.values())
    brokers = draw(st.lists(st.integers(1, old + 2), min_size=most, unique=True))
    return current, brokers


@given(clusters(), st.booleans())
def test_every_plan_is_a_placement_that_is_even_and_stays_so(cluster, has_racks):
    current, brokers = cluster
    racks = {broker: "ab"[broker % 2] if has_racks else None for broker in brokers}
    planned = plan_placement(current, racks)
    for partition, replicas in planned.items():
        assert len(set(replicas)) == len(replicas) == len(current[partition])
        assert set(replicas) <= set(brokers)
        if has_racks:
            assert len({racks[one] for one in replicas}) == min(len(set(racks.values())), len(replicas))
    if not has_racks:
        assert spread(loads(planned), brokers) <= 1
        assert copies(planned, plan_placement(planned, racks)) == 0
