"""What a Kafka client does to either cluster: librdkafka for steady loads, Java's own tool for mass."""

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.clusters import KAFKA_JARS
from bench.machine import TOKEN, VARIABLE, wait_until
from bench.report import longest_gap, percentile

# A client that learns quickly, so that a gap is the cluster's and not the client's backoff.
EAGER: Final = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20}
TOOL_TIMEOUT_S: Final = 240.0


def quiet(bootstrap: str, **settings: object) -> dict[str, object]:
    silence = {"log_level": 0, "error_cb": lambda error: None}
    return {"bootstrap.servers": bootstrap, **silence, **EAGER, **settings}


def create_topic(
    bootstrap: str,
    topic: str,
    partitions: int,
    timeout_s: float = 60.0,
    *,
    config: Mapping[str, str] | None = None,
    security: Mapping[str, object] | None = None,
) -> None:
    """Create a topic of three replicas, trying again while the cluster is still coming up.

    ``config``: the topic's settings; ``security``: the client's, as librdkafka names them.
    """
    admin = AdminClient(quiet(bootstrap, **(security or {})))
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            wanted = NewTopic(topic, partitions, 3, config=dict(config or {}))
            admin.create_topics([wanted], request_timeout=10)[topic].result(15)
        except KafkaException as error:
            if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                return
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def replicas(
    bootstrap: str, topic: str, security: Mapping[str, object] | None = None
) -> dict[int, tuple[int, frozenset[int]]]:
    """Leader and in-sync replicas of every partition."""
    admin = AdminClient(quiet(bootstrap, **(security or {})))
    metadata = admin.list_topics(topic, timeout=10).topics[topic]
    return {number: (part.leader, frozenset(part.isrs)) for number, part in metadata.partitions.items()}


def wait_in_sync(
    bootstrap: str, topic: str, timeout_s: float = 90.0, security: Mapping[str, object] | None = None
) -> None:
    def is_whole() -> bool:
        try:
            found = replicas(bootstrap, topic, security)
            return all(len(isr) == 3 and leader >= 0 for leader, isr in found.values())
        except KafkaException:
            return False

    wait_until(is_whole, timeout_s, f"all replicas of {topic} are in sync", step_s=0.2)


def first_write(bootstrap: str, topic: str = "first") -> None:
    """Returns when a record to a new topic of three replicas is acknowledged."""
    create_topic(bootstrap, topic, 1)
    failures: list[object] = []
    producer = Producer(quiet(bootstrap, acks="all", **{"linger.ms": 0}))
    producer.produce(topic, b"first", on_delivery=lambda error, _: failures.append(error))
    if producer.flush(60) or failures != [None]:
        raise RuntimeError(f"the first write was not acknowledged: {failures}")


@dataclass(slots=True)
class SteadyLoad:
    """Records at an even pace to every partition, from a thread; ``acks`` holds when each came back."""

    bootstrap: str
    topic: str
    partitions: int
    per_second: float
    """Rounds a second; each writes one record to every partition."""
    settings: Mapping[str, object] = field(default_factory=dict)
    value: bytes = b"v" * 100
    acks: dict[int, list[float]] = field(default_factory=dict)
    delays_ms: list[tuple[float, float]] = field(default_factory=list)
    """When each acknowledgement came, and how long its record had waited for it, the queue included."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "SteadyLoad":
        self.acks = {number: [] for number in range(self.partitions)}
        self._thread = threading.Thread(target=self._run, name="steady-load")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def wait_acknowledged(self, timeout_s: float = 60.0) -> None:
        """Until every partition has been written: what is measured begins then."""
        wait_until(lambda: all(self.acks.values()), timeout_s, f"{self.topic} is written")

    def p99_ms(self, since: float, until: float) -> float:
        """The 99th percentile of acknowledgements that came between two moments; ValueError without any."""
        return percentile((ms for at, ms in list(self.delays_ms) if since <= at <= until), 0.99)

    def gap_s(self, since: float, until: float) -> float:
        """The longest time without an acknowledgement, of any partition."""
        return max(longest_gap(list(acks), since, until) for acks in self.acks.values())

    def _run(self) -> None:
        producer = Producer(quiet(self.bootstrap, acks="all", **self.settings))
        acks = self.acks

        def acknowledged(error: object, message: Any) -> None:
            if error is None:
                now = time.monotonic()
                acks[message.partition()].append(now)
                self.delays_ms.append((now, message.latency() * 1000))

        due = time.monotonic()
        while not self._stop.is_set():
            for number in range(self.partitions):
                try:
                    producer.produce(self.topic, self.value, partition=number, on_delivery=acknowledged)
                except BufferError:
                    break  # the queue is full of what waits: more of it would tell nothing new
            due = max(due + 1 / self.per_second, time.monotonic() - 1)
            producer.poll(max(0.0, due - time.monotonic()))
            while (left_s := due - time.monotonic()) > 0:
                producer.poll(left_s)
        producer.flush(10)


def flood(
    bootstrap: str, topic: str, partitions: int, seconds: float, settings: Mapping[str, object]
) -> float:
    """Millions of bytes a second that are acknowledged while librdkafka writes as fast as it can."""
    producer = Producer(quiet(bootstrap, acks="all", **{"linger.ms": 5, **settings}))
    value = b"x" * FLOOD_BYTES
    count, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        try:
            producer.produce(topic, value, partition=count % partitions)
        except BufferError:
            producer.poll(0.01)
        else:
            count += 1
    if left := producer.flush(TOOL_TIMEOUT_S):
        raise RuntimeError(f"{topic}: {left} of {count:,} records were not acknowledged")
    return count * FLOOD_BYTES / 1e6 / (time.monotonic() - began)


FLOOD_BYTES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Performance:
    """``latency_ms`` is what the tool says of delays, ``p50_ms`` and ``p99_ms`` are two of them."""

    records_per_s: float
    mb_per_s: float
    latency_ms: str
    p50_ms: float
    p99_ms: float


MIB: Final = 1.048576
"""In millions of bytes: the tools say MB where they count MiB."""


def producer_performance(
    bootstrap: str,
    topic: str,
    records: int,
    record_bytes: int,
    settings: Mapping[str, str] | None = None,
    per_second: int = -1,
) -> Performance:
    """Java's ProducerPerformance; ``mb_per_s`` in millions of bytes. ``per_second`` -1: as fast as it can."""
    properties = [
        f"{name}={value}" for name, value in {"bootstrap.servers": bootstrap, **(settings or {})}.items()
    ]
    options = ["--topic", topic, "--num-records", str(records), "--record-size", str(record_bytes)]
    options += ["--throughput", str(per_second), "--producer-props", *properties]
    last = _java_tool("ProducerPerformance", options)
    found = re.match(r"(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), (.*)", last)
    delays = re.search(r"(\d+) ms 50th.* (\d+) ms 99th", last)
    if found is None or delays is None or int(found[1]) != records:
        raise RuntimeError(f"ProducerPerformance says of {records} records: {last!r}")
    return Performance(
        float(found[2]),
        float(found[3]) * MIB,
        found[4].rstrip("."),
        float(delays[1]),
        float(delays[2]),
    )


def consumer_performance(
    bootstrap: str, topic: str, records: int, group: str, settings: Mapping[str, str] | None = None
) -> float:
    """Java's ConsumerPerformance: millions of bytes a second, without the time of joining its group."""
    options = ["--bootstrap-server", bootstrap, "--topic", topic, "--messages", str(records)]
    options += ["--group", group, "--timeout", "60000"]
    with tempfile.NamedTemporaryFile("w", prefix="bench-consumer-", suffix=".properties") as file:
        file.write("".join(f"{name}={value}\n" for name, value in (settings or {}).items()))
        file.flush()
        last = _java_tool("ConsumerPerformance", [*options, "--consumer.config", file.name])
    columns = [column.strip() for column in last.split(",")]
    if len(columns) != CONSUMER_COLUMNS or int(columns[4]) < records:
        raise RuntimeError(f"ConsumerPerformance says of {records} records: {last!r}")
    return float(columns[8]) * MIB


CONSUMER_COLUMNS: Final = 10


def _java_tool(name: str, options: list[str]) -> str:
    """The last line that a tool of Kafka's prints."""
    done = subprocess.run(
        ["java", "-Xmx512m", "-cp", f"{KAFKA_JARS}/*", f"org.apache.kafka.tools.{name}", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=TOOL_TIMEOUT_S,
        env={**os.environ, VARIABLE: TOKEN},
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{name}: {done.stdout[-800:]} {done.stderr[-800:]}")
    return lines[-1]
