"""A power cut of everything: no log is proven, each has lost another part of its tail."""

import os
import uuid

import pytest

from sparklog.broker.life import process_ports
from sparklog.client.changes import ClusterChanges
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

TP = TopicPartition("t", 0)
VALUES = [b"%02d" % number for number in range(20)]


@pytest.fixture
def cluster(tmp_path):
    with InProcessCluster(tmp_path, settings={"min.insync.replicas": "3"}) as cluster:
        cluster.create_topic("t")
        for value in VALUES:
            cluster.produce("t", [value])
        cluster.wait_for_isr("t", 3)
        yield cluster


def cut_the_power(cluster, monkeypatch, *, kept):
    """Everybody dies, loses all but the first ``kept`` batches, and finds another boot of its machine."""
    for broker in kept:
        cluster.kill(broker)
    for broker, batches in kept.items():
        path = cluster.root / f"broker-{broker}" / "0" / "t-0" / f"{0:020d}.log"
        size = path.stat().st_size
        assert size % len(VALUES) == 0, "batches of different sizes"
        os.truncate(path, size // len(VALUES) * batches)
    monkeypatch.setattr(process_ports, "read_boot_id", lambda: str(uuid.uuid4()))


def wait_for_reports(cluster, *brokers):
    """Until the controller has these brokers' reports of where their logs end."""
    machine = cluster.controller._candidate._term._machine
    until(lambda: all(TP in machine.image.log_ends.get(broker, ()) for broker in brokers))


def test_the_longest_log_leads_once_all_are_back_and_the_loss_is_told(cluster, monkeypatch):
    cut_the_power(cluster, monkeypatch, kept={1: 12, 2: 17, 3: 9})
    cluster.revive(1)
    cluster.revive(3)
    wait_for_reports(cluster, 1, 3)
    assert cluster.partitions("t")[0].leader == -1, "2 may have more"
    cluster.revive(2)
    assert cluster.wait_for_leader("t") == 2
    cluster.wait_for_isr("t", 3)
    assert [record.value for record in cluster.consume("t", at_least=17)] == VALUES[:17]
    described = cluster.partitions("t")[0]
    assert 0 < described.lost_in_epoch <= described.leader_epoch
    cluster.produce("t", [b"goes on"])


def test_an_operator_who_will_not_wait_gets_the_longest_log_that_is_there(cluster, monkeypatch):
    cut_the_power(cluster, monkeypatch, kept={1: 12, 2: 17, 3: 14})
    cluster.revive(1)
    cluster.revive(3)
    wait_for_reports(cluster, 1, 3)
    assert ClusterChanges(cluster.client).elect_leaders([TP], unclean=True) == ([TP], {})
    assert cluster.wait_for_leader("t") == 3
    cluster.revive(2)
    cluster.wait_for_isr("t", 3)
    assert [record.value for record in cluster.consume("t", at_least=14)] == VALUES[:14]


def test_a_single_replica_leads_again_and_tells_the_loss(tmp_path, monkeypatch):
    with InProcessCluster(tmp_path, brokers=1) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", ["kept"])
        cluster.kill(1)
        monkeypatch.setattr(process_ports, "read_boot_id", lambda: str(uuid.uuid4()))
        cluster.revive(1)
        cluster.wait_for_leader("t")
        assert cluster.partitions("t")[0].lost_in_epoch > 0
        assert [record.value for record in cluster.consume("t", at_least=1)] == [b"kept"]
