"""One broker's disk alone: recovery, appending and reading, compaction.

What the pure work costs is put beside what it cannot be cheaper than: reading the file, writing the page
cache, the CRC of every byte. Both are measured by turns in the same process; the median counts.
"""

import contextlib
import json
import os
import random
import re
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import crc32c
from compaction import LAYOUTS, batches, compact, filled, read_plainly
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from recovery import drop_cache, fill, open_directory, read, recover

from bench.clusters import Kafka, Pair, Sparklog
from bench.control import Child
from bench.kafka_clients import quiet
from bench.machine import free_ports, wait_until
from bench.report import PartResult, Row
from bench.scale import FULL, Scale, say
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import read_parts
from sparklog.network.clock import SystemClock
from sparklog.network.executor import ThreadExecutor
from sparklog.records.envelope import Compression, build_envelope, crc_matches, split, stamp
from sparklog.records.payload_kinds import PayloadKind
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.zookeeper.embedded import EmbeddedZooKeeper

ROUNDS: Final = 3
THREADS: Final = 2
LOGS: Final = 8
BATCH_BYTES: Final = 65_536
READ_BYTES: Final = 1 << 20
TIMEOUT_S: Final = 120.0


def _seconds(work: Callable[[], object]) -> float:
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


# ---------------------------------------------------------------------------------------------- recovery


def recovery(pair: Pair, scale: Scale) -> PartResult:
    """A directory after an unclean stop, and brokers after SIGKILL."""
    pair.stop()
    made = []
    for size in scale.recovered_bytes:
        made += _directory(size)
        ours = _killed(_OneBroker(), size)
        kafka = _killed(_OneKafka(), size) if pair.with_kafka else None
        made.append(
            Row(
                f"a lone broker after SIGKILL with {_in_words(size)} past its recovery point",
                "s",
                ours,
                kafka,
                more_is_better=False,
                note="launch to the next acknowledgement; Kafka is launched when its last session has ended",
            )
        )
    return PartResult(made, [f"{LOGS} logs, batches of {BATCH_BYTES // 1024} KB, {THREADS} threads."])


def _in_words(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:g} GB"


def _directory(size_bytes: int) -> list[Row]:
    root = tempfile.mkdtemp(prefix="bench-recovery-")
    try:
        fill(root, LOGS, size_bytes // LOGS, BATCH_BYTES)
        paths = sorted(Path(root).glob("*/*.log"))
        size = sum(path.stat().st_size for path in paths)
        rows = []
        with ThreadExecutor("recovery", threads=THREADS) as executor:
            for cache in ("cached", "cold"):
                reads, recoveries = [], []
                for _ in range(ROUNDS):
                    for seconds, work in (
                        (reads, lambda: read(paths, THREADS)),
                        (recoveries, lambda: recover(root, executor)),
                    ):
                        if cache == "cold":
                            drop_cache(paths)
                        seconds.append(_seconds(work))
                reading, recovering = (size / 1e6 / statistics.median(one) for one in (reads, recoveries))
                note = f"aim 0.7 of reading; reading {reading:,.0f} MB/s, so {recovering / reading:.2f} of it"
                say(f"recovery of {_in_words(size_bytes)}, {cache}: {recovering:,.0f} MB/s; {note}")
                rows.append(
                    Row(
                        f"recovery of a log directory of {_in_words(size_bytes)}, {cache}",
                        "MB/s",
                        recovering,
                        note=note,
                    )
                )
            _checkpoint(root)
            seconds = _seconds(lambda: recover(root, executor))
        title = f"recovery of {_in_words(size_bytes)} with a checkpoint just written"
        rows.append(Row(title, "s", seconds, more_is_better=False))
        return rows
    finally:
        shutil.rmtree(root)


def _checkpoint(root: str) -> None:
    """Bring all to disk and say so, without a clean stop."""
    directory = open_directory(root)
    for log in directory.load_logs(lambda _topic: LogConfig()).values():
        log.flush()
    directory.checkpoint_recovery_points()
    directory.close()


class _OneBroker:
    """One broker of ours with its controller and ZooKeeper, in processes of their own."""

    name = Sparklog.name

    def __init__(self) -> None:
        self._closing = ExitStack()
        self._root = Path(self._closing.enter_context(tempfile.TemporaryDirectory(prefix="bench-recovery-")))
        self._zookeeper = self._closing.enter_context(EmbeddedZooKeeper(self._root / "zookeeper"))
        self._child("control_candidate.py")
        self._port = free_ports(1)
        self.bootstrap = f"127.0.0.1:{self._port}"
        self._broker = self._start()

    def _child(self, script: str, *arguments: str) -> Child:
        child = Child(script, self._zookeeper.connect_string, *arguments)
        self._closing.callback(child.end)
        return child

    def _start(self) -> Child:
        settings = json.dumps({"zookeeper.session.timeout.ms": "6000"})
        return self._child("control_broker.py", "1", str(self._root / "broker"), str(self._port), settings)

    def kill(self) -> None:
        self._broker.kill()

    def revive(self) -> None:
        self._broker = self._start()

    def stop(self) -> None:
        self._closing.close()


class _OneKafka:
    name = Kafka.name

    def __init__(self) -> None:
        settings = {"zookeeper.session.timeout.ms": "6000", "min.insync.replicas": "1"}
        self._cluster = Kafka(settings, brokers=1)
        self._cluster.start()
        self._cluster.wait_ready()
        self.bootstrap = self._cluster.bootstrap

    def kill(self) -> None:
        self._cluster.kill(1)
        self._cluster.wait_forgotten(1)

    def revive(self) -> None:
        self._cluster.revive(1)

    def stop(self) -> None:
        self._cluster.stop()


def _killed(system: _OneBroker | _OneKafka, size_bytes: int) -> float:
    try:
        admin = AdminClient(quiet(system.bootstrap))
        topic = NewTopic("recovered", LOGS, 1)
        wait_until(lambda: _creates(admin, topic), TIMEOUT_S, "the topic is made")
        value = os.urandom(50_000)
        batching = {"batch.size": 1_000_000, "linger.ms": 5}
        producer = Producer(quiet(system.bootstrap, acks="all", **batching))
        for number in range(size_bytes // len(value)):
            while True:
                with contextlib.suppress(BufferError):
                    producer.produce("recovered", value, partition=number % LOGS)
                    break
                producer.poll(0.1)
        producer.flush(TIMEOUT_S)
        system.kill()
        began = time.monotonic()
        system.revive()
        acknowledged: list[object] = []
        producer.produce(
            "recovered", b"last", partition=0, on_delivery=lambda error, _: acknowledged.append(error)
        )
        producer.flush(TIMEOUT_S)
        if acknowledged != [None]:
            raise RuntimeError(f"{system.name} does not take records again: {acknowledged}")
        seconds = time.monotonic() - began
        say(f"recovery {system.name}, a broker killed: {seconds:.2f} s")
        return seconds
    finally:
        system.stop()


def _creates(admin: AdminClient, topic: NewTopic) -> bool:
    future = admin.create_topics([topic], request_timeout=10)[topic.topic]
    error = future.exception(15)
    return error is None or "TOPIC_ALREADY_EXISTS" in str(error)


# ---------------------------------------------------------------------------------------- append and read


def storage(pair: Pair, scale: Scale) -> PartResult:
    """Appending as a leader does (CRC, stamp, write) and reading whole, by one thread, without network."""
    rows = []
    for name, size in (("1 KB", 1_024), ("1 MB", 1 << 20)):
        count = scale.appended_bytes // size // (1 if size > 100_000 else 5)
        rows += _appended_and_read(name, size, count)
    return PartResult(rows, ["Wall time of one thread, everything in the page cache."])


def _appended_and_read(name: str, size: int, count: int) -> list[Row]:
    batch = bytearray(
        build_envelope(
            os.urandom(size - 61),
            attributes=0,
            record_count=1,
            last_offset_delta=0,
            base_timestamp_ms=1,
            max_timestamp_ms=1,
        )
    )
    found: dict[str, list[float]] = {"append": [], "read": [], "write": [], "crc": []}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="bench-append-") as root:
            log = Log.open(
                f"{root}/append-0", TopicPartition("append", 0), uuid.uuid4(), LogConfig(), LocalDisk(),
                SystemClock(), recovery_point=0, clean=False,
            )  # fmt: skip
            found["append"].append(_seconds(lambda log=log: _append(log, batch, count)))
            found["read"].append(_seconds(lambda log=log: _read(log)))
            found["write"].append(_seconds(lambda root=root: _write(f"{root}/plain", batch, count)))
        found["crc"].append(_seconds(lambda: _crc(batch, count)))
    rate = {what: count / statistics.median(seconds) for what, seconds in found.items()}
    megabyte = size / 1e6
    beside = f"plain write {rate['write'] * megabyte:,.0f} MB/s, CRC {rate['crc'] * megabyte:,.0f} MB/s"
    rows = [
        Row(
            f"{what} of batches of {name}",
            "MB/s",
            rate[what] * megabyte,
            note=f"{rate[what]:,.0f} batches/s; {beside}",
        )
        for what in ("append", "read")
    ]
    for row in rows:
        say(f"storage, {row.work}: {row.ours:,.0f} MB/s, {row.note}")
    return rows


def _append(log: Log, batch: bytearray, count: int) -> None:
    for _ in range(count):
        headers = split(batch)
        assert crc_matches(batch, *headers[0])
        stamp(batch, 0, log.log_end_offset, 0)
        log.append(batch, split(batch))


def _read(log: Log) -> None:
    offset = 0
    while offset < log.log_end_offset:
        found = log.read(offset, READ_BYTES, log.log_end_offset, at_least_one_batch=True)
        assert found is not None
        read_parts(found.parts)
        offset = found.next_offset


def _write(path: str, data: bytearray, count: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    for _ in range(count):
        os.write(descriptor, data)
    os.close(descriptor)


def _crc(data: bytearray, count: int) -> None:
    for _ in range(count):
        crc32c.crc32c(data)


# -------------------------------------------------------------------------------------------- compaction

CLEANED: Final = re.compile(r"([\d.,]+) MB of log processed in ([\d.,]+) seconds \(([\d.,]+) MB/sec\)")
VALUE: Final = 100


def compaction(pair: Pair, scale: Scale) -> PartResult:
    """One round over a log of which all is dirty: ours by one core, Kafka's by what its cleaner says."""
    layout = [one for one in LAYOUTS if one[0] in ("records", "arrow")] if scale is not FULL else LAYOUTS
    kafka = _kafkas_cleaner(scale) if pair.with_kafka else None
    rows = []
    for name, kind, codec, count in layout:
        plain, done = _compacted(kind, codec, count, scale)
        note = f"CPU time; reading and CRC {plain:,.0f} MB/s"
        is_like_kafkas = name == "records"
        say(f"compaction, {name}: {done:,.0f} MB/s, {note}")
        rows.append(Row(f"compaction, {name}", "MB/s", done, kafka if is_like_kafkas else None, note=note))
    return PartResult(rows, ["Keys of 16 B, each about ten times, values of 100 B."])


def _compacted(kind: PayloadKind, codec: Compression, count: int, scale: Scale) -> tuple[float, float]:
    """MB/s of plainly reading the log, and of compacting it."""
    with tempfile.TemporaryDirectory(prefix="bench-compaction-") as directory:
        records = scale.compacted_mb * 1_000_000 // (VALUE + 24) // count * count
        log = filled(directory, batches(kind, codec, count, records))
        megabytes = log.size_bytes / 1e6
        began = time.process_time()
        read_plainly(Path(log.segments[0].path(".log")))
        middle = time.process_time()
        compact(log)
        return megabytes / (middle - began), megabytes / (time.process_time() - middle)


def _kafkas_cleaner(scale: Scale) -> float | None:
    """As its log tells after a round over as much, from a producer's batches of 1 MB."""
    settings = {
        "min.insync.replicas": "1",
        "log.cleaner.backoff.ms": "500",
        "log.cleaner.min.cleanable.ratio": "0.01",
        "log.segment.bytes": "1000000000",
    }
    cluster = Kafka(settings, brokers=1)
    try:
        cluster.start()
        cluster.wait_ready()
        _fill_compacted(cluster, scale)
        wait_until(
            lambda: bool(_cleanings(cluster)), TIMEOUT_S, "Kafka's cleaner has done a round", step_s=0.5
        )
        best = max(_cleanings(cluster))
        say(f"compaction {cluster.name}: {best[0]:,.0f} MB at {best[1]:,.0f} MB/s")
        return best[1]
    finally:
        cluster.stop()


def _cleanings(cluster: Kafka) -> list[tuple[float, float]]:
    """Megabytes and megabytes per second of each round that was worth it."""
    found = (
        tuple(float(one.replace(",", "")) for one in match) for match in CLEANED.findall(cluster.output())
    )
    return [(size * 1.048576, rate * 1.048576) for size, _, rate in found if size > 1]


def _fill_compacted(cluster: Kafka, scale: Scale) -> None:
    """Nothing is cleaned before all is written, in one segment; one more record then begins the next."""
    admin = AdminClient(quiet(cluster.bootstrap))
    config = {"cleanup.policy": "delete", "segment.bytes": "1000000000"}
    topic = NewTopic("compacted", 1, 1, config=config)
    wait_until(lambda: _creates(admin, topic), TIMEOUT_S, "the topic is made")
    records = scale.compacted_mb * 1_000_000 // (VALUE + 24)
    producer = Producer(quiet(cluster.bootstrap, acks="all", **{"batch.size": 1_000_000, "linger.ms": 20}))
    for key, value in _records(records):
        while True:
            with contextlib.suppress(BufferError):
                producer.produce("compacted", value, key=key, partition=0)
                break
            producer.poll(0.1)
    producer.flush(TIMEOUT_S)
    changes = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in changes.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, "compacted", incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)
    time.sleep(1)
    producer.produce("compacted", b"last", key=b"last", partition=0)
    producer.flush(TIMEOUT_S)


def _records(count: int) -> Iterator[tuple[bytes, bytes]]:
    draw = random.Random(1)
    for _ in range(count):
        yield b"%016d" % draw.randrange(count // 10), draw.randbytes(VALUE)
