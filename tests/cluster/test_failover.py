"""Three brokers, and one or all of them ending without farewell while writes go on."""

import threading
import time
from contextlib import ExitStack

import pytest

from sparklog.client.consumer import Consumer
from sparklog.client.producer import BatchProducer
from sparklog.client.reader import read_range
from sparklog.controller.controller_server import ControllerServer
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import read_parts
from sparklog.network.clock import SystemClock
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from sparklog.testing.cluster import SESSION_TIMEOUT_MS

pytestmark = pytest.mark.integration


SETTINGS = {"min.insync.replicas": "2"}


@pytest.fixture
def real_cluster(tmp_path):
    with InProcessCluster(tmp_path, zookeeper="real", settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def own_cluster(tmp_path):
    with InProcessCluster(tmp_path, settings=SETTINGS) as cluster:
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


@pytest.mark.scenario(
    "S1", "A leader stops, cleanly or by a kill, during acks=all writes: nothing acknowledged is lost."
)
@pytest.mark.scenario("S2", "Leaders stop five times in a row: nothing acknowledged is lost.")
@pytest.mark.scenario(
    "S4", "Leaders stop while an idempotent producer writes (KIP-98): every record is there once."
)
@pytest.mark.parametrize("end", ["kill", "shut_down"])
def test_bouncing_leaders_one_after_the_other_loses_nothing_and_doubles_nothing(real_cluster, end) -> None:
    real_cluster.create_topic("t")
    tp = TopicPartition("t", 0)
    writer = Writer(real_cluster, tp)
    writer.start()
    for _ in range(5):
        writer.wait_for(20)
        victim = real_cluster.partitions("t")[0].leader
        getattr(real_cluster, end)(victim)
        writer.wait_for(20)
        real_cluster.revive(victim)
        real_cluster.wait_for_isr("t", 3)
    acknowledged = writer.finish()
    assert stored(real_cluster, tp) == acknowledged


def second_controller(cluster: InProcessCluster, after: ExitStack) -> ControllerServer:
    """A candidate that waits for the office."""
    session = cluster._new_zookeeper("", SESSION_TIMEOUT_MS)
    session.start(SESSION_TIMEOUT_MS)
    after.callback(session.close)
    controller = ControllerServer(
        zookeeper=session, host="127.0.0.1", port=0, cluster_config=cluster.config, clock=SystemClock(),
        pid=0, application="second",
    )  # fmt: skip
    after.callback(controller.stop)
    controller.start()
    return controller


@pytest.mark.scenario(
    "S3", "Controller and leader end together: another controller takes over and nothing is lost."
)
@pytest.mark.parametrize("is_clean", [True, False])
def test_controllers_that_end_together_with_a_leader_cost_nothing(is_clean) -> None:
    """Clean: it lays its office down. Else its session expires, and it runs against its successor."""
    tp = TopicPartition("t", 0)
    with ExitStack() as after, InProcessCluster(settings={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic("t")
        writer = Writer(cluster, tp)
        writer.start()
        for _ in range(3):
            writer.wait_for(10)
            victim = cluster.wait_for_leader("t")
            former, cluster.controller = cluster.controller, second_controller(cluster, after)
            former.stop() if is_clean else former._zookeeper.expire_session()
            cluster.kill(victim)
            writer.wait_for(10)
            cluster.revive(victim)
            cluster.wait_for_isr("t", 3)
        acknowledged = writer.finish()
        assert stored(cluster, tp) == acknowledged


@pytest.mark.scenario(
    "S6", "The disk fails under a leader or a follower (KIP-112): others lead, nothing acknowledged is lost."
)
@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_disk_that_fails_under_a_replica_costs_nothing(role) -> None:
    tp = TopicPartition("t", 0)
    with InProcessCluster(settings={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic("t")
        writer = Writer(cluster, tp)
        writer.start()
        writer.wait_for(10)
        leader = cluster.wait_for_leader("t")
        victim = leader if role == "leader" else leader % 3 + 1

        def broken(*_args):
            raise OSError(5, "Input/output error")

        cluster.brokers[victim].body.replicas.get(tp).log.append = broken
        assert cluster.brokers[victim].wait_stopped(20)
        writer.wait_for(10)
        assert victim not in cluster.partitions("t")[0].isr
        cluster.revive(victim)
        cluster.wait_for_isr("t", 3)
        acknowledged = writer.finish()
        assert stored(cluster, tp) == acknowledged


@pytest.mark.scenario(
    "S10", "After an unclean election consumers without a valid position get an error and continue."
)
def test_after_an_unclean_election_consumers_go_on_and_the_logs_are_equal() -> None:
    """The consumer's position lies beyond the new leader's end."""
    tp = TopicPartition("t", 0)
    with InProcessCluster(brokers=2) as cluster:
        cluster.create_topic("t", configs={"unclean.leader.election.enable": "true"})
        cluster.produce("t", ["both"])
        leader = cluster.wait_for_leader("t")
        other = 3 - leader
        cluster.kill(other)
        cluster.produce("t", [f"lost {number}" for number in range(20)])
        gone = []

        def go_on(error):
            gone.append(error)
            return error.log_start_offset

        with Consumer(cluster.client, {tp: 21}, on_out_of_range=go_on) as consumer:
            assert consumer.poll(0) == []
            cluster.kill(leader)
            cluster.revive(other)
            assert cluster.wait_for_leader("t", other_than=leader) == other
            cluster.produce("t", ["kept"])
            values = []
            while len(values) < 2:
                for _, rows in consumer.poll(10_000):
                    values += rows.column("value").to_pylist()
        assert (values, len(gone)) == ([b"both", b"kept"], 1)
        cluster.revive(leader)
        cluster.wait_for_isr("t", 2)
        assert whole_log(cluster, leader, tp) == whole_log(cluster, other, tp)


def whole_log(cluster: InProcessCluster, broker_id: int, tp: TopicPartition) -> bytes:
    log = cluster.brokers[broker_id].body.replicas.get(tp).log
    found = log.read(0, 1 << 20, log.log_end_offset, at_least_one_batch=True)
    return bytes(read_parts(found.parts))


@pytest.mark.scenario("S5")
def test_killing_a_follower_stops_nobody(own_cluster) -> None:
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


@pytest.mark.scenario("S60")
def test_a_partition_whose_whole_isr_died_waits_for_it_and_comes_back_with_everything(own_cluster) -> None:
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


@pytest.mark.scenario("S64")
def test_with_one_replica_left_acks_all_is_refused_and_goes_on_when_another_is_back(own_cluster) -> None:
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


@pytest.mark.kafka_bug("K23")
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
    assert own_cluster.brokers[victim].body.replicas.get(tp).log_end_offset == len(writer.acknowledged)


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
