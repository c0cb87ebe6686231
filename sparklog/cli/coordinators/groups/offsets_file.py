"""Offsets as text, in the format that ``kafka-consumer-groups --export`` prints for one group:

    topic,partition,offset

a line each, without a heading. Lines of ``group,topic,partition,offset``, as Kafka's tool prints for several
groups, are read too, if they name the group that is reset.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition, topic_name_problem


def plan_text(offsets: Mapping[TopicPartition, int]) -> str:
    """The plan, a line for each partition."""
    return "".join(f"{one.topic},{one.partition},{offsets[one]}\n" for one in sorted(offsets))


def read_plan(path: Path, group_id: str) -> dict[TopicPartition, int]:
    """The offsets in a file; SparklogError with the line if one is not understood."""
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            return parse_plan(csv.reader(lines, skipinitialspace=True), str(path), group_id)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SparklogError(f"{path} cannot be read as offsets: {error}") from error


def parse_plan(rows: Iterable[Sequence[str]], where: str, group_id: str) -> dict[TopicPartition, int]:
    """The offsets in rows of three or four fields; empty rows are passed over."""
    plan: dict[TopicPartition, int] = {}
    for number, row in enumerate(rows, start=1):
        if not row:
            continue
        topic_partition, offset = _entry(row, f"{where}, line {number}", group_id)
        if topic_partition in plan:
            raise SparklogError(f"{where}, line {number}: {topic_partition} is named for the second time")
        plan[topic_partition] = offset
    if not plan:
        raise SparklogError(f"{where} has no offsets; a line is topic,partition,offset")
    return plan


def _entry(row: Sequence[str], where: str, group_id: str) -> tuple[TopicPartition, int]:
    fields = [field.strip() for field in row]
    if len(fields) == 4 and fields[0] != group_id:
        raise SparklogError(f"{where}: is for group {fields[0]!r}, and {group_id!r} is reset")
    if len(fields) not in (3, 4):
        raise SparklogError(f"{where}: {','.join(row)!r} is not topic,partition,offset")
    topic, partition, offset = fields[-3:]
    problem = topic_name_problem(topic)
    if problem is not None:
        raise SparklogError(f"{where}: {problem}")
    for name, value in (("partition", partition), ("offset", offset)):
        if not value.isascii() or not value.isdigit():
            raise SparklogError(f"{where}: {name} {value!r} is not a whole number from 0 on")
    return TopicPartition(topic, int(partition)), int(offset)
