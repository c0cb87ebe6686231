"""``/metrics``: what all brokers and the controller in office count, for one scrape.

Brokers are asked side by side, and those that have not answered in ``PATIENCE_S`` are left out: a broker that
is paused costs no more. ``sparklog_broker_up`` says which ones answered. Who asks sees what it may see.
"""

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from sparklog.client.cluster_reports import report_of_broker
from sparklog.model.errors import SparklogError
from sparklog.model.metric import Metric, gauge
from sparklog.web.lag_metrics import lag_metrics
from sparklog.web.viewer import Viewer
from sparklog.web.views.overview import serving_brokers
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest, BrokerReportResponse
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest
from sparklog.wire.reported_metrics import metrics_of

PATIENCE_S: Final = 1.5
AT_ONCE: Final = 32
FRESH_MS: Final = 900
REQUEST: Final = BrokerReportRequest(wants_metrics=True)

UP: Final = "sparklog_broker_up"
UP_DOC: Final = "1 for a broker that has registered and answered this scrape, 0 for one that did not."


def cluster_metrics(viewer: Viewer) -> bytes:
    """In Prometheus's text format. ClusterUnavailable if neither broker nor controller answers; KafkaError if
    the user may not describe the cluster.
    """
    return viewer.shared.get("metrics", FRESH_MS, lambda: _text(viewer))


def _text(viewer: Viewer) -> bytes:
    # Here, so that only those pay for its library who want metrics.
    from sparklog.network.metrics_server import text_of

    report = viewer.ask_report(ClusterReportRequest(wants_metrics=True))
    answers = _ask_all(viewer, serving_brokers(report))
    up = [
        gauge(UP, UP_DOC, int(one.broker_id in answers), broker=str(one.broker_id)) for one in report.brokers
    ]
    of_brokers = [
        metric
        for broker, answer in sorted(answers.items())
        for metric in metrics_of(answer.metrics, broker=str(broker))
    ]
    lags = lag_metrics(viewer.history.latest)
    return text_of([*metrics_of(report.metrics), *up, *lags, *_together(of_brokers)])


def _ask_all(viewer: Viewer, brokers: Iterable[int]) -> dict[int, BrokerReportResponse]:
    """The answers of those that give one in time."""
    wanted = list(brokers)
    if not wanted:
        return {}

    def ask(broker: int) -> BrokerReportResponse:
        return report_of_broker(viewer.cluster, broker, REQUEST, timeout_ms=int(PATIENCE_S * 1_000))

    pool = ThreadPoolExecutor(min(AT_ONCE, len(wanted)), "page-metrics")
    asked: dict[int, Future[BrokerReportResponse]] = {one: pool.submit(ask, one) for one in wanted}
    done, _ = wait(asked.values(), PATIENCE_S)
    pool.shutdown(wait=False, cancel_futures=True)
    return {
        broker: answer.result()
        for broker, answer in asked.items()
        if answer in done and _is_answer(answer.exception())
    }


def _is_answer(error: BaseException | None) -> bool:
    """What a broker cannot help is no answer; anything else is a bug, which is raised."""
    return not isinstance(error, OSError | SparklogError)


def _together(metrics: Iterable[Metric]) -> list[Metric]:
    """Those of one name after each other, in the order in which names come first."""
    by_name: dict[str, list[Metric]] = {}
    for metric in metrics:
        by_name.setdefault(metric.name, []).append(metric)
    return [metric for several in by_name.values() for metric in several]
