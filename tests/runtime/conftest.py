"""A `sparklog start` as users run it, watched from outside."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.machines.places import free_ports
from tests.runtime.watched import WATCH, watched
from tests.waiting import until

PROGRAM = (
    "import argparse, sys; from sparklog_runtime.commands import start_command as command; "
    "parser = argparse.ArgumentParser(); command.add_arguments(parser); "
    "sys.exit(command.run(parser.parse_args()))"
)
START_TIMEOUT_S = 90.0


def _hear_hang_ups() -> None:
    """A JVM ignores SIGHUP for good if its parent did, as under ``nohup``."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Started:
    """A running cluster, by `sparklog start` or otherwise."""

    def __init__(self, command: list[str], root: Path) -> None:
        self.root = root
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, WATCH: str(root)},
            preexec_fn=_hear_hang_ups,
        )

    def wait_ready(self) -> str:
        """The ready line; fails with standard error if the start fails."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            pytest.fail(f"start failed: {self.process.stderr.read()}")
        return line

    def wait_log(self, text: str) -> None:
        log = self.root / "logs/controller.log"
        until(lambda: log.exists() and text in log.read_text(), f"{text} in {log}", START_TIMEOUT_S)

    def cluster(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.root / "cluster.json").read_text())
        return content

    def broker_pid(self, broker_id: int) -> int:
        return next(int(broker["pid"]) for broker in self.cluster()["brokers"] if broker["id"] == broker_id)

    def processes(self) -> list[int]:
        """Every living process that descends from the start, wherever it hangs now."""
        return watched(self.root)

    def wait_gone(self) -> None:
        until(lambda: self.processes() == [], "the end of all processes", 30)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Signal it; exit status, the rest of standard output, and standard error."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def end(self) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def launch() -> Iterator[Callable[[list[str], Path], Started]]:
    """Runs programs that host a cluster, and ends whatever is left of them."""
    if sys.platform != "linux":
        pytest.skip("finds what is left of a cluster in /proc")
    started: list[Started] = []

    def run(command: list[str], root: Path) -> Started:
        started.append(Started(command, root))
        return started[-1]

    yield run
    for cluster in started:
        cluster.end()


@pytest.fixture
def start(launch: Callable[[list[str], Path], Started]) -> Callable[..., Started]:
    """`sparklog start --root ROOT ARGUMENTS...`"""

    def run(root: Path, *arguments: str) -> Started:
        return launch([sys.executable, "-c", PROGRAM, "--root", str(root), *arguments], root)

    return run


@pytest.fixture
def free_port() -> int:
    """The first of two ports that are free now, and that no outgoing connection is given."""
    return free_ports(2)


class Kafka:
    """A Kafka client's view: librdkafka against the cluster."""

    def create_topic(self, bootstrap: str, name: str, *, replicas: int, **configs: str) -> None:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(name, 1, replicas, config=settings)])[name].result(60)

    def produce(self, bootstrap: str, values: list[bytes]) -> None:
        """Values to partition 0 of topic t, all acknowledged by all replicas in sync."""
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 60_000})
        for value in values:
            producer.produce("t", value, partition=0, on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(60) == 0
        assert failures == [None] * len(values)

    def topics(self, bootstrap: str) -> dict[str, list[int]]:
        """Each topic's name and its partitions' numbers of replicas, asked once."""
        found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics
        return {
            name: [len(partition.replicas) for partition in topic.partitions.values()]
            for name, topic in found.items()
        }

    def consume(self, bootstrap: str, count: int) -> list[bytes | None]:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
        consumer.assign([TopicPartition("t", 0, 0)])
        messages = consumer.consume(count, timeout=60)
        consumer.close()
        return [message.value() for message in messages]


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()
