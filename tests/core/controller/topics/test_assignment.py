"""Where the replicas of a new topic go."""

from collections import Counter

import pytest

from sparklog.core.controller.topics.assignment import place
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId


def brokers(count, racks=None):
    return [
        Broker(BrokerId(number), plaintext("host", 9092), rack=racks[number % len(racks)] if racks else None)
        for number in range(count)
    ]


@pytest.mark.parametrize("seed", [0, 1, 7, 2**127 + 5])
@pytest.mark.parametrize("factor", [1, 2, 3, 5])
def test_leaders_and_replicas_are_spread_evenly(seed, factor):
    placement = place(brokers(5), partitions=20, replication_factor=factor, seed=seed)
    assert all(len(set(replicas)) == factor for replicas in placement)
    assert set(Counter(replicas[0] for replicas in placement).values()) == {4}
    assert set(Counter(broker for replicas in placement for broker in replicas).values()) == {4 * factor}


def test_followers_of_one_leader_are_not_always_the_same():
    placement = place(brokers(4), partitions=12, replication_factor=2, seed=0)
    followers = {replicas[1] for replicas in placement if replicas[0] == 0}
    assert followers == {1, 2, 3}


def test_kafkas_own_example_of_an_unaware_placement():
    placement = place(brokers(5), partitions=10, replication_factor=3, seed=0)
    assert placement[:6] == ((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1), (0, 2, 3))


@pytest.mark.parametrize("seed", range(7))
def test_replicas_are_in_as_many_racks_as_there_are(seed):
    racks = {number: f"rack-{number % 3}" for number in range(6)}
    placement = place(
        brokers(6, ["rack-0", "rack-1", "rack-2"]), partitions=18, replication_factor=3, seed=seed
    )
    assert all(len({racks[broker] for broker in replicas}) == 3 for replicas in placement)
    assert set(Counter(replicas[0] for replicas in placement).values()) == {3}


@pytest.mark.parametrize("seed", range(5))
def test_more_replicas_than_racks_use_each_rack_before_any_twice(seed):
    placement = place(brokers(6, ["a", "b"]), partitions=12, replication_factor=5, seed=seed)
    for replicas in placement:
        assert len(set(replicas)) == 5
        assert len({broker % 2 for broker in replicas[:2]}) == 2


def test_a_single_broker_holds_everything():
    assert place(brokers(1), partitions=3, replication_factor=1, seed=9) == ((0,), (0,), (0,))


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [
        (0, 1, ErrorCode.invalid_partitions),
        (1, 0, ErrorCode.invalid_replication_factor),
        (1, 4, ErrorCode.invalid_replication_factor),
    ],
)
def test_what_cannot_be_placed_is_refused(partitions, factor, error):
    with pytest.raises(KafkaError) as refused:
        place(brokers(3), partitions=partitions, replication_factor=factor, seed=0)
    assert refused.value.code is error


def test_racks_for_some_brokers_only_are_refused():
    some = [Broker(BrokerId(1), plaintext("host", 1), rack="a"), Broker(BrokerId(2), plaintext("host", 1))]
    with pytest.raises(KafkaError, match="rack"):
        place(some, partitions=1, replication_factor=1, seed=0)
