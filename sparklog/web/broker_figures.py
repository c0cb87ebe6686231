"""The figures that brokers keep of themselves, followed: an hour at 5 s, from before the page was opened.

Who looks at a broker gets its own samples. Those of the cluster are sums over brokers (of p99 the largest),
of steps of ten seconds, because brokers take their samples at different moments.
"""

import math
import threading
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sparklog.client.cluster import ClusterClient
from sparklog.client.cluster_reports import report_of_broker
from sparklog.web.disks import ANSWER_TIMEOUT_MS
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest, BrokerReportResponse

SAMPLES_MAX: Final = 720
STEP_MS: Final = 10_000
STEPS_MAX: Final = 360

SUMMED: Final = (
    "produced_bytes_per_s",
    "fetched_bytes_per_s",
    "produced_records_per_s",
    "fetched_records_per_s",
)
WORST: Final = ("produce_p99_ms",)

Sample = tuple[int, Sequence[float]]
"""Its time, and the value of each figure."""
Plotted = dict[str, object]
"""``times_ms``, ascending, and by each figure's name its values at these; null where it had none."""


class BrokerFigures:
    """Safe to use from any thread."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._names: dict[int, tuple[str, ...]] = {}
        self._samples: dict[int, deque[Sample]] = {}

    def follow(self, broker_id: int) -> BrokerReportResponse:
        """Ask a broker for the samples that are new, and what else it says of its process. OSError and
        KafkaError as ``report_of_broker``.
        """
        with self._lock:
            kept = self._samples.get(broker_id)
            last_ms = kept[-1][0] if kept else -1
        request = BrokerReportRequest(samples_after_ms=last_ms, samples_max=SAMPLES_MAX)
        report = report_of_broker(self._cluster, broker_id, request, timeout_ms=ANSWER_TIMEOUT_MS)
        with self._lock:
            self._add(broker_id, report)
        return report

    def _add(self, broker_id: int, report: BrokerReportResponse) -> None:
        if not report.samples_ms:
            return
        names = tuple(figure.name for figure in report.figures)
        if self._names.get(broker_id) != names:  # another release
            self._names[broker_id], self._samples[broker_id] = names, deque(maxlen=SAMPLES_MAX)
        kept = self._samples[broker_id]
        for time_ms, *values in zip(report.samples_ms, *(one.values for one in report.figures), strict=True):
            if not kept or time_ms > kept[-1][0]:  # another thread may have asked meanwhile
                kept.append((time_ms, array("d", values)))

    def of_broker(self, broker_id: int, after_ms: int) -> Plotted:
        """Its samples after a time, exclusive."""
        with self._lock:
            names = self._names.get(broker_id, ())
            samples = [one for one in self._samples.get(broker_id, ()) if one[0] > after_ms]
        columns = {name: [_known(values[place]) for _, values in samples] for place, name in enumerate(names)}
        return {"times_ms": [time_ms for time_ms, _ in samples], **columns}

    def of_cluster(self, brokers: Iterable[int]) -> Plotted:
        """The last hour of these brokers together. The newest step is one that all have left, or that those
        which answer have: a broker that is silent holds up nobody.
        """
        with self._lock:
            known = {
                one: (self._names[one], list(self._samples[one])) for one in brokers if self._samples.get(one)
            }
        by_broker = [_steps(names, samples) for names, samples in known.values()]
        ends = [samples[-1][0] // STEP_MS for _, samples in known.values()]
        newest = max(ends, default=0)
        end = min((one for one in ends if one >= newest - 1), default=0)
        steps = sorted({step for broker in by_broker for step in broker if step < end})[-STEPS_MAX:]
        plotted: Plotted = {"times_ms": [(step + 1) * STEP_MS for step in steps]}
        for name in SUMMED:
            plotted[name] = [_sum(broker.get(step, {}).get(name) for broker in by_broker) for step in steps]
        for name in WORST:
            plotted[name] = [_worst(broker.get(step, {}).get(name) for broker in by_broker) for step in steps]
        return plotted


def _steps(names: Sequence[str], samples: Sequence[Sample]) -> dict[int, Mapping[str, float]]:
    """The mean of each step's samples, and the worst p99."""
    in_steps: dict[int, list[Sequence[float]]] = {}
    for time_ms, values in samples:
        in_steps.setdefault(time_ms // STEP_MS, []).append(values)
    places = {name: names.index(name) for name in (*SUMMED, *WORST) if name in names}
    found: dict[int, Mapping[str, float]] = {}
    for step, several in in_steps.items():
        columns = {name: [values[place] for values in several] for name, place in places.items()}
        found[step] = {name: _of_step(column, is_worst=name in WORST) for name, column in columns.items()}
    return found


def _of_step(values: Sequence[float], *, is_worst: bool) -> float:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return math.nan
    return max(known) if is_worst else sum(known) / len(known)


def _sum(values: Iterable[float | None]) -> float | None:
    known = _finite(values)
    return sum(known) if known else None


def _worst(values: Iterable[float | None]) -> float | None:
    return max(_finite(values), default=None)


def _finite(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
