"""Brokers whose disks hold the last segments only: clients read from offset 0 as if nothing had moved."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from sparklog.client.changes import ClusterChanges
from sparklog.model import ids
from sparklog.storage.log import Log
from sparklog.testing import InProcessCluster
from tests.appended_transactions import AppendedTransactions
from tests.tiers import copying_at_once, in_the_store_only
from tests.waiting import until

pytestmark = pytest.mark.integration

TP = ids.TopicPartition("t", 0)
DEADLINE_SECONDS = 60
TIERED = in_the_store_only(1_000)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def cluster(tmp_path: Path, store: Path) -> Iterator[InProcessCluster]:
    settings = copying_at_once(f"file://{store}")
    with InProcessCluster(tmp_path / "cluster", settings=settings) as running:
        yield running


def logs(cluster: InProcessCluster) -> list[Log]:
    found = [broker.body.replicas.get(TP) for broker in cluster.brokers.values()]
    return [partition.log for partition in found if partition is not None]


def fill(cluster: InProcessCluster, count: int = 40, text: str = "x") -> list[str]:
    values = [f"{number} {text * 300}" for number in range(count)]
    for value in values:
        cluster.produce("t", [value])
    return values


def wait_until_moved(cluster: InProcessCluster, offset: int) -> None:
    """Until no disk has anything before ``offset``, which is still in the log."""
    until(lambda: all(log.local_start_offset >= offset for log in logs(cluster)))
    assert all(log.log_start_offset == 0 for log in logs(cluster))


def read_all(cluster: InProcessCluster, end: int, **settings: str) -> list[str]:
    """By librdkafka, from offset 0 up to ``end``."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": False,
            **settings,
        }
    )
    values: list[str] = []
    position = 0
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        while position < end:
            message = consumer.poll(DEADLINE_SECONDS)
            assert message is not None, f"nothing at offset {position}"
            assert message.error() is None, message.error()
            position = message.offset() + 1
            values.append(message.value().decode())
    finally:
        consumer.close()
    return values


def test_every_client_reads_from_offset_0_what_only_the_store_has(cluster: InProcessCluster) -> None:
    cluster.create_topic("t", configs=TIERED)
    values = fill(cluster)
    wait_until_moved(cluster, 30)
    assert read_all(cluster, len(values)) == values
    assert [record.value.decode() for record in cluster.consume("t", at_least=len(values))] == values
    assert sum(broker.body.copies.reader.counts.requests for broker in cluster.brokers.values()) > 0
    assert sum(broker.body.copies.reader.counts.errors for broker in cluster.brokers.values()) == 0


def test_a_replica_that_begins_anew_has_the_history_and_may_lead(cluster: InProcessCluster) -> None:
    cluster.create_topic("t", configs=TIERED)
    values = fill(cluster, 20)
    leader = cluster.wait_for_leader("t")
    other = next(number for number in cluster.brokers if number != leader)
    cluster.kill(other)
    cluster.wait_for_isr("t", 2)
    values += fill(cluster, 20, "y")
    living = [broker for number, broker in cluster.brokers.items() if number != other]
    alive = [broker.body.replicas.get(TP).log for broker in living]
    until(lambda: all(log.local_start_offset >= 30 for log in alive))
    cluster.revive(other)
    cluster.wait_for_isr("t", 3)
    wait_until_moved(cluster, 30)
    histories = [[tuple(entry) for entry in log.epochs.entries] for log in logs(cluster)]
    assert histories[0] == histories[1] == histories[2]
    for number in [one for one in cluster.brokers if one != other]:
        cluster.shut_down(number)
    assert cluster.wait_for_leader("t", other_than=leader) == other
    assert read_all(cluster, len(values)) == values


def test_read_committed_readers_leave_out_what_was_aborted(cluster: InProcessCluster) -> None:
    transactions = AppendedTransactions(cluster, "t")
    ClusterChanges(cluster.client).alter_topic_configs("t", TIERED)
    for number in range(6):
        transactions.write(number, b"%d" % number + b"a" * 600)
        transactions.end(number, commits=number % 2 == 0)
    cluster.produce("t", ["last " + "z" * 900] * 3)
    wait_until_moved(cluster, 12)
    end = max(log.log_end_offset for log in logs(cluster))
    committed = read_all(cluster, end, **{"isolation.level": "read_committed"})
    assert [value[0] for value in committed] == ["0", "2", "4", "l", "l", "l"]


@pytest.mark.proof
def test_a_record_is_found_by_its_time_in_the_store(cluster: InProcessCluster) -> None:
    cluster.create_topic("t", configs=TIERED)
    fill(cluster)
    wait_until_moved(cluster, 30)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"})
    try:
        consumer.assign([TopicPartition("t", 0, 7)])
        message = consumer.poll(DEADLINE_SECONDS)
        assert message is not None
        asked = TopicPartition("t", 0, message.timestamp()[1])
        (found,) = consumer.offsets_for_times([asked], DEADLINE_SECONDS)
        assert 0 <= found.offset <= 7
    finally:
        consumer.close()


@pytest.mark.proof
def test_records_are_deleted_across_the_border(cluster: InProcessCluster) -> None:
    cluster.create_topic("t", configs=TIERED)
    values = fill(cluster)
    wait_until_moved(cluster, 30)
    ClusterChanges(cluster.client).delete_records({TP: 12})
    until(lambda: all(log.log_start_offset == 12 for log in logs(cluster)))
    assert [record.value.decode() for record in cluster.consume("t", at_least=28)] == values[12:]
    end = min(log.local_start_offset for log in logs(cluster)) + 2
    ClusterChanges(cluster.client).delete_records({TP: end})
    until(lambda: all(log.log_start_offset == end for log in logs(cluster)))
    assert [record.value.decode() for record in cluster.consume("t", at_least=40 - end)] == values[end:]


@pytest.mark.proof
def test_retention_takes_the_oldest_of_a_history_out_of_the_log(cluster: InProcessCluster) -> None:
    cluster.create_topic("t", configs=TIERED)
    values = fill(cluster)
    wait_until_moved(cluster, 30)
    ClusterChanges(cluster.client).alter_topic_configs("t", {"retention.bytes": "6000"})
    until(lambda: all(0 < log.log_start_offset < 30 for log in logs(cluster)))
    start = logs(cluster)[0].log_start_offset
    read = [record.value.decode() for record in cluster.consume("t", at_least=5)]
    assert read == values[-len(read) :]
    assert len(read) <= 40 - start


def test_a_damaged_object_costs_its_own_range_alone(cluster: InProcessCluster, store: Path) -> None:
    cluster.create_topic("t", configs=TIERED)
    values = fill(cluster)
    wait_until_moved(cluster, 30)
    (rotten,) = store.rglob(f"*-{0:020d}-*.rest")
    rotten.unlink()
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"})
    first = logs(cluster)[0]
    try:
        consumer.assign([TopicPartition("t", 0, 10)])
        message = consumer.poll(DEADLINE_SECONDS)
        assert message is not None
        assert message.value().decode() == values[10]
        consumer.assign([TopicPartition("t", 0, 0)])
        assert consumer.poll(3) is None
    finally:
        consumer.close()
    assert sum(broker.body.copies.reader.counts.errors for broker in cluster.brokers.values()) > 0
    assert first.log_start_offset == 0
