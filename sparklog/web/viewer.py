"""What one user of the page sees: a client of the cluster, with what is kept of its answers.

People look when no broker answers. Then the controller is asked at its own listener: the addresses are those
of the last report, or of ``cluster.json``.
"""

import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.cluster import ClusterClient
from sparklog.client.cluster_reports import report_of_brokers, report_of_controller
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.group.lag_look import LagLook, look_at_groups
from sparklog.client.metadata.cluster_metadata import ClusterMetadata
from sparklog.model.errors import KafkaError, SparklogError
from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector
from sparklog.web.broker_figures import BrokerFigures
from sparklog.web.event_tail import EventTail
from sparklog.web.lags import LagHistory
from sparklog.web.rates import WriteRates, look_at_ends
from sparklog.web.shared_answers import SharedAnswers
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse

logger: Final = logging.getLogger(__name__)

RETRY_TIMEOUT_MS: Final = 5_000
REPORT_TIMEOUT_MS: Final = 3_000
LAGS_MS: Final = 5_000
LOOK_EVERY_S: Final = 10.0
LOOKS_TO_LAGS: Final = 3
FRESH_MS: Final = 900
SLOW_MS: Final = 5_000
"""The age up to which answers are shared that cost each broker something."""
CLIENT_ID: Final = "sparklog-page"

FindControllers = Callable[[], Sequence[Endpoint]]
"""Where controllers may be, besides those of the last report."""


class Viewer:
    """Safe to use from any thread; ``close`` ends its connections."""

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        options: str,
        connector: Connector = IN_THE_CLEAR,
        find_controllers: FindControllers = tuple,
    ) -> None:
        """``options`` name the cluster in commands that the page shows."""
        self.cluster: Final = cluster
        self.options: Final = options
        self.shared: Final = SharedAnswers(cluster.clock)
        self._connector = connector
        self._find_controllers = find_controllers
        self._controllers: list[Endpoint] = []
        self._events = EventTail()
        self.history: Final = LagHistory()
        self.rates: Final = WriteRates()
        self.figures: Final = BrokerFigures(cluster)
        self._closed = threading.Event()

    def watch(self) -> None:
        """Look at what is written, and every half minute at the lag of groups, on a thread of its own."""
        threading.Thread(target=self._watch, name="page-lags", daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self.cluster.close()

    def lags(self) -> LagLook:
        """All groups with their lag, as they were some seconds ago at most."""
        return self.shared.get("lags", LAGS_MS, self._look_at_groups)

    def report(self) -> ClusterReportResponse:
        """The controller's report, with events that are not shown yet.

        ClusterUnavailable if nobody answers; KafkaError if the cluster gives no reports, or not to this user.
        """
        return self.shared.get("report", FRESH_MS, self._new_report)

    def events(self) -> EventTail:
        """The newest events, all that the report's giver keeps."""
        self.shared.get("events", FRESH_MS, lambda: self._events.follow(self.ask_report))
        return self._events

    def metadata(self) -> ClusterMetadata:
        """All topics; for a moment all who ask get the same."""
        return self.shared.get("metadata", FRESH_MS, self.cluster.metadata)

    def _watch(self) -> None:
        for number in itertools.count():
            try:
                self.rates.add(self.cluster.clock.wall_ms(), look_at_ends(self.cluster, self.metadata()))
                if number % LOOKS_TO_LAGS == 0:
                    self.lags()
            except (OSError, SparklogError) as error:
                logger.info("no look at records and groups: %s", error)
            if self._closed.wait(LOOK_EVERY_S):
                return

    def _look_at_groups(self) -> LagLook:
        look = look_at_groups(self.cluster)
        self.history.add(look)
        return look

    def _new_report(self) -> ClusterReportResponse:
        return self.ask_report(ClusterReportRequest())

    def ask_report(self, request: ClusterReportRequest) -> ClusterReportResponse:
        """An answer of its own for ``request``; raises as ``report``."""
        try:
            report = report_of_brokers(self.cluster, request, timeout_ms=REPORT_TIMEOUT_MS)
        except ClusterUnavailable as error:
            found = self._ask_controllers(request)
            if found is None:
                raise error
            report = found
        self._controllers = [Endpoint(one.host, one.port) for one in report.controllers]
        return report

    def _ask_controllers(self, request: ClusterReportRequest) -> ClusterReportResponse | None:
        for endpoint in dict.fromkeys([*self._controllers, *self._find_controllers()]):
            try:
                return report_of_controller(self._connector, endpoint, request, client_id=CLIENT_ID)
            except (OSError, KafkaError):
                continue  # a standby, or one that ended: the next one may be in office
        return None
