"""BrokerReport as a broker answers it: from its last sample, from memory, and from nothing that may hang."""

import os
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from sparklog import __version__
from sparklog.broker.life.reporting.kept_warnings import KeptWarnings
from sparklog.broker.life.reporting.process_facts import cores, host_name, open_files_max, process_facts
from sparklog.broker.life.reporting.sampler import Sampler
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.model.metric import Metric
from sparklog.model.time import Clock
from sparklog.wire.messages.discovery.broker_report import (
    BrokerReportRequest,
    BrokerReportResponse,
    ReportedFigure,
    ReportedFollower,
    ReportedPartition,
    ReportedWarning,
)
from sparklog.wire.reported_metrics import reported

TOPICS_PER_ANSWER_MAX: Final = 100
PARTITIONS_PER_ANSWER_MAX: Final = 10_000
NOT_YET: Final = "this broker is starting, and has no figures yet; ask again"

ReadMetrics = Callable[[], Iterable[Metric]]


class OwnReport:
    """What one broker answers; from any thread."""

    def __init__(self, broker_id: BrokerId, clock: Clock) -> None:
        self.warnings: Final = KeptWarnings()
        self._broker_id = broker_id
        self._clock = clock
        self._started_ms = clock.wall_ms()
        self._table: PartitionTable | None = None
        self._sampler: Sampler | None = None
        self._read_metrics: ReadMetrics = list

    def begin(self, table: PartitionTable, sampler: Sampler, read_metrics: ReadMetrics) -> None:
        """The broker serves. ``sampler`` has not started."""
        self._table, self._read_metrics = table, read_metrics
        self._sampler = sampler
        sampler.start()

    def end(self) -> None:
        if self._sampler is not None:
            self._sampler.close()

    def answer(self, request: BrokerReportRequest) -> BrokerReportResponse:
        sampler, table = self._sampler, self._table
        if sampler is None or table is None:
            return BrokerReportResponse(error_code=ErrorCode.broker_not_available, error_message=NOT_YET)
        process = process_facts()
        samples_ms, figures = sampler.hour.after(request.samples_after_ms, request.samples_max)
        return BrokerReportResponse(
            broker_id=self._broker_id,
            release=__version__,
            host=host_name(),
            pid=os.getpid(),
            time_ms=self._clock.wall_ms(),
            started_ms=self._started_ms,
            open_files=process.open_files,
            open_files_max=open_files_max(),
            threads=process.threads,
            memory_bytes=process.memory_bytes,
            cores=cores(),
            directories=sampler.directories,
            samples_ms=samples_ms,
            figures=[
                ReportedFigure(name=name, values=values)
                for name, values in zip(sampler.hour.names, figures, strict=True)
                if samples_ms
            ],
            last_warning=self.warnings.last,
            warnings=[
                ReportedWarning(**one._asdict())
                for one in self.warnings.after(request.warnings_after, request.warnings_max)
            ],
            partitions=_partitions(table, request.topics[:TOPICS_PER_ANSWER_MAX]),
            metrics=reported(self._read_metrics()) if request.wants_metrics else [],
        )


def _partitions(table: PartitionTable, topics: Iterable[str]) -> list[ReportedPartition]:
    wanted = frozenset(topics)
    if not wanted:
        return []
    held = (one for one in table.partitions() if one.topic_partition.topic in wanted)
    chosen = sorted(islice(held, PARTITIONS_PER_ANSWER_MAX), key=lambda one: one.topic_partition)
    return [_partition(one) for one in chosen]


def _partition(partition: Partition) -> ReportedPartition:
    """Read without its lock, as metrics are."""
    topic, number = partition.topic_partition
    return ReportedPartition(
        topic=topic,
        partition=number,
        is_leader=partition.is_leader,
        is_offline=partition.is_offline,
        leader_epoch=partition.leader_epoch,
        log_start_offset=partition.log_start_offset,
        high_watermark=partition.high_watermark,
        log_end_offset=partition.log_end_offset,
        size_bytes=partition.log.size_bytes,
        followers=[
            ReportedFollower(broker_id=follower, lag=lag)
            for follower, lag in sorted(partition.follower_lags().items())
        ],
    )
