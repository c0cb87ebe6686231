"""A throttle on real brokers: a move takes the time that its bytes need, and writers feel nothing of it."""

import time

import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

T0 = TopicPartition("t", 0)
RATE = 200_000
RECORD_BYTES = 20_000
WAIT_S = 60


def until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_move_goes_at_the_rate_while_writes_are_as_quick_as_ever(side):
    # A follower may exceed its rate by one reply: small ones, so that it does not get all with the first.
    with InProcessCluster(brokers=3, settings={"replica.fetch.max.bytes": "50000"}) as cluster:
        changes = ClusterChanges(cluster.client)
        cluster.create_topic("t", replication_factor=2)
        for number in range(40):
            cluster.produce("t", [f"{number:{RECORD_BYTES}}"])
        leader, follower = cluster.partitions("t")[0].replicas
        (new,) = {1, 2, 3} - {leader, follower}
        limited = leader if side == "leader" else new
        changes.alter_topic_configs("t", {f"{side}.replication.throttled.replicas": f"0:{limited}"})
        changes.alter_broker_configs(limited, {f"{side}.replication.throttled.rate": str(RATE)})
        begun = time.monotonic()
        assert changes.reassign({T0: (leader, follower, new)}) == {}
        cluster.produce("t", ["now"])
        assert time.monotonic() - begun < 2
        assert new not in cluster.partitions("t")[0].isr
        until(lambda: not changes.ongoing_moves())
        # 800 kB, of which a second's worth goes at once.
        assert time.monotonic() - begun > 2
        assert [record.value for record in cluster.consume("t", at_least=41)][-1] == b"now"
