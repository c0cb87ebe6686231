"""Storage on real brokers in this process: records deleted, disks that fail."""

import errno
import shutil
import time
from pathlib import Path

import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.core.controller.state.znodes import decode_incarnation, incarnation_path
from sparklog.model.errors import ErrorCode, KafkaError, LogDirectoryError
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.storage.disk import LocalDisk, SyncFailed
from sparklog.storage.small_files import meta_properties
from sparklog.testing import InProcessCluster
from sparklog.testing.topics_and_records import wait_until
from sparklog.zookeeper.broker_registration import read_suspect

pytestmark = pytest.mark.integration

T0 = TopicPartition("t", 0)


@pytest.fixture
def cluster():
    with InProcessCluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture
def changes(cluster):
    with ClusterClient(cluster.bootstrap_servers) as client:
        yield ClusterChanges(client)


def starts(cluster):
    replicas = (broker.body.replicas.get(T0) for broker in cluster.brokers.values())
    return [replica.log_start_offset for replica in replicas]


def test_deleted_records_are_gone_on_every_replica_when_the_answer_comes(cluster, changes):
    cluster.create_topic("t")
    cluster.produce("t", [str(n) for n in range(20)])
    assert changes.delete_records({T0: 7}) == {T0: 7}
    assert starts(cluster) == [7, 7, 7]
    assert [record.offset for record in cluster.consume("t")] == list(range(7, 20))
    assert changes.delete_records({T0: -1}) == {T0: 20}
    assert cluster.consume("t") == []
    cluster.produce("t", ["after"])
    assert [record.offset for record in cluster.consume("t", at_least=1)] == [20]


def test_a_deletion_does_not_wait_for_a_dead_broker_which_deletes_when_it_is_back(cluster, changes):
    cluster.create_topic("t")
    cluster.produce("t", [str(n) for n in range(20)])
    follower = next(b for b in (1, 2, 3) if b != cluster.wait_for_leader("t"))
    cluster.kill(follower)
    assert changes.delete_records({T0: 5}) == {T0: 5}
    cluster.revive(follower)
    cluster.wait_for_isr("t", 3)
    wait_until(lambda: starts(cluster) == [5, 5, 5], lambda: f"log starts {starts(cluster)}")


def test_what_cannot_be_deleted_is_refused_with_the_reason(cluster, changes):
    cluster.create_topic("t")
    cluster.produce("t", ["only"])
    with pytest.raises(KafkaError) as refused:
        changes.delete_records({T0: 2})
    assert refused.value.code is ErrorCode.offset_out_of_range
    cluster.create_topic("compacted", configs={"cleanup.policy": "compact"})
    with pytest.raises(KafkaError) as refused:
        changes.delete_records({TopicPartition("compacted", 0): 0})
    assert refused.value.code is ErrorCode.policy_violation


def test_a_topic_may_go_by_the_leaders_clock(cluster, changes):
    """Its consumers see when a record was appended, and its producers are told."""
    cluster.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})
    before_ms = time.time() * 1_000
    cluster.produce("t", ["a", "b"])
    header = cluster.brokers[1].body.replicas.get(T0).log.header_at(0)
    assert header.is_log_append_time
    assert before_ms - 1 <= header.max_timestamp_ms <= time.time() * 1_000
    assert [record.value for record in cluster.consume("t")] == [b"a", b"b"]


# ---- disks that fail ---------------------------------------------------------------------------------------


@pytest.fixture
def disks():
    """Three brokers with two disks each, and a topic of which every disk has something."""
    with InProcessCluster(brokers=3, log_dirs=2, settings={"default.replication.factor": "3"}) as cluster:
        cluster.create_topic("t", partitions=4)
        for number in range(4):
            cluster.produce("t", ["before"], partition=number)
        yield cluster


def partitions_in(changes, broker):
    """What is in each directory that serves, and which do not."""
    found = changes.describe_log_dirs(broker)
    return {Path(path).name: sorted(tp.partition for tp in one.replicas) for path, one in found.items()}, {
        Path(path).name for path, one in found.items() if one.is_offline
    }


def break_log(broker, partition, error=None):
    """The next write to this log fails, as its disk would make it."""
    log = broker.body.replicas.get(partition).log

    def refuse(*_unused, **_ignored):
        raise error or OSError(errno.EIO, "Input/output error", log.directory)

    log.append = refuse


def home_of(cluster, broker, partition):
    (found,) = cluster.root.glob(f"broker-{broker}/*/{partition}")
    return found.parent.name


def test_a_broker_says_what_its_directories_hold(disks):
    changes = ClusterChanges(disks.client)
    held, offline = partitions_in(changes, 1)
    assert sorted(n for one in held.values() for n in one) == [0, 1, 2, 3]
    assert {len(one) for one in held.values()} == {2}
    assert offline == set()
    one = next(iter(changes.describe_log_dirs(1).values()))
    assert one.total_bytes >= one.usable_bytes > 0
    assert all(replica.size_bytes > 0 and replica.lag == 0 for replica in one.replicas.values())


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_a_disk_that_fails_takes_its_partitions_along_and_leaves_the_others(disks, code):
    leader = disks.wait_for_leader("t")
    broker, home = disks.brokers[leader], home_of(disks, leader, T0)
    break_log(broker, T0, OSError(code, "no"))
    disks.produce("t", ["after"], partition=0)
    assert disks.wait_for_leader("t", other_than=leader) != leader
    assert partitions_in(ClusterChanges(disks.client), leader)[1] == {home}
    lost = {n for n in range(4) if home_of(disks, leader, TopicPartition("t", n)) == home}
    wait_until(
        lambda: {n for n, one in enumerate(disks.partitions("t")) if leader not in one.isr} == lost,
        lambda: f"{lost} {disks.partitions('t')}",
    )
    assert broker.failure is None
    for number in range(4):
        disks.produce("t", ["later"], partition=number)
    values = [record.value for record in disks.consume("t", at_least=9) if record.partition == 0]
    assert values == [b"before", b"after", b"later"]


def test_replicas_of_a_failed_disk_come_back_with_their_broker(disks):
    leader = disks.wait_for_leader("t")
    break_log(disks.brokers[leader], T0)
    disks.produce("t", ["after"], partition=0)
    disks.shut_down(leader)
    disks.revive(leader)
    disks.wait_for_isr("t", 3)
    assert partitions_in(ClusterChanges(disks.client), leader)[1] == set()


def test_an_fsync_that_failed_is_remembered_by_zookeeper_and_the_replicas_catch_up(disks):
    leader = disks.wait_for_leader("t")
    broker, home = disks.brokers[leader], home_of(disks, leader, T0)
    break_log(broker, T0, SyncFailed(errno.EIO, "Input/output error"))
    disks.produce("t", ["after"], partition=0)
    notes = list(disks.root.glob(f"broker-{leader}/*/suspect-directories"))
    assert [path.parent.name for path in notes] == ["1" if home == "0" else "0"]
    wait_until(lambda: notes[0].read_text() == "", lambda: "the note stays, though ZooKeeper has been there")
    zookeeper, broker_id = broker.zookeeper, BrokerId(leader)
    log = (broker.body.replicas.get(T0).topic_id, T0.partition)
    (suspect,) = read_suspect(zookeeper, broker_id)
    assert str(meta_properties.read(LocalDisk(), str(notes[0].parents[1] / home)).uuid) == suspect
    disks.shut_down(leader)
    disks.revive(leader)
    zookeeper = disks.brokers[leader].zookeeper
    node = zookeeper.get(incarnation_path(broker_id))
    found = decode_incarnation(broker_id, node.data, node.stat.version, node.stat.mzxid).record
    assert not found.proves(node.stat.version - 1, log)
    assert found.suspect == ()
    disks.wait_for_isr("t", 3)


def test_a_broker_ends_when_its_last_disk_has_failed(disks):
    leader = disks.wait_for_leader("t")
    broker = disks.brokers[leader]
    homes = {}
    for number in range(4):
        homes.setdefault(home_of(disks, leader, TopicPartition("t", number)), number)
    for number in homes.values():
        break_log(broker, TopicPartition("t", number))
        disks.produce("t", ["after"], partition=number)
    assert broker.wait_stopped(30)
    assert "Input/output" in broker.failure
    disks.wait_for_isr("t", 2)


def test_a_directory_that_cannot_be_opened_is_offline_and_nothing_is_made_anew_for_it(disks):
    changes = ClusterChanges(disks.client)
    home = disks.root / "broker-2" / home_of(disks, 2, T0)
    disks.shut_down(2)
    away = home.rename(home.with_name("away"))
    home.write_text("a file, where a directory should be")
    disks.revive(2)
    kept = [n for n in range(4) if not (away / f"t-{n}").exists()]
    wait_until(
        lambda: [n for n, one in enumerate(disks.partitions("t")) if 2 in one.isr] == kept,
        lambda: f"{kept} {disks.partitions('t')}",
    )
    assert partitions_in(changes, 2)[1] == {home.name}
    assert not list(disks.root.glob("broker-2/[01]/t-0"))
    disks.create_topic("new", partitions=2)
    disks.wait_for_isr("new", 3)
    disks.shut_down(2)
    home.unlink()
    away.rename(home)
    disks.revive(2)
    disks.wait_for_isr("t", 3)
    disks.wait_for_isr("new", 3)


def test_a_directory_that_is_another_brokers_is_refused_and_both_are_named(disks):
    disks.shut_down(1)
    disks.shut_down(2)
    mine, other = disks.root / "broker-1" / "1", disks.root / "broker-2" / "1"
    shutil.rmtree(mine)
    shutil.copytree(other, mine)
    with pytest.raises(LogDirectoryError, match=r"broker-1/1 belongs to broker 2, this is broker 1: "):
        disks.revive(1)


def test_a_partition_in_two_directories_is_refused_and_both_are_named(disks):
    disks.shut_down(1)
    home = disks.root / "broker-1" / home_of(disks, 1, T0)
    other = disks.root / "broker-1" / ("1" if home.name == "0" else "0")
    shutil.copytree(home / "t-0", other / "t-0")
    with pytest.raises(LogDirectoryError, match=r"t-0 is in .*: move one of the two copies away"):
        disks.revive(1)


# ---- fsync -------------------------------------------------------------------------------------------------


def test_with_fsync_everything_acknowledged_is_below_the_recovery_points():
    with InProcessCluster(brokers=3, settings={"log.flush.acks": "fsync"}) as cluster:
        cluster.create_topic("t", configs={"min.insync.replicas": "3"})
        for number in range(50):
            cluster.produce("t", [str(number)])
            logs = [broker.body.replicas.get(T0).log for broker in cluster.brokers.values()]
            assert all(log.recovery_point >= number + 1 for log in logs)
        leader = cluster.wait_for_leader("t")
        cluster.kill(leader)
        cluster.wait_for_leader("t", other_than=leader)
        cluster.revive(leader)
        cluster.wait_for_isr("t", 3)
        cluster.produce("t", ["after"])
        assert len(cluster.consume("t", at_least=51)) == 51
