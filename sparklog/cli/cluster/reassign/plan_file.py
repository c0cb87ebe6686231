"""Plans as files, in the JSON of Kafka's ``kafka-reassign-partitions``:

    {"version": 1, "partitions": [{"topic": "events", "partition": 0, "replicas": [1, 2, 3]}, ...]}

So each program can execute the other's plan. ``log_dirs`` is allowed if it leaves the choice of a log
directory to the broker ("any"); unknown fields are ignored.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeGuard

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition, topic_name_problem

VERSION: Final = 1
ANY_DIRECTORY: Final = "any"

Plan = dict[TopicPartition, tuple[int, ...]]
"""The new replicas of each partition, the preferred leader first."""


def plan_text(plan: Mapping[TopicPartition, Sequence[int]]) -> str:
    """The plan in the JSON of Kafka's tool, with a line for each partition."""
    entries = [
        json.dumps({"topic": one.topic, "partition": one.partition, "replicas": list(plan[one])})
        for one in sorted(plan)
    ]
    listed = ",\n  ".join(entries)
    return f'{{"version": {VERSION}, "partitions": [\n  {listed}\n]}}\n'


def write_plan(path: Path, plan: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Write the whole plan or nothing; SparklogError if that fails."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(plan_text(plan), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise SparklogError(f"the plan cannot be written to {path}: {error}") from error


def read_plan(path: Path) -> Plan:
    """The plan in a file; SparklogError with the reason if it is invalid."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SparklogError(
            f"{path} cannot be read as a plan: {error}; "
            f"`sparklog reassign plan -o {shlex.quote(str(path))}` writes one"
        ) from error
    return parse_plan(content, str(path))


def parse_plan(content: Any, where: str) -> Plan:
    """The plan in parsed JSON."""
    if not isinstance(content, dict) or not isinstance(content.get("partitions"), list):
        raise SparklogError(f'{where} is not a plan: it has no list "partitions"')
    if content.get("version", VERSION) != VERSION:
        raise SparklogError(f"{where} is a plan of version {content['version']!r}; known is only {VERSION}")
    plan: Plan = {}
    for index, entry in enumerate(content["partitions"]):
        partition, replicas = _entry(entry, f"{where}, partitions[{index}]")
        if partition in plan:
            raise SparklogError(f"{where} names {partition} more than once")
        plan[partition] = replicas
    if not plan:
        raise SparklogError(f"{where} is a plan without partitions: there is nothing to do")
    return plan


def _entry(entry: Any, where: str) -> tuple[TopicPartition, tuple[int, ...]]:
    if not isinstance(entry, dict):
        raise SparklogError(f"{where} is not an object with topic, partition and replicas: {entry!r}")
    topic, partition, replicas = (entry.get(name) for name in ("topic", "partition", "replicas"))
    if not isinstance(topic, str) or topic_name_problem(topic) is not None:
        raise SparklogError(f'{where}: "topic": {topic!r} is not the name of a topic')
    if not _is_number(partition):
        raise SparklogError(f'{where}: "partition": {partition!r} is not a number from 0 on')
    if not isinstance(replicas, list) or not replicas or not all(_is_number(one) for one in replicas):
        raise SparklogError(f'{where}: "replicas": {replicas!r} is not a list of broker ids')
    if len(set(replicas)) < len(replicas):
        raise SparklogError(f'{where}: "replicas": {replicas!r} names a broker twice')
    directories = entry.get("log_dirs") or []
    if any(one != ANY_DIRECTORY for one in directories):
        raise SparklogError(
            f'{where}: "log_dirs": {directories!r}: a broker chooses the log directory itself; leave them out'
        )
    return TopicPartition(topic, partition), tuple(replicas)


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
