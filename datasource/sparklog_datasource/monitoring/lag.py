"""The lag of a streaming query: how many offsets its sources have left to the ends of their logs.

Spark's Kafka connector reports ``minOffsetsBehindLatest``, ``maxOffsetsBehindLatest`` and
``avgOffsetsBehindLatest`` as metrics of a source. Spark takes no metrics from a Python source, but each
progress report has the source's offset and the log's ends, from which the same three follow. Their values are
texts, as the connector's are. There are none until a micro-batch has run.

A source of sparklog is known by the note in its offsets, so sources of other kinds are passed over.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from sparklog_datasource.reads.offset_json import NOTE_KEY, Offsets, offsets_of_json

MIN: Final = "minOffsetsBehindLatest"
MAX: Final = "maxOffsetsBehindLatest"
AVERAGE: Final = "avgOffsetsBehindLatest"

Lag = dict[str, str]
"""The three by their names; empty if nothing is known yet."""

logger: Final = logging.getLogger(__name__)


def lag_of_query(query: Any) -> Lag:
    """The lag of a ``StreamingQuery`` as of its last progress report."""
    progress = query.lastProgress
    return {} if progress is None else lag_of_sources(progress["sources"])


def lag_of_sources(sources: Sequence[Mapping[str, Any]]) -> Lag:
    """The lag over the partitions of all sources that are sparklog's."""
    lags = [offsets for source in sources for offsets in _lags(source)]
    if not lags:
        return {}
    average = sum(lags) / len(lags)
    return {MIN: str(min(lags)), MAX: str(max(lags)), AVERAGE: str(average)}


def ends_of_source(source: Mapping[str, Any]) -> tuple[Offsets, Offsets] | None:
    """The offsets that a source has read, and the logs' ends, for partitions that have both in a report.

    None if it is not sparklog's, or nothing was read yet.
    """
    read, latest = _object(source["endOffset"]), _object(source["latestOffset"])
    if read is None or latest is None or NOTE_KEY not in read:
        return None
    offsets, ends = offsets_of_json(read), offsets_of_json(latest)
    both = offsets.keys() & ends.keys()
    return {one: offsets[one] for one in both}, {one: ends[one] for one in both}


def _lags(source: Mapping[str, Any]) -> Iterator[int]:
    """For each partition that was read: how many offsets are left."""
    found = ends_of_source(source)
    if found is not None:
        read, ends = found
        yield from (max(ends[topic_partition] - offset, 0) for topic_partition, offset in read.items())


def _object(text: str | None) -> dict[str, Any] | None:
    """An offset of a progress report; None if there is none, or if it is of another kind of source."""
    if text is None or not text.lstrip().startswith("{"):
        return None
    return dict(json.loads(text))


class LagListener(StreamingQueryListener):  # type: ignore[misc]  # Spark's has no types
    """Calls ``report`` with a query's id and its lag after each progress report that has one.

    ``spark.streams.addListener`` takes it. It listens to all queries of the session. An error of ``report``
    is logged, because Spark would pass it over in silence.
    """

    def __init__(self, report: Callable[[str, Lag], None]) -> None:
        self._report = report

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Nothing: there is no lag before the first micro-batch."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        lag = lag_of_sources(event.progress.sources)
        if not lag:
            return
        try:
            self._report(str(event.progress.id), lag)
        except Exception:
            logger.exception("the lag of query %s could not be reported: %s", event.progress.id, lag)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Nothing: the last progress report stands."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Nothing: the last progress report stands."""
