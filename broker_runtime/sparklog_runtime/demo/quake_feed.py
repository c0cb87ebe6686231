"""A steady stream of single earthquakes into every partition, which measures how long each had to wait.

Each partition has a writer of its own with acks=all, so that a partition without a leader does not hold up
the others. What was acknowledged is remembered, to be compared with what is read back.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from sparklog.client.cluster import ClusterClient
from sparklog.client.producer import BatchProducer
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog_runtime.demo.data_sets import Quake

PAUSE_S: Final = 0.02
"""Between two quakes of one partition: about forty a second."""


@dataclass(slots=True)
class Writer:
    """What one partition's writer sent, and its longest time between two acknowledgements."""

    topic_partition: TopicPartition
    acknowledged: list[tuple[str, bytes]] = field(default_factory=list)
    longest_gap_ms: float = 0.0
    last_ack_s: float = 0.0
    failure: str | None = None

    def on_acknowledged(self, key: str, value: bytes, now_s: float) -> None:
        if self.last_ack_s:
            self.longest_gap_ms = max(self.longest_gap_ms, (now_s - self.last_ack_s) * 1_000)
        self.last_ack_s = now_s
        self.acknowledged.append((key, value))


class QuakeFeed:
    """Writers for all partitions of one topic, from ``start`` to ``stop``."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, quakes: list[Quake]) -> None:
        self._cluster = ClusterClient(bootstrap_servers, client_id="sparklog-demo-feed")
        self._quakes = quakes
        self._stopping = threading.Event()
        self.writers = [Writer(TopicPartition(topic, index)) for index in range(partitions)]
        self._threads = [
            threading.Thread(target=self._run, args=(writer,), name=f"feed-{index}", daemon=True)
            for index, writer in enumerate(self.writers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every writer finish the quake it has in hand."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._cluster.close()

    def acknowledged(self) -> list[tuple[str, bytes]]:
        return [record for writer in self.writers for record in writer.acknowledged]

    def forget_gaps(self) -> None:
        """Measure again from now on."""
        for writer in self.writers:
            writer.longest_gap_ms = 0.0

    def failures(self) -> list[str]:
        return [writer.failure for writer in self.writers if writer.failure is not None]

    def _run(self, writer: Writer) -> None:
        try:
            with BatchProducer(self._cluster) as producer:
                self._write(writer, producer)
        except (SparklogError, OSError) as error:
            writer.failure = f"{writer.topic_partition}: {error}"

    def _write(self, writer: Writer, producer: BatchProducer) -> None:
        partition, count = writer.topic_partition.partition, 0
        while not self._stopping.wait(PAUSE_S):
            quake = self._quakes[(partition + count * len(self.writers)) % len(self._quakes)]
            count += 1
            key = f"{quake.id}/again-{partition}-{count}"
            record = Record(key=key.encode(), value=quake.json)
            producer.send(
                writer.topic_partition, build_records_batch([record], now_ms=time.time_ns() // 1_000_000)
            )
            producer.flush()
            writer.on_acknowledged(key, quake.json, time.monotonic())
