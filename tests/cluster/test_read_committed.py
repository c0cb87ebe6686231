"""Read-committed consumers of real brokers: at leaders, in their rack, through failovers and restarts."""

import time

import confluent_kafka
import pytest

from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.reader import read_range
from sparklog.core.replication.read_replica import RACK_AWARE_SELECTOR
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.appended_transactions import WAIT_S, AppendedTransactions

pytestmark = pytest.mark.integration

PLACE = TopicPartition("t", 0)
RACKS = {1: "a", 2: "b", 3: "c"}


class Transactions(AppendedTransactions):
    """And what committed readers get of them."""

    def read(self, end: int, rack: str = "") -> list[bytes]:
        """What our own reader gets of everything below ``end``."""
        with ClusterClient(self.cluster.bootstrap_servers, client_rack=rack) as client:
            batches = read_range(
                client, PLACE, 0, end, timeout_ms=20_000, isolation_level=IsolationLevel.READ_COMMITTED
            )
            return [value for batch in batches for value in batch.column("value").to_pylist()]

    def consume(self, count: int, rack: str = "") -> list[bytes]:
        """What librdkafka gets, read committed, until it has ``count`` messages, and in a moment more."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "client.rack": rack,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        values: list[bytes] = []
        deadline = time.monotonic() + WAIT_S
        try:
            while len(values) < count and time.monotonic() < deadline:
                values += self._polled(consumer, 0.2)
            return values + self._polled(consumer, 0.5)
        finally:
            consumer.close()

    def _polled(self, consumer, wait_s: float) -> list[bytes]:
        messages = consumer.consume(100, timeout=wait_s)
        assert [message.error() for message in messages if message.error()] == []
        return [message.value() for message in messages]


@pytest.fixture
def transactions(tmp_path):
    settings = {"replica.selector.class": RACK_AWARE_SELECTOR, "replica.fetch.wait.max.ms": "100"}
    with InProcessCluster(tmp_path, racks=RACKS, settings=settings) as cluster:
        yield Transactions(cluster, "t")


def fill(transactions: Transactions) -> list[bytes]:
    """Committed, aborted and open transactions, interleaved; the values that committed readers see."""
    for number in range(20):
        transactions.write(1, b"committed-%d" % number)
        transactions.write(2, b"aborted-%d" % number)
        transactions.end(2, commits=False)
        transactions.end(1, commits=True)
    transactions.write(3, b"open")
    transactions.write(1, b"behind it")
    transactions.end(1, commits=True)
    return [b"committed-%d" % number for number in range(20)]


@pytest.mark.scenario(
    "S54",
    "Read-committed fetches that race with the high watermark give nothing above the last stable offset.",
)
def test_committed_readers_stop_and_go_on_at_leaders_in_racks_and_after_a_failover(transactions):
    committed = fill(transactions)
    stable = 20 * 4
    racks = ("", *RACKS.values())
    for broker in RACKS:
        transactions.until(lambda broker=broker: transactions.replica(broker).high_watermark == stable + 3)
        assert transactions.replica(broker).unstable_offsets == 3
    for rack in racks:
        assert transactions.read(stable, rack) == committed
        assert transactions.consume(20, rack) == committed
    with ClusterClient(transactions.cluster.bootstrap_servers) as client:
        latest = [offsets.latest(client, [PLACE], level)[PLACE] for level in IsolationLevel]
    assert latest == [stable + 3, stable]

    transactions.cluster.kill(transactions.leader)
    transactions.leader = transactions.cluster.wait_for_leader("t", other_than=transactions.leader)
    transactions.until(lambda: transactions.replica(transactions.leader).high_watermark == stable + 3)
    assert transactions.read(stable) == committed
    transactions.end(3, commits=True)
    assert transactions.consume(22) == [*committed, b"open", b"behind it"]
    assert transactions.read(stable + 4) == [*committed, b"open", b"behind it"]


def test_every_replica_has_the_same_index_of_aborted_transactions_also_after_a_crash(transactions):
    fill(transactions)
    transactions.end(3, commits=False)
    expected = transactions.replica(transactions.leader).log.aborted_transactions(0, 1 << 60)
    assert [one.producer_id for one in expected] == [2] * 20 + [3]
    follower = next(broker for broker in RACKS if broker != transactions.leader)
    end = transactions.replica(transactions.leader).log_end_offset
    for broker in RACKS:
        transactions.until(lambda broker=broker: transactions.replica(broker).log_end_offset == end)
        assert transactions.replica(broker).log.aborted_transactions(0, 1 << 60) == expected
    transactions.cluster.kill(follower)
    transactions.cluster.revive(follower)
    transactions.until(lambda: transactions.replica(follower) is not None)
    transactions.until(lambda: transactions.replica(follower).log_end_offset == end)
    assert transactions.replica(follower).log.aborted_transactions(0, 1 << 60) == expected
