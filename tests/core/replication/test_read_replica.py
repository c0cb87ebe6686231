"""To whom a leader sends consumers (KIP-392)."""

import pytest

from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.read_replica import closest_replica
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch
from sparklog.model.time import MonotonicMs

NOW = MonotonicMs(0)
RACKS = {BrokerId(1): "a", BrokerId(2): "b", BrokerId(3): "b", BrokerId(4): "b"}


def leader(isr=(1, 2, 3), ends=((2, 100), (3, 100)), starts=()) -> Leader:
    """Broker 1 leads; the others have fetched up to their end."""
    replicas = tuple(map(BrokerId, (1, 2, 3, 4)))
    state = PartitionState(BrokerId(1), LeaderEpoch(0), tuple(map(BrokerId, isr)), replicas)
    made = Leader.take_over(
        state,
        broker_id=BrokerId(1),
        broker_epoch=BrokerEpoch(10),
        marks=Watermarks(0, 0, 100),
        epochs=EpochHistory(),
        lag_max_ms=10_000,
        now_ms=NOW,
    )
    for broker, end in ends:
        start = dict(starts).get(broker, 0)
        made.on_follower_fetch(BrokerId(broker), BrokerEpoch(20), end, NOW, start)
    return made


@pytest.mark.scenario("S17")
@pytest.mark.parametrize(
    ("made", "rack", "expected"),
    [
        pytest.param(leader(), "b", 2, id="in its rack; the first of equals"),
        pytest.param(leader(ends=((2, 60), (3, 90))), "b", 3, id="the one that has most"),
        pytest.param(leader(), "a", None, id="the leader is in the rack itself"),
        pytest.param(leader(), "nowhere", None, id="nobody is in that rack"),
        pytest.param(leader(), "", None, id="the consumer does not say where it is"),
        pytest.param(leader(ends=((2, 40), (3, 49))), "b", None, id="none has the offset yet"),
        pytest.param(leader(isr=(1,)), "b", None, id="none of them is in sync"),
        pytest.param(leader(ends=()), "b", None, id="none was heard of in this epoch"),
        pytest.param(leader(starts=((2, 51), (3, 50))), "b", 3, id="one does not have it any more"),
    ],
)
def test_a_consumer_is_sent_to_a_replica_in_sync_that_is_in_its_rack_and_has_its_offset(
    made, rack, expected
) -> None:
    assert closest_replica(made, 50, rack, RACKS) == expected


def test_a_replica_whose_broker_is_dead_is_nowhere() -> None:
    racks = {broker: rack for broker, rack in RACKS.items() if broker != 2}
    assert closest_replica(leader(), 50, "b", racks) == 3
