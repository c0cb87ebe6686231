"""Transactions in a partition of a cluster in this process, without a client that begins them."""

import time
from collections.abc import Callable

from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.partition.append_results import AwaitsReplicas
from sparklog.broker.partition.partition import Partition
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import split
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.restamp import set_producer
from sparklog.testing import InProcessCluster

WAIT_S = 30


class AppendedTransactions:
    """Batches and markers in partition 0 of a topic, appended to its leader as coordinators do."""

    def __init__(self, cluster: InProcessCluster, topic: str, schema: str | None = None) -> None:
        self.cluster = cluster
        self.place = TopicPartition(topic, 0)
        cluster.create_topic(topic, schema=schema)
        cluster.wait_for_isr(topic, 3)
        self.leader = cluster.wait_for_leader(topic)

    def replica(self, broker: int) -> Partition | None:
        return self.cluster.brokers[BrokerId(broker)].body.replicas.get(self.place)

    def write(self, producer_id: int, *values: bytes, sequence: int = -1) -> None:
        records = [Record(value=value) for value in values]
        self._append(
            build_records_batch(
                records,
                now_ms=1_000,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
            )
        )

    def write_batch(self, producer_id: int, batch: bytearray) -> None:
        """A batch of rows of a typed topic."""
        set_producer(batch, 0, producer_id, 0, -1, is_transactional=True)
        self._append(batch)

    def end(self, producer_id: int, *, commits: bool) -> None:
        end = TransactionEnd(commits, 0)
        self._append(build_marker(end, producer_id=producer_id, producer_epoch=0, now_ms=1_000))

    def _append(self, batch: bytes | bytearray) -> None:
        records = bytearray(batch)
        partition = self.replica(self.leader)
        assert partition is not None
        request = AppendRequest(records, split(records), ACKS_ALL, AppendOrigin.COORDINATOR)
        result = partition.leader_append.append(request, 2**40)
        assert isinstance(result, AwaitsReplicas)
        self.until(lambda: partition.high_watermark >= result.appended.end_offset)

    def until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < deadline, [
                (broker, self.replica(broker)) for broker in self.cluster.brokers
            ]
            time.sleep(0.02)
