"""DescribeLogDirs: the logs in this broker's log directories, and which directories are offline (KIP-113)."""

from sparklog.broker.call import Call
from sparklog.broker.partition.free_space import space_of
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.storage.disk import Space
from sparklog.storage.log_directory import LogDirectory
from sparklog.wire.messages.admin.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN = Space(-1, -1)


def handle(call: Call, request: DescribeLogDirsRequest) -> None:
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(one.topic, number) for one in request.topics for number in one.partitions}
    log_dirs = call.broker.log_dirs
    results = [
        _directory(call, directory, [one for one in held if wanted is None or one in wanted])
        for directory, held in log_dirs.contents().items()
    ]
    results += [
        DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.kafka_storage_error)
        for path in list(log_dirs.offline)
    ]
    call.reply(DescribeLogDirsResponse(results=results))


def _directory(call: Call, directory: LogDirectory, held: list[TopicPartition]) -> DescribeLogDirsResult:
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
    space = space_of(directory) or UNKNOWN
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=list(topics.values()),
        total_bytes=space.total_bytes,
        usable_bytes=space.free_bytes,
    )
