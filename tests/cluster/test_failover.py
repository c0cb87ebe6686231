"""Three brokers, and one or all of them ending without farewell while writes go on."""

import threading
import time

import pytest

from sparklog.client.producer import BatchProducer
from sparklog.client.reader import read_range
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka_encode import Record, build_records_batch
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration


@pytest.fixture
def own_cluster(tmp_path):
    with InProcessCluster(tmp_path, zookeeper="real", settings={"min.insync.replicas": "2"}) as cluster:
        yield cluster


class Writer(threading.Thread):
    """Writes numbered records one by one with acks=all until it is told to stop."""

    def __init__(self, cluster: InProcessCluster, tp: TopicPartition) -> None:
        super().__init__(name=f"writer-{tp}")
        self.cluster, self.tp = cluster, tp
        self.acknowledged: list[bytes] = []
        self.failure: BaseException | None = None
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            with BatchProducer(self.cluster.client) as producer:
                while not self.stopping.is_set():
                    value = b"%d" % len(self.acknowledged)
                    producer.send(self.tp, build_records_batch([Record(value=value)], now_ms=1_000))
                    producer.flush()
                    self.acknowledged.append(value)
        except BaseException as error:  # noqa: BLE001 (told by ``finish``)
            self.failure = error

    def wait_for(self, more: int) -> None:
        goal, deadline = len(self.acknowledged) + more, time.monotonic() + 30
        while len(self.acknowledged) < goal and self.failure is None:
            assert time.monotonic() < deadline, "no acknowledgements for 30 s"
            time.sleep(0.005)

    def finish(self) -> list[bytes]:
        self.stopping.set()
        self.join(30)
        if self.failure is not None:
            raise self.failure
        return self.acknowledged


def stored(cluster: InProcessCluster, tp: TopicPartition) -> list[bytes]:
    end = cluster.admin.latest([tp])[tp]
    batches = read_range(cluster.client, tp, 0, end)
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_killing_leaders_one_after_the_other_loses_nothing_and_doubles_nothing(own_cluster) -> None:
    """[1, 2, 4]"""
    own_cluster.create_topic("t")
    tp = TopicPartition("t", 0)
    writer = Writer(own_cluster, tp)
    writer.start()
    for _ in range(4):
        writer.wait_for(20)
        victim = own_cluster.partitions("t")[0].leader
        own_cluster.kill(victim)
        writer.wait_for(20)
        own_cluster.revive(victim)
        own_cluster.wait_for_isr("t", 3)
    acknowledged = writer.finish()
    assert stored(own_cluster, tp) == acknowledged


def test_killing_a_follower_stops_nobody(own_cluster) -> None:
    """[5]"""
    own_cluster.create_topic("t")
    writer = Writer(own_cluster, TopicPartition("t", 0))
    writer.start()
    writer.wait_for(10)
    partition = own_cluster.partitions("t")[0]
    follower = next(replica for replica in partition.replicas if replica != partition.leader)
    own_cluster.kill(follower)
    writer.wait_for(50)
    writer.finish()
    assert follower not in own_cluster.partitions("t")[0].isr


def test_a_partition_whose_whole_isr_died_waits_for_it_and_comes_back_with_everything(own_cluster) -> None:
    """[60]"""
    own_cluster.create_topic("t")
    tp = TopicPartition("t", 0)
    writer = Writer(own_cluster, tp)
    writer.start()
    writer.wait_for(30)
    writer.finish()
    for broker_id in (1, 2, 3):
        own_cluster.kill(broker_id)
    for broker_id in (1, 2, 3):
        own_cluster.revive(broker_id)
    own_cluster.wait_for_isr("t", 3)
    assert stored(own_cluster, tp) == writer.acknowledged


def test_with_one_replica_left_acks_all_is_refused_and_goes_on_when_another_is_back(own_cluster) -> None:
    """[64]"""
    own_cluster.create_topic("t")
    tp = TopicPartition("t", 0)
    writer = Writer(own_cluster, tp)
    writer.start()
    writer.wait_for(10)
    own_cluster.kill(2)
    own_cluster.kill(3)
    own_cluster.wait_for_isr("t", 1)
    own_cluster.revive(2)
    writer.wait_for(10)
    acknowledged = writer.finish()
    assert stored(own_cluster, tp) == acknowledged


def test_a_broker_with_an_empty_disk_joins_only_after_it_has_caught_up(own_cluster, tmp_path) -> None:
    """[bug 23]"""
    own_cluster.create_topic("t")
    tp = TopicPartition("t", 0)
    writer = Writer(own_cluster, tp)
    writer.start()
    writer.wait_for(30)
    writer.finish()
    victim = own_cluster.partitions("t")[0].leader
    own_cluster.kill(victim)
    (tmp_path / f"broker-{victim}").rename(tmp_path / "lost")
    own_cluster.revive(victim)
    own_cluster.wait_for_isr("t", 3)
    for other in {1, 2, 3} - {victim}:
        own_cluster.kill(other)
    own_cluster.wait_for_isr("t", 1)
    assert own_cluster.brokers[victim]._replicas.get(tp).log_end_offset == len(writer.acknowledged)


def test_a_deleted_topic_can_be_created_again_and_is_empty(own_cluster) -> None:
    own_cluster.create_topic("t", partitions=2)
    tp = TopicPartition("t", 0)
    with BatchProducer(own_cluster.client) as producer:
        producer.send(tp, build_records_batch([Record(value=b"a")], now_ms=1_000))
    before = own_cluster.admin.describe_topics(["t"])[0].topic_id
    own_cluster.admin.delete_topics(["t"])
    own_cluster.create_topic("t", partitions=1)
    after = own_cluster.admin.describe_topics(["t"])[0]
    assert after.topic_id != before
    assert [part.high_watermark for part in after.partitions] == [0]


def test_a_replica_whose_disk_rotted_is_not_elected_and_mends_its_log_from_the_others(
    own_cluster, tmp_path
) -> None:
    own_cluster.create_topic("t")
    tp = TopicPartition("t", 0)
    writer = Writer(own_cluster, tp)
    writer.start()
    writer.wait_for(30)
    acknowledged = writer.finish()
    victim = own_cluster.partitions("t")[0].leader
    own_cluster.kill(victim)
    (log,) = (tmp_path / f"broker-{victim}" / "0" / "t-0").glob("*.log")
    rotten = bytearray(log.read_bytes())
    rotten[len(rotten) // 2] ^= 0xFF
    log.write_bytes(rotten)
    own_cluster.revive(victim)
    own_cluster.wait_for_isr("t", 3)
    for other in {1, 2, 3} - {victim}:
        own_cluster.kill(other)
    own_cluster.wait_for_isr("t", 1)
    assert stored(own_cluster, tp) == acknowledged
