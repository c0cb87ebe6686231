"""A broker's metrics (docs/metrics.md), read from its partitions without their locks."""

from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final

from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.partition.free_space import FreeSpaces
from sparklog.broker.partition.topic_traffic import OTHER_TOPICS, TopicTraffic, Traffic
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.to_controller.isr_proposals import IsrProposalSender
from sparklog.model.metric import Metric, counter, gauge

_TRAFFIC: Final[tuple[tuple[str, str, Callable[[Traffic], int]], ...]] = (
    ("produced_bytes", "Bytes appended to the partitions led here.", attrgetter("produced_bytes")),
    ("produced_records", "Records appended to the partitions led here.", attrgetter("produced_records")),
    ("fetched_bytes", "Bytes of batches sent to consumers.", attrgetter("fetched_bytes")),
    ("fetched_records", "Offsets of batches sent to consumers.", attrgetter("fetched_records")),
)


def broker_metrics(replicas: PartitionTable, log_dirs: LogDirs, proposals: IsrProposalSender) -> list[Metric]:
    partitions = replicas.partitions()
    return [
        gauge("sparklog_broker_partitions", "Partitions with a replica here.", len(partitions)),
        gauge(
            "sparklog_broker_leaders",
            "Partitions that this broker leads.",
            sum(partition.is_leader for partition in partitions),
        ),
        gauge(
            "sparklog_broker_under_replicated_partitions",
            "Partitions led here of which not all replicas are in sync.",
            sum(partition.is_under_replicated for partition in partitions),
        ),
        gauge(
            "sparklog_broker_under_min_isr_partitions",
            "Partitions led here with fewer replicas in sync than min.insync.replicas.",
            sum(partition.is_under_min_isr for partition in partitions),
        ),
        gauge(
            "sparklog_broker_partitions_awaiting_history",
            "Partitions led here that serve nobody before their logs were compared with the remote store.",
            sum(partition.awaits_history for partition in partitions),
        ),
        gauge(
            "sparklog_broker_last_stable_offset_lag_max",
            "Offsets between last stable offset and high watermark, of the partition led here with the most.",
            max((one.unstable_offsets for one in partitions if one.is_leader), default=0),
        ),
        gauge(
            "sparklog_broker_offline_partitions",
            "Partitions whose replica here serves no more, because its log or log directory failed.",
            sum(partition.is_offline for partition in partitions),
        ),
        gauge(
            "sparklog_broker_offline_log_directories",
            "Log directories that serve no more.",
            len(log_dirs.offline),
        ),
        counter(
            "sparklog_broker_isr_shrinks_total",
            "Times that this broker, as leader, had followers taken out of an ISR because they lagged.",
            proposals.shrinks,
        ),
        counter(
            "sparklog_broker_isr_expands_total",
            "Times that this broker, as leader, had a follower taken into an ISR.",
            proposals.expands,
        ),
    ]


def zookeeper_metrics(away_ms: int, slowest_ms: int, session_ms: int) -> Iterator[Metric]:
    yield gauge(
        "sparklog_broker_zookeeper_away_milliseconds",
        "How long ZooKeeper has not been reached: access rules and users are as old.",
        away_ms,
    )
    yield gauge(
        "sparklog_broker_zookeeper_slowest_answer_milliseconds",
        "The slowest answer of ZooKeeper in the last minute, to a request each five seconds.",
        slowest_ms,
    )
    yield gauge(
        "sparklog_broker_zookeeper_session_milliseconds",
        "The session time-out that ZooKeeper granted; 0 before the first session.",
        session_ms,
    )


def disk_metrics(log_dirs: LogDirs, free_spaces: FreeSpaces) -> list[Metric]:
    rooms = [free_spaces.room(directory) for directory in log_dirs.contents()]
    known = [room for room in rooms if room is not None]
    return [
        *(
            gauge(
                "sparklog_broker_log_directory_free_bytes",
                "Free bytes of the disk under a log directory.",
                room.free_bytes,
                directory=room.path,
            )
            for room in known
        ),
        *(
            gauge(
                "sparklog_broker_log_directory_refuses_produces",
                "1 for a log directory whose disk has less free than log.dirs.free.min.bytes.",
                int(room.is_low),
                directory=room.path,
            )
            for room in known
        ),
    ]


def topic_metrics(traffic: TopicTraffic, replicas: PartitionTable) -> Iterator[Metric]:
    """The busiest topics by the label ``topic``; the others together, under the empty name."""
    read = traffic.read()
    for name, doc, figure in _TRAFFIC:
        for topic, counts in read.items():
            yield counter(f"sparklog_broker_topic_{name}_total", doc, figure(counts), topic=topic)
    sizes_bytes: Counter[str] = Counter()
    for partition in replicas.partitions():
        topic = partition.topic_partition.topic
        sizes_bytes[topic if topic in read else OTHER_TOPICS] += partition.log.size_bytes
    for topic, size_bytes in sorted(sizes_bytes.items()):
        name, doc = "sparklog_broker_topic_log_bytes", "Bytes of a topic's logs on this broker's disks."
        yield gauge(name, doc, size_bytes, topic=topic)


def conversion_metrics(conversions: ConversionStatistics) -> Iterator[Metric]:
    yield counter(
        "sparklog_broker_produce_message_conversions_total",
        "Records that producers sent in message format 0 or 1, and that were converted.",
        conversions.produced,
    )
    yield counter(
        "sparklog_broker_fetch_message_conversions_total",
        "Records that were converted for readers that know only message format 0 or 1.",
        conversions.fetched,
    )
    yield counter(
        "sparklog_broker_fetch_json_rows_total",
        "Rows of typed topics that were given as JSON, to readers that know only Kafka's records.",
        conversions.json_rows,
    )
    yield counter(
        "sparklog_broker_fetch_cut_batches_total",
        "Batches of typed topics of which readers were given the columns that they had named.",
        conversions.cut_batches,
    )
    yield counter(
        "sparklog_broker_fetch_cut_bytes_total",
        "Bytes of these batches that were not sent.",
        conversions.cut_bytes,
    )
    yield counter(
        "sparklog_broker_fetch_passed_over_batches_total",
        "Batches of typed topics that have no row which their readers' conditions keep.",
        conversions.passed_over,
    )
