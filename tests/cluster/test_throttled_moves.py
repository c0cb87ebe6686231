"""A throttle on real brokers: a move beside it is done long before, and writers feel nothing of it."""

import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

SLOW, QUICK = TopicPartition("slow", 0), TopicPartition("quick", 0)
RATE = 20_000
"""At this rate the slow move takes 40 s: the quick one, of as many bytes, is done first on any machine."""
UNLIMITED = 2**60
RECORD_BYTES = 20_000
WAIT_S = 60


@pytest.mark.scenario("S8", "A throttled move (KIP-73) takes about as long as its bytes need at the rate.")
@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_move_lags_behind_another_of_as_many_bytes_while_writes_go_on(side):
    # A follower may exceed its rate by one reply: small ones, so that it does not get all with the first.
    with InProcessCluster(brokers=3, settings={"replica.fetch.max.bytes": "50000"}) as cluster:
        changes = ClusterChanges(cluster.client)
        moves = {}
        for moved in (SLOW, QUICK):
            cluster.create_topic(moved.topic, replication_factor=2)
            cluster.produce(moved.topic, [f"{number:{RECORD_BYTES}}" for number in range(40)])
            leader, follower = cluster.partitions(moved.topic)[0].replicas
            moves[moved] = (leader, follower, *({1, 2, 3} - {leader, follower}))
        limited = moves[SLOW][0 if side == "leader" else -1]
        changes.alter_topic_configs("slow", {f"{side}.replication.throttled.replicas": f"0:{limited}"})
        changes.alter_broker_configs(limited, {f"{side}.replication.throttled.rate": str(RATE)})
        assert changes.reassign(moves) == {}
        until(lambda: QUICK not in changes.ongoing_moves())
        cluster.produce("slow", ["now"])
        assert SLOW in changes.ongoing_moves(), "it was as quick as the move without a throttle"
        changes.alter_broker_configs(limited, {f"{side}.replication.throttled.rate": str(UNLIMITED)})
        until(lambda: not changes.ongoing_moves())
        assert [record.value for record in cluster.consume("slow", at_least=41)][-1] == b"now"
