"""What metrics say of a broker's copies to its remote store, and of its reads from there."""

from collections.abc import Iterator

from sparklog.broker.life.remote_copies import RemoteCopies
from sparklog.broker.remote_log.copying.copier import CopyStatistics
from sparklog.broker.remote_log.reading.history_reader import Counts
from sparklog.model.metric import Metric, counter, gauge


def remote_metrics(copies: RemoteCopies | None) -> Iterator[Metric]:
    """All zero for a broker without a store."""
    yield from copy_metrics(CopyStatistics() if copies is None else copies.copier.statistics)
    yield from history_metrics(Counts() if copies is None else copies.reader.counts)


def copy_metrics(statistics: CopyStatistics) -> Iterator[Metric]:
    yield counter(
        "sparklog_broker_remote_copied_segments_total",
        "Segments that were copied to the remote store.",
        statistics.segments,
    )
    yield counter(
        "sparklog_broker_remote_copied_bytes_total",
        "Bytes that were written to the remote store.",
        statistics.bytes,
    )
    yield counter(
        "sparklog_broker_remote_copy_failures_total",
        "Rounds of copying that a failure of the store, of ZooKeeper or of a log has ended.",
        statistics.failures,
    )
    yield gauge(
        "sparklog_broker_remote_copy_lag_bytes",
        "Bytes of sealed segments led here that are not in the remote store yet.",
        statistics.lag_bytes,
    )
    yield gauge(
        "sparklog_broker_remote_unreadable_histories",
        "Partitions led here with something in the remote store that is gone or damaged; the log names it.",
        statistics.unreadable,
    )


def history_metrics(counts: Counts) -> Iterator[Metric]:
    yield counter(
        "sparklog_broker_remote_fetch_requests_total",
        "Reads of the remote store for consumers.",
        counts.requests,
    )
    yield counter(
        "sparklog_broker_remote_fetch_bytes_total",
        "Bytes of batches that were read from the remote store.",
        counts.bytes_read,
    )
    yield counter(
        "sparklog_broker_remote_fetch_errors_total",
        "Reads of the remote store that failed; the log names the object.",
        counts.errors,
    )
    yield counter(
        "sparklog_broker_remote_fetch_refused_total",
        "Reads that were not begun, because remote.log.reader.max.pending.tasks were under way.",
        counts.refused,
    )
