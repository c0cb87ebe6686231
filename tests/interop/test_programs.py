"""Programs that other people run: each does its work once, with nothing lost or doubled."""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest
from bench.machine import free_ports

from sparklog.testing import InProcessCluster
from tests.interop.clients import CACHE, HERE, why_missing
from tests.interop.kafka_jars import OPTIONS
from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.integration, pytest.mark.timeout(400)]

PROGRAM_SECONDS = 120
SECOND_CLUSTER = {"group.initial.rebalance.delay.ms": "0", "log.cleaner.enable": "false"}
QUIET_MS = 3_000
"""For so long a topic is read, unless as much as is wanted is there sooner."""
MOST = 1_000_000
OPENED = ("--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED")
"""Flink's serializers look into Java's own classes."""

T = TypeVar("T")


@pytest.fixture
def values(reference) -> Callable[[str], list[str]]:
    """The values that librdkafka reads of a topic's partition 0, of committed transactions alone."""

    def read(topic: str, count: int = MOST) -> list[str]:
        wanted = {"partition": 0, "start": "earliest", "count": count, "timeout_ms": QUIET_MS}
        return [one["value"] for one in reference.read(topic=topic, committed=True, **wanted)]

    return read


def test_platformatic_kafka_with_four_idempotent_producers(target, topic, group, values):
    """Each of them names the producer id 0 in the epoch 0 when it asks for one."""
    fetched = CACHE / "platformatic"
    if (why := why_missing(fetched)) is not None:
        pytest.skip(why)
    line = ["node", str(fetched / "program.mjs"), target.bootstrap_servers, topic, group, "400"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PROGRAM_SECONDS)
    assert done.returncode == 0, done.stderr
    wanted = sorted(f"{producer}-{nth}" for producer in range(4) for nth in range(400))
    assert sorted(json.loads(done.stdout)["read"]) == wanted
    in_log = values(topic)
    assert sorted(in_log) == wanted
    for producer in range(4):
        of_one = [value for value in in_log if value.startswith(f"{producer}-")]
        assert of_one == [f"{producer}-{nth}" for nth in range(400)], "its order"


def test_rskafka_writes_batches_and_reads_them_back(target, topic, values):
    fetched = CACHE / "rskafka"
    if (why := why_missing(fetched)) is not None:
        pytest.skip(why)
    line = [str(fetched / "release/program"), target.bootstrap_servers, topic, "1000"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PROGRAM_SECONDS)
    assert done.returncode == 0, done.stderr
    wanted = [f"value-{number}" for number in range(1_000)]
    assert done.stdout.split() == wanted
    assert values(topic) == wanted


# Python's programs of streams


@pytest.fixture
def python_program(tmp_path) -> Iterator[Callable[..., "Program"]]:
    """Starts the program of a folder in its own environment; all end with the case."""
    with ExitStack() as closing:

        def start(name: str, *arguments: object) -> Program:
            if (why := why_missing(CACHE / name)) is not None:
                pytest.skip(why)
            line = [str(CACHE / name / "bin/python"), str(HERE / name / "program.py")]
            log = tmp_path / f"{name}-{len(list(tmp_path.glob('*.log')))}.log"
            return closing.enter_context(Program([*line, *map(str, arguments)], log))

        yield start


@pytest.mark.timeout(4 * PROGRAM_SECONDS + 120)
def test_faust_counts_and_has_its_table_back_after_a_stop(
    target, python_program, reference, make_topic, tmp_path
):
    """Without transactions: it is stopped in order, and a process with an empty folder goes on.

    That one gets its records when it is ready, no sooner. At the end of a table's restoring a worker reads
    its topics a moment before it seeks to the committed offsets and empties its queues. The records in these
    are lost, on Kafka too (github.com/faust-streaming/faust/issues/596).
    """
    source, sink = make_topic(2), make_topic(1)
    counting = Counting(reference, source, sink)
    arguments = ("faust", target.bootstrap_servers, f"counts-of-{source}", source, sink)
    counting.write()
    stopped = python_program(*arguments, tmp_path / "one")
    counting.wait_for_all(stopped, 1)
    stopped.stop()
    restored = python_program(*arguments, tmp_path / "two")
    restored.waited(lambda: restored.has_said("Worker ready"))
    counting.write()
    counting.wait_for_all(restored, 2)


def test_quix_streams_counts_exactly_once_through_a_kill(
    target, python_program, reference, make_topic, tmp_path
):
    """The next process has an empty folder: its counts come from the changelog topic."""
    source, sink = make_topic(2), make_topic(1)
    counting = Counting(reference, source, sink)
    arguments = ("quix", target.bootstrap_servers, f"counts-of-{source}", source, sink)
    counting.write()
    killed = python_program(*arguments, tmp_path / "one")
    killed.waited(counting.committed_end)
    counting.write()
    killed.kill()
    counting.wait_for_all(python_program(*arguments, tmp_path / "two"), 2)


# Programs in Java


@pytest.fixture
def java_program(tmp_path) -> Iterator[Callable[..., "Program"]]:
    """Starts a class of Kafka's programs or Flink's, or of ours that uses them; all end with the case."""
    with ExitStack() as closing:

        def start(main: str, *arguments: object, of: str = "programs") -> Program:
            jars = CACHE / of
            if (why := why_missing(jars)) is not None:
                pytest.skip(why)
            classes = f"{HERE}/java:{jars}/classes:{jars}/*"
            line = ["env", "-u", "JDK_JAVA_OPTIONS", "java", *OPTIONS, *OPENED, "-cp", classes, main]
            log = tmp_path / f"{main.rpartition('.')[2]}-{len(list(tmp_path.glob('*.log')))}.log"
            return closing.enter_context(Program([*line, *map(str, arguments)], log))

        yield start


class Program:
    """A process whose output goes to ``log``; it is killed at the end, if it has not ended."""

    def __init__(self, line: list[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """As a power cut of this process alone: SIGKILL."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """In order: SIGTERM, and its end."""
        self._process.terminate()
        until(lambda: self._process.poll() is not None, self.output, PROGRAM_SECONDS)

    def waited(self, condition: Callable[[], T]) -> T:
        """The first true value of ``condition``, while the program lives."""

        def value() -> T:
            assert self._process.poll() is None, self.output()
            return condition()

        return until(value, self.output, PROGRAM_SECONDS)

    def has_said(self, words: str) -> bool:
        return words in self.log.read_text()

    def output(self) -> str:
        return self.log.read_text()[-4_000:]


def test_kafka_streams_exactly_once_in_two_processes(target, java_program, reference, make_topic, tmp_path):
    """Counts of each key; one process is killed in the middle, and the other one takes its partitions."""
    source, sink = make_topic(2), make_topic(1)
    application = f"counts-of-{source}"
    arguments = (target.bootstrap_servers, application, source, sink)
    killed, other = (java_program("Counts", *arguments, tmp_path / name) for name in ("one", "two"))

    def both_have_work() -> bool:
        told = reference.describe_group(group=application)
        members = [bool(member["assignment"]) for member in told["members"]]
        return told["state"] == "Stable" and members == [True, True]

    other.waited(both_have_work)
    counting = Counting(reference, source, sink)
    counting.write()
    other.waited(counting.committed_end)
    killed.kill()
    counting.write()
    counting.wait_for_all(other, 2)


KEYS = [f"key-{number}" for number in range(20)]
ROUNDS = 50


@dataclass(frozen=True)
class Counting:
    """Records of keys in ``source``, of which a program writes the counts into ``sink``."""

    reference: Any
    source: str
    sink: str

    def write(self) -> None:
        """``ROUNDS`` more records of each key."""
        for nth in range(ROUNDS):
            records = [{"key": key, "value": str(nth), "partition": n % 2} for n, key in enumerate(KEYS)]
            self.reference.produce(topic=self.source, records=records)

    def committed_end(self) -> int:
        return self.reference.offsets(topic=self.sink, partition=0)["latest"]

    def wait_for_all(self, program: "Program", writes: int) -> None:
        """Until each count of that many writes is there: each once, in order."""
        wanted = writes * ROUNDS * len(KEYS)
        program.waited(lambda: len(counts_in(self.reference, self.sink, wanted)) == wanted)
        counts: dict[str, list[int]] = {key: [] for key in KEYS}
        for key, count in counts_in(self.reference, self.sink):
            counts[key].append(int(count))
        assert counts == {key: list(range(1, writes * ROUNDS + 1)) for key in KEYS}, program.output()


def test_flink_copies_exactly_once_through_a_kill(
    target, java_program, reference, topic, make_topic, values, tmp_path
):
    """The next process goes on from the last checkpoint."""
    sink = make_topic(1)
    wanted = [f"value-{number}" for number in range(2_000)]
    arguments = (target.bootstrap_servers, f"copies-of-{topic}", topic, sink, tmp_path / "checkpoints")

    def write(first: int, last: int) -> None:
        for start in range(first, last, 50):
            records = [{"value": value, "partition": 0} for value in wanted[start : start + 50]]
            reference.produce(topic=topic, records=records)

    write(0, 500)
    killed = java_program("CopyOnce", *arguments, of="flink")
    killed.waited(lambda: values(sink, 500))
    write(500, 1_500)
    killed.kill()
    write(1_500, 2_000)
    other = java_program("CopyOnce", *arguments, of="flink")
    other.waited(lambda: len(values(sink, len(wanted))) == len(wanted))
    assert values(sink) == wanted


def counts_in(reference, sink, count: int = MOST) -> list[tuple[str, str]]:
    """The keys and counts of committed transactions."""
    wanted = {"partition": 0, "start": "earliest", "count": count, "timeout_ms": QUIET_MS}
    found = reference.read(topic=sink, committed=True, **wanted)
    return [(one["key"], one["value"]) for one in found]


def test_kafka_connect_with_an_exactly_once_source(target, java_program, topic, group, values, tmp_path):
    """Lines of a file; the worker is killed in the middle, and another one goes on where it was."""
    lines, port = tmp_path / "lines.txt", free_ports(1)
    settings = {
        "bootstrap.servers": target.bootstrap_servers,
        "group.id": group,
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
        "offset.flush.interval.ms": 100,
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 1_000,
        "scheduled.rebalance.max.delay.ms": 0,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "exactly.once.source.support": "enabled",
        "listeners": f"http://127.0.0.1:{port}",
    }
    worker = properties(tmp_path / "worker.properties", settings)
    connector = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "1",
        "file": str(lines),
        "topic": topic,
        "exactly.once.support": "required",
    }
    wanted = [f"line {number}" for number in range(1_000)]

    def append(first: int, last: int) -> None:
        """In pieces, which the source reads one by one."""
        for start in range(first, last, 50):
            with lines.open("a") as file:
                file.writelines(f"{line}\n" for line in wanted[start : start + 50])

    append(0, 100)
    killed = java_program("org.apache.kafka.connect.cli.ConnectDistributed", worker)
    killed.waited(lambda: put_connector(port, "lines", connector))
    killed.waited(lambda: values(topic, 100))
    append(100, 500)
    killed.kill()
    append(500, 1_000)
    other = java_program("org.apache.kafka.connect.cli.ConnectDistributed", worker)
    other.waited(lambda: len(values(topic, len(wanted))) == len(wanted))
    assert values(topic) == wanted


def properties(path: Path, settings: dict[str, object]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def put_connector(port: int, name: str, config: dict[str, str]) -> bool:
    """Whether a worker has taken it; one that starts does not listen yet, or asks for patience."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/{name}/config",
        json.dumps(config).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status in (200, 201)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def test_mirror_maker_2_copies_a_topic_and_the_offsets_of_its_group(
    target, java_program, reference, start_driver, topic, group, tmp_path
):
    """To a second cluster; its syncs of rules, which this cluster does not have, log no errors."""
    reference.produce(topic=topic, records=[{"partition": 0, "value": f"{n}"} for n in range(500)])
    reference.set_group_offsets(group=group, offsets=[[topic, 0, 500]])
    with InProcessCluster(tmp_path / "second", brokers=1, settings=SECOND_CLUSTER) as second:
        settings = {
            "clusters": "first,second",
            "first.bootstrap.servers": target.bootstrap_servers,
            "second.bootstrap.servers": second.bootstrap_servers,
            "first->second.enabled": "true",
            "second->first.enabled": "false",
            "topics": topic,
            "groups": group,
            "sync.topic.acls.enabled": "true",
            "sync.topic.acls.interval.seconds": 1,
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": 1,
            "emit.checkpoints.interval.seconds": 1,
            "refresh.topics.interval.seconds": 1,
            "offset.lag.max": 0,
            "replication.factor": 1,
            "checkpoints.topic.replication.factor": 1,
            "heartbeats.topic.replication.factor": 1,
            "offset-syncs.topic.replication.factor": 1,
            "offset.storage.replication.factor": 1,
            "status.storage.replication.factor": 1,
            "config.storage.replication.factor": 1,
        }
        mirror = java_program(
            "org.apache.kafka.connect.mirror.MirrorMaker",
            properties(tmp_path / "mirror.properties", settings),
        )
        copied = start_driver("confluent-kafka", second.bootstrap_servers)
        name = f"first.{topic}"
        mirror.waited(lambda: name in second.admin.list_topics())
        mirror.waited(lambda: len(second.consume(name)) == 500)
        found = copied.read(topic=name, partition=0, start="earliest", count=500)
        assert [one["value"] for one in found] == [f"{n}" for n in range(500)]
        mirror.waited(lambda: [name, 0, 500] in copied.group_offsets(group=group))
        assert "syncing topic ACLs" not in mirror.log.read_text(), "a scheduled task that failed"
