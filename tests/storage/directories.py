"""Log directories with two small logs, for tests."""

import uuid
from typing import Any

from sparklog.model.ids import TopicPartition
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory

Bench = Any
A, B = TopicPartition("a.b-c", 0), TopicPartition("b_1", 12)
TOPIC_ID = uuid.UUID(int=77)
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)


def open_directory(
    bench: Bench, broker_id: int | None = 1, cluster: str = "c1", boot: str = "boot-1"
) -> LogDirectory:
    return LogDirectory.open(
        str(bench.directory / "logs"), broker_id, cluster, bench.disk, bench.clock, boot_id=boot
    )


def load(directory: LogDirectory, *, is_suspect: bool = False) -> dict[TopicPartition, Log]:
    return directory.load_logs(lambda topic: SMALL, is_suspect=is_suspect)


def fill(bench: Bench, log: Log, batches: int) -> None:
    for _ in range(batches):
        bench.append(log)


def with_two_logs(bench: Bench, batches: int = 15) -> LogDirectory:
    directory = open_directory(bench)
    load(directory)
    for topic_partition in (A, B):
        fill(bench, directory.create_log(topic_partition, TOPIC_ID, SMALL), batches)
    return directory
