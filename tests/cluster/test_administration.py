"""Partitions, settings, leaders and placement changed under load, on real brokers in this process."""

import threading
from contextlib import closing

import pytest

from sparklog.client.admin import Admin
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

WAIT_S = 60
T0 = TopicPartition("t", 0)


class Operator:
    """Somebody with an admin client, and patience."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.cluster = cluster
        self.client = ClusterClient(cluster.bootstrap_servers)
        self.admin, self.changes = Admin(self.client), ClusterChanges(self.client)

    def close(self) -> None:
        self.client.close()

    def partition(self, number=0, topic="t"):
        (described,) = self.admin.describe_topics([topic])
        return described.partitions[number]

    def wait_until(self, condition):
        until(condition, lambda: (self.partition(), self.changes.ongoing_moves()))

    def logs(self, broker):
        return {path.name for path in self.cluster.root.glob(f"broker-{broker}/*/t-*")}


@pytest.fixture
def cluster():
    with InProcessCluster(brokers=4) as cluster:
        yield cluster


@pytest.fixture
def operator(cluster):
    with closing(Operator(cluster)) as operator:
        yield operator


class Load:
    """A writer that never stops until it is told to, and what it was promised."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self._cluster, self._stop = cluster, threading.Event()
        self.written = 0
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._cluster.produce("t", [str(self.written)], partition=0)
            self.written += 1

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop.set()
        self._thread.join(WAIT_S)


@pytest.mark.scenario("S7")
def test_a_partition_moves_to_other_brokers_under_load_and_nothing_is_lost_or_doubled(cluster, operator):
    cluster.create_topic("t", replication_factor=2)
    before = operator.partition().replicas
    target = tuple(one for one in (1, 2, 3, 4) if one not in before)
    with Load(cluster) as load:
        operator.wait_until(lambda: load.written > 20)
        assert operator.changes.reassign({T0: target}) == {}
        operator.wait_until(lambda: not operator.changes.ongoing_moves())
        at_the_end = load.written
        operator.wait_until(lambda: load.written > at_the_end + 20)
    operator.wait_until(lambda: operator.partition().replicas == target)
    operator.wait_until(lambda: operator.partition().leader == target[0])
    values = [int(record.value) for record in cluster.consume("t", at_least=load.written)]
    assert values == list(range(load.written))
    operator.wait_until(lambda: all(not operator.logs(broker) for broker in before))
    assert all(operator.logs(broker) == {"t-0"} for broker in target)


@pytest.mark.scenario(
    "S7",
    "Partitions move while brokers bounce, and every replica must have every write: all are read (KIP-455).",
)
@pytest.mark.parametrize("end", ["kill", "shut_down"])
def test_a_move_whose_brokers_bounce_ends_with_everything_that_was_acknowledged(end):
    """Every replica must have every write. The new one goes at once, and is back after all others."""
    settings = {"min.insync.replicas": "3"}
    with (
        InProcessCluster(brokers=4, settings=settings) as cluster,
        closing(Operator(cluster)) as operator,
    ):
        cluster.create_topic("t", replication_factor=3)
        before = operator.partition().replicas
        (new,) = {1, 2, 3, 4} - set(before)
        target = (new, *before[:2])
        with Load(cluster) as load:
            operator.wait_until(lambda: load.written > 10)
            assert operator.changes.reassign({T0: target}) == {}
            getattr(cluster, end)(new)
            for bounced in before:
                getattr(cluster, end)(bounced)
                cluster.revive(bounced)
                written = load.written
                operator.wait_until(lambda written=written: load.written > written + 5)
            assert operator.changes.ongoing_moves()
            cluster.revive(new)
            operator.wait_until(lambda: not operator.changes.ongoing_moves())
        operator.wait_until(lambda: operator.partition().replicas == target)
        values = [int(record.value) for record in cluster.consume("t", at_least=load.written)]
        assert values == list(range(load.written))
        operator.client.close()


def test_a_broker_that_was_away_when_its_replica_moved_deletes_it_when_it_returns(cluster, operator):
    cluster.create_topic("t", replication_factor=2)
    leader, away = operator.partition().replicas
    (new,) = [one for one in (1, 2, 3, 4) if one not in (leader, away)][:1]
    cluster.kill(away)
    operator.changes.reassign({T0: (leader, new)})
    operator.wait_until(lambda: not operator.changes.ongoing_moves())
    assert operator.logs(away) == {"t-0"}
    cluster.revive(away)
    operator.wait_until(lambda: not operator.logs(away))
    operator.wait_until(lambda: set(operator.partition().isr) == {leader, new})


def test_a_move_can_be_cancelled_and_its_new_replica_goes_again(cluster, operator):
    cluster.create_topic("t", replication_factor=2)
    before = operator.partition().replicas
    new = next(one for one in (1, 2, 3, 4) if one not in before)
    cluster.kill(new)
    refused = operator.changes.reassign({T0: (*before, new)})
    assert "not alive" in str(refused[T0])
    cluster.revive(new)
    operator.changes.reassign({T0: (new, *before)})
    operator.changes.reassign({T0: before})
    operator.wait_until(lambda: not operator.changes.ongoing_moves())
    operator.wait_until(lambda: not operator.logs(new))
    operator.wait_until(lambda: operator.partition().replicas == before)
    assert str(operator.changes.reassign({T0: None})[T0]).startswith("NO_REASSIGNMENT_IN_PROGRESS")


def test_a_topic_gets_more_partitions_that_are_written_and_read_at_once(cluster, operator):
    cluster.create_topic("t", replication_factor=3)
    operator.changes.create_partitions("t", 3)
    cluster.produce("t", ["a"], partition=2)
    assert [record.partition for record in cluster.consume("t", at_least=1)] == [2]
    with pytest.raises(KafkaError, match="higher than the requested"):
        operator.changes.create_partitions("t", 1)


def test_leadership_goes_back_to_the_preferred_replica_on_demand(cluster, operator):
    cluster.create_topic("t", replication_factor=3)
    preferred = operator.partition().leader
    cluster.kill(preferred)
    operator.wait_until(lambda: operator.partition().leader not in (-1, preferred))
    cluster.revive(preferred)
    operator.wait_until(lambda: preferred in operator.partition().isr)
    elected, refused = operator.changes.elect_leaders()
    assert (elected, refused) == ([T0], {})
    operator.wait_until(lambda: operator.partition().leader == preferred)
    cluster.produce("t", ["a"])


def test_a_topic_s_settings_change_while_it_is_written(cluster, operator):
    cluster.create_topic("t", replication_factor=3)
    operator.changes.alter_topic_configs("t", {"max.message.bytes": "100", "retention.ms": "5000"})
    operator.wait_until(lambda: operator.admin.topic_configs(["t"])["t"].get("retention.ms") == "5000")
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        cluster.produce("t", ["x" * 1_000])
    operator.changes.alter_topic_configs("t", {"max.message.bytes": None})
    operator.wait_until(lambda: operator.admin.topic_configs(["t"])["t"] == {"retention.ms": "5000"})
    cluster.produce("t", ["x" * 1_000])
    with pytest.raises(KafkaError, match=r"did you mean retention\.ms"):
        operator.changes.alter_topic_configs("t", {"retenton.ms": "1"})


def test_a_raised_minimum_holds_for_the_next_write_which_goes_through_when_it_is_lowered(cluster, operator):
    cluster.create_topic("t", replication_factor=2)
    leader, follower = operator.partition().replicas
    cluster.kill(follower)
    operator.wait_until(lambda: operator.partition().isr == (leader,))
    cluster.produce("t", ["a"])
    epoch = operator.partition().leader_epoch
    operator.changes.alter_topic_configs("t", {"min.insync.replicas": "2"})
    operator.wait_until(lambda: operator.partition().leader_epoch > epoch)
    patient = threading.Thread(target=cluster.produce, args=("t", ["b"]))
    patient.start()
    refused = cluster.brokers[leader].body.replicas.get(T0)
    assert refused is not None
    patient.join(0.5)
    assert patient.is_alive()
    assert refused.log.log_end_offset == 1
    operator.changes.alter_topic_configs("t", {"min.insync.replicas": None})
    patient.join(WAIT_S)
    assert [record.value for record in cluster.consume("t", at_least=2)] == [b"a", b"b"]


def test_all_brokers_hear_of_a_setting_that_holds_for_all_of_them(cluster, operator):
    cluster.create_topic("t")
    operator.changes.alter_broker_configs(None, {"message.max.bytes": "100"})
    operator.wait_until(
        lambda: all(
            one.body.parts.settings.now.get_int("message.max.bytes") == 100
            for one in cluster.brokers.values()
        )
    )
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        cluster.produce("t", ["x" * 1_000])
    with pytest.raises(KafkaError, match=r"dynamically: num\.io\.threads"):
        operator.changes.alter_broker_configs(1, {"num.io.threads": "3"})
