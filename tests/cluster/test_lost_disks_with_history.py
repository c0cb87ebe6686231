"""All disks are gone when the brokers return: the remote store counts as a replica, and has most records."""

import shutil

import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.tiers import copying_at_once
from tests.waiting import until

pytestmark = pytest.mark.integration

TP = TopicPartition("t", 0)
TIERED = {"remote.storage.enable": "true", "segment.bytes": "1000", "local.retention.bytes": "1"}
VALUES = [f"{number:03d} {'v' * 90}".encode() for number in range(80)]


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "store").mkdir()
    settings = copying_at_once(f"file://{tmp_path / 'store'}")
    with InProcessCluster(tmp_path / "cluster", settings=settings) as cluster:
        yield cluster


def partition_on(cluster, broker):
    return cluster.brokers[broker].body.replicas.get(TP)


def fill(cluster):
    """Write all values; the end of what the store has of them, which is not all."""
    cluster.create_topic("t", configs=TIERED)
    cluster.wait_for_isr("t", 3)
    for value in VALUES:
        cluster.produce("t", [value])
    log = partition_on(cluster, cluster.wait_for_leader("t")).log
    until(lambda: log.local_start_offset == log.active_segment_base)
    assert 0 < log.local_start_offset < len(VALUES)
    return log.local_start_offset


def lose_all_disks(cluster):
    for broker in (1, 2, 3):
        cluster.kill(broker)
    for broker in (1, 2, 3):
        shutil.rmtree(cluster.root / f"broker-{broker}")


def read(cluster, count):
    return [record.value for record in cluster.consume("t", at_least=count)]


@pytest.mark.bug(
    "B85", "records", "After the loss of all disks an empty log cuts the history in the remote store."
)
def test_all_that_was_copied_is_read_again_and_new_records_follow_it(cluster):
    copied = fill(cluster)
    lose_all_disks(cluster)
    for broker in (1, 2, 3):
        cluster.revive(broker)
    cluster.wait_for_isr("t", 3)
    assert read(cluster, copied) == VALUES[:copied]
    cluster.produce("t", [b"goes on"])
    assert read(cluster, copied + 1) == [*VALUES[:copied], b"goes on"]
    described = cluster.partitions("t")[0]
    assert 0 <= described.lost_in_epoch <= described.leader_epoch


def test_copies_go_on_behind_the_history(cluster):
    copied = fill(cluster)
    lose_all_disks(cluster)
    for broker in (1, 2, 3):
        cluster.revive(broker)
    more = [b"more " + value for value in VALUES]
    for value in more:
        cluster.produce("t", [value])
    log = partition_on(cluster, cluster.wait_for_leader("t")).log
    until(lambda: log.local_start_offset > copied + 60)
    expected = [*VALUES[:copied], *more]
    assert read(cluster, len(expected)) == expected
    lose_all_disks(cluster)
    for broker in (3, 1, 2):
        cluster.revive(broker)
    cluster.wait_for_isr("t", 3)
    kept = read(cluster, copied + 60)
    assert kept == expected[: len(kept)]


def test_a_leader_serves_nobody_while_the_store_is_away_and_says_why(cluster, tmp_path):
    copied = fill(cluster)
    store, elsewhere = tmp_path / "store" / "topic=t", tmp_path / "away"
    lose_all_disks(cluster)
    store.rename(elsewhere)
    for broker in (1, 2, 3):
        cluster.revive(broker)
    leader = cluster.wait_for_leader("t")
    until(lambda: partition_on(cluster, leader).awaits_history)
    until(lambda: partition_on(cluster, leader).store_share is not None)
    assert "serves nobody" in partition_on(cluster, leader).store_share.trouble
    assert [partition_on(cluster, broker).log_end_offset for broker in (1, 2, 3)] == [0, 0, 0]
    elsewhere.rename(store)
    cluster.wait_for_isr("t", 3)
    assert read(cluster, copied) == VALUES[:copied]


def test_a_partition_without_a_history_does_not_wait_for_the_store(cluster, tmp_path):
    cluster.create_topic("t", configs=TIERED)
    cluster.wait_for_isr("t", 3)
    lose_all_disks(cluster)
    (tmp_path / "store").rename(tmp_path / "away")
    for broker in (1, 2, 3):
        cluster.revive(broker)
    cluster.produce("t", [b"a"])
    assert read(cluster, 1) == [b"a"]


def test_an_operator_gives_up_a_history_that_cannot_be_read(cluster, tmp_path):
    copied = fill(cluster)
    store = tmp_path / "store" / "topic=t"
    lose_all_disks(cluster)
    store.rename(tmp_path / "lost for good")
    for broker in (1, 2, 3):
        cluster.revive(broker)
    leader = cluster.wait_for_leader("t")
    until(lambda: partition_on(cluster, leader).store_share is not None)
    (described,) = cluster.admin.describe_topics(["t"])[0].partitions
    assert (described.remote.start_offset, described.remote.end_offset) == (0, copied)
    assert "whose log ends at 0, serves nobody" in described.remote.trouble
    changes = ClusterChanges(cluster.client)
    assert changes.elect_leaders([TP], unclean=True)[1][TP].code is ErrorCode.election_not_needed
    assert changes.elect_leaders([TP], unclean=True, without_store=True) == ([TP], {})
    cluster.wait_for_isr("t", 3)
    cluster.produce("t", [b"begins again"])
    assert read(cluster, 1) == [b"begins again"]
