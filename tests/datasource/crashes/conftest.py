"""What became of the rows, as Spark and a Kafka client see it; and jobs of their own."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from sparklog.client.isolation import IsolationLevel
from sparklog.client.offsets import latest
from sparklog.model import ids
from sparklog.testing import InProcessCluster
from tests.waiting import until

JOB = Path(__file__).with_name("killed_job.py")
JOB_S = 330


def of_kafka(cluster: InProcessCluster, topic: str, partitions: int) -> Counter[str]:
    """All rows that a Kafka client gets with read_committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "who-reads-alone",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    seen: Counter[str] = Counter()
    open_ends = set(range(partitions))
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in open_ends])

    def is_over() -> bool:
        for message in consumer.consume(10_000, 0.1):
            if message.error() is None:
                seen[message.value().decode()] += 1
            else:
                open_ends.discard(message.partition())
        return not open_ends

    try:
        until(is_over)
    finally:
        consumer.close()
    return seen


@pytest.fixture
def is_there_once(cluster: InProcessCluster, read: Callable[..., Any]) -> Callable[[str, int, int], None]:
    """Checks that of the numbers below ``rows`` each is in ``topic`` once, and that nothing is left open."""

    def check(topic: str, rows: int, partitions: int) -> None:
        places = [ids.TopicPartition(topic, number) for number in range(partitions)]
        expected = Counter(str(number) for number in range(rows))

        def is_stable() -> bool:
            ends = [latest(cluster.client, places, level) for level in IsolationLevel]
            return ends[0] == ends[1]

        until(is_stable, "the end of all members")
        assert of_kafka(cluster, topic, partitions) == expected
        of_spark = Counter(bytes(row.value).decode() for row in read(topic).select("value").collect())
        assert of_spark == expected

    return check


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., int]:
    """Runs the job with steps, to its end or its death; its exit code."""

    def run(*steps: dict[str, Any], master: str = "local[2,4]") -> int:
        plan = tmp_path / "steps.json"
        plan.write_text(json.dumps(steps))
        log = tmp_path / "job.log"
        with log.open("ab") as output:
            done = subprocess.run(
                [sys.executable, str(JOB), master, str(plan)], stdout=output, stderr=output, timeout=JOB_S
            )
        if done.returncode > 0:
            raise AssertionError(log.read_text()[-4_000:])
        return done.returncode

    return run
