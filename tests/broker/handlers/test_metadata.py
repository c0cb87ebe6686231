"""What Metadata name while and after a broker ends."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.testing.cluster import InProcessCluster
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.server_harness import Harness
from tests.waiting import until


@pytest.fixture
def cluster():
    with InProcessCluster(brokers=2) as cluster:
        cluster.create_topic("t", partitions=2, replication_factor=2)
        cluster.wait_for_isr("t", 2)
        yield cluster


def leaders(harness):
    """The error and the leader of each partition, as a client is told."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    (topic,) = harness.call(request).topics
    return {one.partition_index: (one.error_code, one.leader_id) for one in topic.partitions}


def test_a_leader_that_refuses_its_followers_is_not_available_before_the_controller_knows(cluster):
    harness = Harness(cluster.brokers[2])
    known = cluster.brokers[2].body.context.metadata.snapshot
    of_broker = {state.leader: number for number, state in known.topics["t"].partitions.items()}
    assert set(of_broker) == {1, 2}
    assert leaders(harness) == {of_broker[one]: (ErrorCode.none, one) for one in (1, 2)}
    cluster.controller.stop()
    cluster.brokers[1].stop(clean=False)
    until(lambda: leaders(harness)[of_broker[1]] == (ErrorCode.leader_not_available, -1))
    assert leaders(harness)[of_broker[2]] == (ErrorCode.none, 2)
    cached = cluster.brokers[2].body.context.metadata.partition(TopicPartition("t", of_broker[1]))
    assert cached is not None
    assert cached.leader == 1
    harness.connection.close()


def test_a_broker_that_has_left_stays_listed_and_says_so(cluster):
    harness = Harness(cluster.brokers[2])
    cluster.brokers[1].stop()
    until(lambda: {error for error, _ in leaders(harness).values()} == {ErrorCode.none})
    assert set(leaders(harness).values()) == {(ErrorCode.none, 2)}
    listed = harness.call(MetadataRequest(topics=[])).brokers
    assert [(one.node_id, one.has_left) for one in listed] == [(2, 0), (1, 1)]
    assert set(cluster.client.metadata([], max_age_ms=0).brokers) == {2}
    harness.connection.close()
