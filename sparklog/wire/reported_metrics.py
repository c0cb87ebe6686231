"""Metrics as reports carry them, and back."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Final, Literal, cast

from sparklog.model.metric import Metric
from sparklog.wire.messages.discovery.broker_report import ReportedLabel, ReportedMetric, ReportedSeries

SERIES_PER_ANSWER_MAX: Final = 20_000
KINDS: Final = ("gauge", "counter", "histogram")


def reported(metrics: Iterable[Metric]) -> list[ReportedMetric]:
    """``metrics`` of one name follow each other; so many that an answer may have."""
    found = []
    for name, series in groupby(islice(metrics, SERIES_PER_ANSWER_MAX), key=lambda one: one.name):
        first, *others = series
        found.append(
            ReportedMetric(
                name=name, kind=first.kind, doc=first.doc, series=[_series(one) for one in (first, *others)]
            )
        )
    return found


def _series(metric: Metric) -> ReportedSeries:
    return ReportedSeries(
        labels=[ReportedLabel(name=name, value=value) for name, value in metric.labels],
        value=metric.value,
        bounds=[bound for bound, _ in metric.buckets],
        counts=[count for _, count in metric.buckets],
    )


def metrics_of(families: Iterable[ReportedMetric], **labels: str) -> Iterator[Metric]:
    """Each series with these ``labels`` first. A kind that this release does not know is left out."""
    for family in families:
        if family.kind not in KINDS:
            continue
        kind = cast("Literal['gauge', 'counter', 'histogram']", family.kind)
        for series in family.series:
            named = (*labels.items(), *((label.name, label.value) for label in series.labels))
            buckets = tuple(zip(series.bounds, series.counts, strict=False))
            yield Metric(family.name, kind, family.doc, series.value, named, buckets)
