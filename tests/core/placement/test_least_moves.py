"""A broker is emptied, or filled, and nothing moves that need not."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.placement.least_moves import plan_drain, plan_fill
from sparklog.model.ids import TopicPartition


def topic(*replicas, name="t"):
    return {TopicPartition(name, number): tuple(found) for number, found in enumerate(replicas)}


def without_racks(*brokers):
    return dict.fromkeys(brokers)


def loads(placement):
    return Counter(broker for replicas in placement.values() for broker in replicas)


def drain(current, leaving, brokers):
    moving = [one for one, replicas in current.items() if set(replicas) & set(leaving)]
    return plan_drain(current, moving, leaving, brokers)


def test_only_replicas_of_the_drained_broker_move():
    current = topic((1, 2), (2, 3), (3, 1), (2, 3))
    planned, stuck = drain(current, {1}, without_racks(1, 2, 3, 4))
    assert planned == {TopicPartition("t", 0): (4, 2), TopicPartition("t", 2): (3, 4)}
    assert stuck == []


def test_the_replicas_of_a_drained_broker_spread_over_the_others():
    current = topic(*[(1, 2)] * 6)
    planned, _ = drain(current, {1}, without_racks(1, 2, 3, 4, 5))
    assert loads(planned) == {2: 6, 3: 2, 4: 2, 5: 2}


def test_a_drained_replica_goes_to_a_rack_that_has_none():
    racks = {1: "a", 2: "b", 3: "b", 4: "a"}
    planned, _ = drain(topic((1, 2)), {1}, racks)
    assert planned[TopicPartition("t", 0)] == (4, 2)


def test_racks_count_only_if_every_broker_names_one():
    planned, _ = drain(topic((1, 2)), {1}, {1: "a", 2: "b", 3: None, 4: "a"})
    assert planned[TopicPartition("t", 0)] == (3, 2)


def test_a_partition_that_finds_no_broker_is_named():
    planned, stuck = drain(topic((1, 2, 3), (1,)), {1}, without_racks(1, 2, 3))
    assert stuck == [TopicPartition("t", 0)]
    assert planned == {TopicPartition("t", 1): (2,)}


def test_two_brokers_that_are_drained_together_take_nothing_of_each_other():
    planned, stuck = drain(topic((1, 2, 3)), {1, 2}, without_racks(1, 2, 3, 4, 5))
    assert planned == {TopicPartition("t", 0): (4, 5, 3)}
    assert stuck == []


def test_a_filled_broker_gets_its_share_and_nothing_else_moves():
    current = topic(*[(1, 2), (2, 3), (3, 1)] * 4)
    planned = plan_fill(current, {4}, without_racks(1, 2, 3, 4), at_most=100)
    assert len(planned) == 6, "a quarter of 24 replicas"
    assert all(set(replicas) - set(current[one]) == {4} for one, replicas in planned.items())
    assert sum(replicas[0] == 4 for replicas in planned.values()) == 3, "a quarter of 12 preferred leaders"


def test_parts_of_a_plan_are_together_the_whole_plan():
    current = topic(*[(1, 2), (2, 3), (3, 1)] * 4)
    brokers = without_racks(1, 2, 3, 4)
    rounds = 0
    while part := plan_fill(current, {4}, brokers, at_most=2):
        assert len(part) <= 2
        current.update(part)
        rounds += 1
    assert rounds == 3
    assert loads(current)[4] == 6


def test_a_filled_broker_takes_no_replica_whose_rack_would_be_lost():
    current = topic(*[(1, 2)] * 4)
    planned = plan_fill(current, {3}, {1: "a", 2: "b", 3: "b"}, at_most=100)
    assert planned
    assert all(replicas[1] == 3 for replicas in planned.values()), "only the replicas of broker 2 may go"


def test_a_broker_that_has_its_share_gets_nothing():
    assert plan_fill(topic((1, 2), (2, 1)), {2}, without_racks(1, 2), at_most=100) == {}
    assert plan_fill({}, {2}, without_racks(1, 2), at_most=100) == {}


@st.composite
def clusters(draw):
    brokers = {one: draw(st.sampled_from("abc")) for one in range(1, draw(st.integers(2, 6)) + 1)}
    current = {}
    for name in "tu":
        for number in range(draw(st.integers(0, 12))):
            factor = draw(st.integers(1, len(brokers)))
            current[TopicPartition(name, number)] = tuple(draw(st.permutations(sorted(brokers)))[:factor])
    return current, brokers


@given(cluster=clusters(), data=st.data())
def test_a_drain_leaves_no_replica_and_moves_no_other(cluster, data):
    current, brokers = cluster
    leaving = {data.draw(st.sampled_from(sorted(brokers)))}
    planned, stuck = drain(current, leaving, brokers)
    for partition, replicas in planned.items():
        before = current[partition]
        assert not leaving & set(replicas)
        assert len(set(replicas)) == len(before)
        assert set(before) - leaving <= set(replicas)
    assert all(len(current[one]) >= len(brokers) for one in stuck)
    after = current | planned
    assert all(one in stuck for one, replicas in after.items() if leaving & set(replicas))


@given(cluster=clusters())
def test_a_fill_copies_to_the_filled_broker_alone_and_ends(cluster):
    current, brokers = cluster
    new = len(brokers) + 1
    every = {**brokers, new: "a"}
    planned = plan_fill(current, {new}, every, at_most=1_000)
    for partition, replicas in planned.items():
        assert set(replicas) - set(current[partition]) == {new}
        assert len(replicas) == len(current[partition])
    after = current | planned
    assert loads(after)[new] <= sum(loads(current).values()) // len(every)
    assert plan_fill(after, {new}, every, at_most=1_000) == {}


@pytest.mark.parametrize("filled", [{4}, {4, 5}])
def test_a_large_cluster_is_filled_evenly(filled):
    current = {
        TopicPartition(f"t{number % 7}", number): (number % 3 + 1, (number + 1) % 3 + 1)
        for number in range(300)
    }
    brokers = without_racks(1, 2, 3, *filled)
    after = current | plan_fill(current, filled, brokers, at_most=1_000)
    counts = loads(after)
    assert all(counts[one] == 600 // len(brokers) for one in filled)
    by_topic = Counter(one.topic for one, replicas in after.items() if 4 in replicas)
    assert max(by_topic.values()) - min(by_topic.values()) <= 2
