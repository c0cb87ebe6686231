"""How far a streaming query is, from its progress reports. PURE: the reports and the time are arguments.

Rows are counted from the reports, each once; Spark keeps the last hundred. The rate is that of the last
``RATE_WINDOW_S`` seconds. What is done is measured in offsets, from where the first report began to the ends
of the logs as of the last report: a query that keeps up is done all the time.
"""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog_datasource.monitoring.lag import ends_of_source
from sparklog_datasource.reads.offset_json import Offsets, initial_of_json, offsets_of_json

RATE_WINDOW_S: Final = 10.0

Report = Mapping[str, Any]
"""A progress report, by Spark's names."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is shown of a query."""

    rows: int
    rows_per_s: float
    lag: int | None
    """Offsets between what was read and the ends of the logs; None as long as nothing is known."""

    done: float | None
    """The part of the offsets that was read, 0 to 1; None as long as nothing is known."""

    def __str__(self) -> str:
        lag = "" if self.lag is None else f", {self.lag:,} behind"
        return f"{self.rows:,} rows, {self.rows_per_s:,.0f}/s{lag}"


@dataclass(slots=True)
class Reports:
    """What the reports of one query said so far."""

    rows: int = 0
    _last: tuple[int, str] | None = None
    """Number of the micro-batch and time of the last report that was counted."""

    _starts: dict[int, Offsets] = field(default_factory=dict)
    """For each source that is sparklog's, by its number among the sources: where its first report began."""

    _offsets: dict[int, tuple[Offsets, Offsets]] = field(default_factory=dict)
    """For each such source: what was read, and the ends, as of its last report."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)
    """The time of each look within the window, and the rows until then."""

    def on_reports(self, reports: Sequence[Report], now_s: float) -> None:
        """The reports that Spark keeps, the oldest first; those of an earlier look may be among them."""
        keys = [(int(report["batchId"]), str(report["timestamp"])) for report in reports]
        first = keys.index(self._last) + 1 if self._last in keys else 0
        for report in reports[first:]:
            self.rows += _rows_of(report)
            for number, source in enumerate(report["sources"]):
                self._note(number, source)
        if keys:
            self._last = keys[-1]
        self._seen.append((now_s, self.rows))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - RATE_WINDOW_S:
            self._seen.popleft()

    def figures(self) -> Figures:
        return Figures(self.rows, self._rate(), self._lag(), self._done())

    def _note(self, number: int, source: Mapping[str, Any]) -> None:
        found = ends_of_source(source)
        if found is None:
            return
        self._offsets[number] = found
        if number not in self._starts:
            self._starts[number] = _start_of(source)

    def _rate(self) -> float:
        if len(self._seen) < 2:
            return 0.0
        (since_s, rows_then), (now_s, rows) = self._seen[0], self._seen[-1]
        return (rows - rows_then) / (now_s - since_s) if now_s > since_s else 0.0

    def _lag(self) -> int | None:
        if not self._offsets:
            return None
        return sum(_distance(read, ends) for read, ends in self._offsets.values())

    def _done(self) -> float | None:
        lag = self._lag()
        if lag is None:
            return None
        done = sum(_distance(self._starts[number], read) for number, (read, _) in self._offsets.items())
        return done / (done + lag) if done + lag else 1.0


def _distance(starts: Offsets, ends: Offsets) -> int:
    """Offsets from the starts to the ends; a partition that has no start begins at 0."""
    return sum(max(end - starts.get(topic_partition, 0), 0) for topic_partition, end in ends.items())


def _rows_of(report: Report) -> int:
    """The rows of all sources; over Spark Connect a report has no sum of them."""
    rows = report["numInputRows"]
    return sum(source["numInputRows"] for source in report["sources"]) if rows is None else int(rows)


def _start_of(source: Mapping[str, Any]) -> Offsets:
    """Where a report's micro-batch began; the end of a query's first one carries it."""
    end = json.loads(source["endOffset"])
    initial = initial_of_json(end)
    if initial is not None:
        return initial
    start = json.loads(source["startOffset"] or "null")  # over Spark Connect none is the text null
    return offsets_of_json(end if start is None else start)
