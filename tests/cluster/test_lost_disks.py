"""Disks of brokers are gone when they return: no election cuts what a replica that lives still has."""

import shutil

import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

TP = TopicPartition("t", 0)
VALUES = [b"%03d" % number for number in range(500)]


@pytest.fixture
def cluster(tmp_path):
    with InProcessCluster(tmp_path) as cluster:
        cluster.create_topic("t")
        cluster.wait_for_isr("t", 3)
        for first in range(0, len(VALUES), 100):
            cluster.produce("t", VALUES[first : first + 100])
        cluster.wait_for_isr("t", 3)
        yield cluster


def kill_until_the_third_is_alone_in_the_isr(cluster):
    for broker in (1, 2):
        cluster.kill(broker)
        cluster.wait_for_isr("t", 3 - broker)
    assert cluster.partitions("t")[0].isr == (3,)
    cluster.kill(3)


def empty_disk(cluster, broker):
    """As on another machine: nothing of the broker's directory is left."""
    shutil.rmtree(cluster.root / f"broker-{broker}")


def revive(cluster, broker, *, is_last=False):
    """Start it, and wait until the controller has its report, on which a leader may follow at once."""
    cluster.revive(broker)
    machine = cluster.controller._candidate._term._machine
    until(lambda: is_last or TP in machine.image.log_ends.get(broker, ()))


@pytest.mark.bug(
    "B84",
    "records",
    "An in-sync replica that returns with an empty disk leads, and the others are cut to nothing.",
)
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_the_last_broker_in_sync_returns_with_an_empty_disk_and_no_record_is_lost(cluster, order):
    kill_until_the_third_is_alone_in_the_isr(cluster)
    empty_disk(cluster, 3)
    for broker in order:
        revive(cluster, broker, is_last=broker == order[-1])
        if broker != order[-1]:
            assert cluster.partitions("t")[0].leader == -1, "a replica that is away may have more"
    cluster.wait_for_leader("t")
    cluster.wait_for_isr("t", 3)
    assert [record.value for record in cluster.consume("t", at_least=len(VALUES))] == VALUES
    assert cluster.partitions("t")[0].lost_in_epoch > 0
    cluster.produce("t", [b"goes on"])


def test_an_operator_ends_the_wait_for_a_broker_that_never_returns(cluster):
    kill_until_the_third_is_alone_in_the_isr(cluster)
    empty_disk(cluster, 3)
    for broker in (3, 2):
        revive(cluster, broker)
    assert cluster.partitions("t")[0].leader == -1
    assert ClusterChanges(cluster.client).elect_leaders([TP], unclean=True) == ([TP], {})
    assert cluster.wait_for_leader("t") == 2
    assert [record.value for record in cluster.consume("t", at_least=len(VALUES))] == VALUES
