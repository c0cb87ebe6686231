"""What a remote store costs: copying, produces beside it, catch-up from it, space, and the start of a broker.

The store is a folder, or the one of SPARKLOG_BENCH_STORE (a URL, with its keys in the environment). Both
sides of each ratio are measured in one run on one cluster, in turn where they can be: copying against the
store's own writes of as many bytes, the tier against the disks, a long history against none.
"""

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.clusters import BROKERS, Pair, Sparklog
from bench.kafka_clients import quiet
from bench.machine import answers, wait_until
from bench.report import PartResult, Row, percentile
from bench.scale import Scale, say
from sparklog.broker.remote_log.copying.heads import read_head
from sparklog.client.admin import Admin, NewTopic
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.producer import BatchProducer
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.model import ids
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind
from sparklog.remote.open_store import open_store
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

STORE: Final = "SPARKLOG_BENCH_STORE"
SEGMENTS: Final = 20
"""Of a large topic: few enough for the head of its manifest, so that it lists all of them."""

ROWS_OF_A_BATCH: Final = 4_000
VALUE_BYTES: Final = 100
PIECE_BYTES: Final = 1 << 20
PRODUCES_PER_SECOND: Final = 100
QUIET_S: Final = 5.0
LOOK_EACH: Final = 10
"""Produces between two looks at the manifest, which are requests, too."""

TIMEOUT_S: Final = 600.0
SESSION_MS: Final = 30_000
OFTEN: Final = {
    "remote.log.manager.task.interval.ms": "100",
    "log.retention.check.interval.ms": "500",
    # Below the size of a topic, so that no round of catch-up finds in memory what the last one has read.
    "remote.log.reader.cache.bytes": "16777216",
}


def remote(pair: Pair, scale: Scale) -> PartResult:
    """On a cluster of its own, whose brokers have the store."""
    pair.stop()
    folder = Path(tempfile.mkdtemp(prefix="bench-store-"))
    url = f"{os.environ.get(STORE) or f'file://{folder}'}/{uuid.uuid4().hex}"
    cluster = Sparklog({"remote.log.storage.url": url, **OFTEN})
    try:
        cluster.start()
        cluster.wait_ready()
        with (
            ClusterClient(cluster.bootstrap, client_id="bench-remote") as client,
            KazooZooKeeper(cluster.zookeeper, SESSION_MS) as zookeeper,
        ):
            zookeeper.start(SESSION_MS)
            measured = _Remote(cluster, client, zookeeper, url, scale)
            rows = [*measured.starts(), *measured.copies(), *measured.catch_up()]
    finally:
        cluster.stop()
        shutil.rmtree(folder)
    return PartResult(
        rows, [f"The store is `{url.partition(':')[0]}://`; one partition, one replica, no compression."]
    )


@dataclass(slots=True)
class _Remote:
    cluster: Sparklog
    client: ClusterClient
    zookeeper: KazooZooKeeper
    url: str
    scale: Scale

    # The start of a broker

    def starts(self) -> list[Row]:
        """With a topic of all brokers of which the store has nothing, and when it has many small segments."""
        self._create(
            "long", segment_bytes=1_000, replicas=3, is_copied=True, **{"local.retention.bytes": "1"}
        )
        self._fill("long", 1, rows=10)
        without = [self._restart() for _ in range(self.scale.rounds)]
        count = self.scale.remote_segments
        self._fill("long", count, rows=10)
        self._await_copy("long", count - 1)
        long = [self._restart() for _ in range(self.scale.rounds)]
        return [
            _ratio(
                f"a broker's start with {count:,} segments in the store against none", long, without, "s", 1.1
            )
        ]

    def _restart(self) -> float:
        """From SIGKILL to a broker that listens again and is known to the others."""
        before = self.cluster.broker_pids()[1]
        port = int(self.cluster.bootstrap.partition(",")[0].rpartition(":")[2])
        began = time.monotonic()
        self.cluster.kill(1)

        def is_back() -> bool:
            if self.cluster.broker_pids().get(1, before) == before or not answers(port):
                return False
            return len(self.client.metadata([], max_age_ms=0).brokers) == BROKERS

        wait_until(is_back, TIMEOUT_S, "broker 1 is back")
        seconds = time.monotonic() - began
        say(f"remote: broker 1 is back after {seconds:.2f} s")
        return seconds

    # Copying

    def copies(self) -> list[Row]:
        """The rate of copies beside that of the store, and of produces meanwhile."""
        self._create("beside", segment_bytes=1 << 30, replicas=3, is_copied=False)
        copying: list[float] = []
        alone: list[float] = []
        quiet_ms: list[float] = []
        beside_ms: list[float] = []
        space: list[float] = []
        for number in range(self.scale.rounds):
            topic = f"copied-{number}"
            self._create_large(topic)
            end = time.monotonic() + QUIET_S
            quiet_ms += self._produce_while(lambda end=end: time.monotonic() < end)
            began = time.monotonic()
            self._copy_from_now_on(topic)
            beside_ms += self._produce_while(lambda topic=topic: not self._is_copied(topic, SEGMENTS - 1))
            head = self._await_copy(topic, SEGMENTS - 1)
            seconds = time.monotonic() - began
            stored = sum(one.arrow_bytes + one.rest_bytes + one.state_bytes for one in head.tail)
            copying.append(stored / 1e6 / seconds)
            space.append(stored / sum(one.size_bytes for one in head.tail))
            alone.append(stored / 1e6 / self._put([one.arrow_bytes + one.rest_bytes for one in head.tail]))
            say(f"remote: copying {copying[-1]:.0f} MB/s, the store alone {alone[-1]:.0f} MB/s")
        p99 = [percentile(found, 0.99) for found in (beside_ms, quiet_ms)]
        return [
            _ratio(
                "copying against the store's own writes", copying, alone, "MB/s", 0.7, more_is_better=True
            ),
            _ratio(
                "p99 of produces with acks=all beside copying against without", [p99[0]], [p99[1]], "ms", 1.2
            ),
            Row("space of objects against their segments", "ratio", median(space), more_is_better=False),
        ]

    def _produce_while(self, goes_on: Callable[[], bool]) -> list[float]:
        """Milliseconds of produces, one at a time; at least a hundred."""
        producer = Producer(quiet(self.cluster.bootstrap, acks="all", **{"linger.ms": 0}))
        found: list[float] = []
        while len(found) < PRODUCES_PER_SECOND or len(found) % LOOK_EACH or goes_on():
            began = time.perf_counter()
            producer.produce("beside", b"v" * VALUE_BYTES)
            if producer.flush(TIMEOUT_S):
                raise RuntimeError("a produce beside copying was not acknowledged")
            seconds = time.perf_counter() - began
            found.append(seconds * 1e3)
            time.sleep(max(0.0, 1 / PRODUCES_PER_SECOND - seconds))
        return found

    def _put(self, sizes: list[int]) -> float:
        """Seconds in which the store takes objects of these sizes, by itself."""
        store, piece = open_store(self.url), os.urandom(PIECE_BYTES)

        def pieces(size: int) -> Iterator[bytes]:
            for start in range(0, size, PIECE_BYTES):
                yield piece[: size - start]

        names = [f"alone/{uuid.uuid4().hex}" for _ in sizes]
        began = time.monotonic()
        for name, size in zip(names, sizes, strict=True):
            store.put(name, pieces(size))
        seconds = time.monotonic() - began
        for name in names:
            store.delete(name)
        return seconds

    # Catch-up

    def catch_up(self) -> list[Row]:
        """A consumer from the first offset to the last, on disks and in a topic that only the store has."""
        for topic, more in (("near", {}), ("far", {"local.retention.bytes": "1"})):
            self._create_large(topic, **more)
            self._copy_from_now_on(topic)
            self._await_copy(topic, SEGMENTS - 1)
        wait_until(lambda: self._local_start("far") > 0, TIMEOUT_S, "far has left the disks")
        found: dict[str, list[float]] = {"far": [], "near": []}
        for _ in range(self.scale.rounds):
            for topic, rates in found.items():
                rates.append(self._read(topic))
                say(f"remote: catch-up of {topic} {rates[-1]:.0f} MB/s")
        far, near = found.values()
        return [
            _ratio("catch-up from the store against the disks", far, near, "MB/s", 0.5, more_is_better=True)
        ]

    def _local_start(self, topic: str) -> int:
        """Where the disk of its only replica begins."""
        logs = list(self.cluster.folder.glob(f"broker-*/0/{topic}-0/*.log"))
        return min((int(path.stem) for path in logs), default=0)

    def _read(self, topic: str) -> float:
        """Millions of bytes of values in a second."""
        consumer = Consumer(
            quiet(self.cluster.bootstrap, **{"group.id": uuid.uuid4().hex, "enable.auto.commit": False})
        )
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
        began, size, position = time.monotonic(), 0, 0
        consumer.assign([TopicPartition(topic, 0, 0)])
        while position < end:
            for message in consumer.consume(5_000, 10):
                if message.error() is not None:
                    raise RuntimeError(f"{topic}: {message.error()}")
                size += len(message.value())
                position = message.offset() + 1
        seconds = time.monotonic() - began
        consumer.close()
        return size / 1e6 / seconds

    # Topics

    def _create_large(self, topic: str, **more: str) -> None:
        """A topic with ``SEGMENTS`` segments, none of which is copied yet."""
        batch_bytes = ROWS_OF_A_BATCH * VALUE_BYTES
        segment_bytes = max(4 * batch_bytes, self.scale.remote_mb * 1_000_000 // SEGMENTS)
        self._create(topic, segment_bytes=segment_bytes, replicas=1, is_copied=False, **more)
        self._fill(topic, SEGMENTS * segment_bytes // batch_bytes, rows=ROWS_OF_A_BATCH)

    def _create(self, topic: str, *, segment_bytes: int, replicas: int, is_copied: bool, **more: str) -> None:
        configs = {
            "remote.storage.enable": "true",
            "remote.log.copy.disable": str(not is_copied).lower(),
            "segment.bytes": str(segment_bytes),
            "retention.ms": "-1",
            "min.insync.replicas": "1",
            **more,
        }
        Admin(self.client).create_topics(
            [NewTopic(name=topic, partitions=1, replication_factor=replicas, configs=configs)]
        )

    def _fill(self, topic: str, batches: int, *, rows: int) -> None:
        table = pa.table({"value": [os.urandom(VALUE_BYTES) for _ in range(rows)]})
        now_ms = time.time_ns() // 1_000_000
        with BatchProducer(self.client) as producer:
            for _ in range(batches):
                batch = payload(PayloadKind.ARROW).from_columns(table, now_ms=now_ms)
                producer.send(ids.TopicPartition(topic, 0), batch)

    def _copy_from_now_on(self, topic: str) -> None:
        ClusterChanges(self.client).alter_topic_configs(topic, {"remote.log.copy.disable": "false"})

    def _head(self, topic: str) -> Head | None:
        described = Admin(self.client).describe_topics([topic])[0]
        stored = read_head(self.zookeeper, RemotePartition(topic, described.topic_id, 0))
        return None if stored is None else stored.head

    def _is_copied(self, topic: str, segments: int) -> bool:
        head = self._head(topic)
        return (
            head is not None and sum(page.segment_count for page in head.pages) + len(head.tail) >= segments
        )

    def _await_copy(self, topic: str, segments: int) -> Head:
        wait_until(
            lambda: self._is_copied(topic, segments), TIMEOUT_S, f"{topic} is in the store", step_s=0.2
        )
        head = self._head(topic)
        assert head is not None
        return head


def _ratio(
    work: str, ours: list[float], other: list[float], unit: str, aim: float, *, more_is_better: bool = False
) -> Row:
    one, two = median(ours), median(other)
    aimed = f"aim at {'least' if more_is_better else 'most'} {aim:g}"
    note = f"{one:.3g} {unit} against {two:.3g} {unit}; {aimed}"
    return Row(work, "ratio", one / two, more_is_better=more_is_better, note=note)
