"""DescribeLogDirs: the logs in this broker's log directories, and which directories are offline (KIP-113)."""

import shutil

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.admin.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN_BYTES = -1


def handle(call: Call, request: DescribeLogDirsRequest) -> None:
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(one.topic, number) for one in request.topics for number in one.partitions}
    replicas = call.broker.replicas
    results = [
        _directory(call, path, [one for one in held if wanted is None or one in wanted])
        for path, held in replicas.directories().items()
    ]
    results += [
        DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.kafka_storage_error)
        for path in replicas.offline_directories()
    ]
    call.reply(DescribeLogDirsResponse(results=results))


def _directory(call: Call, path: str, held: list[TopicPartition]) -> DescribeLogDirsResult:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for topic_partition in sorted(held):
        partition = call.broker.replicas.get(topic_partition)
        if partition is not None:
            topic = topics.setdefault(topic_partition.topic, DescribeLogDirsTopic(name=topic_partition.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=topic_partition.partition,
                    partition_size=partition.log_guard.size_bytes(),
                    offset_lag=max(0, partition.high_watermark - partition.log_end_offset),
                )
            )
    total_bytes, usable_bytes = _space(path)
    return DescribeLogDirsResult(
        log_dir=path, topics=list(topics.values()), total_bytes=total_bytes, usable_bytes=usable_bytes
    )


def _space(path: str) -> tuple[int, int]:
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return UNKNOWN_BYTES, UNKNOWN_BYTES
    return usage.total, usage.free
