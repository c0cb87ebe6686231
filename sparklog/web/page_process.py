"""The page of a driver, as a process of its own: a search over records never delays the controller.

The driver listens, and starts this process at the first connection (``python -m sparklog.web.page_process``).
It ends after ten minutes without a request, and with its driver; the driver starts the next one.
"""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Final

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.cluster import ClusterClient
from sparklog.client.security.connecting import connector_as, connector_of
from sparklog.model.settings.tls_settings import tls_settings_of_listener
from sparklog.model.settings.web_rows import PAGE
from sparklog.network.clock import SystemClock
from sparklog.network.dialing.connector import Connector
from sparklog.network.tls.from_settings import server_side
from sparklog.web.page_app import Viewers, build_app
from sparklog.web.page_logins import PageLogins
from sparklog.web.page_plan import PagePlan, decode_plan
from sparklog.web.page_settings import PageSettings
from sparklog.web.page_viewers import OneViewer, ViewersWhoLogIn
from sparklog.web.serving import PageServer
from sparklog.web.viewer import CLIENT_ID, RETRY_TIMEOUT_MS, Viewer

UNUSED_MAX_S: Final = 600.0
NICENESS: Final = 10
"""Where a broker has no processor left, a search takes a tenth of one: readers and writers go first."""

logger: Final = logging.getLogger(__name__)


def run(plan: PagePlan, driver: BinaryIO) -> None:
    """Serve until there was no request for ten minutes, or until ``driver``, a pipe from it, ends."""
    viewers, close = _viewers(plan)
    settings = PageSettings(
        host=plan.host, allowed_hosts=plan.allowed_hosts, shows_records=plan.shows_records
    )
    server = PageServer(
        build_app(viewers, settings),
        is_over=lambda unused_s: unused_s > UNUSED_MAX_S,
        tls=server_side(tls_settings_of_listener(plan.tls, PAGE)).context if plan.tls else None,
    )
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    threading.Thread(
        target=_stop_with_driver, args=(driver, server), name="driver-watch", daemon=True
    ).start()
    with socket.socket(fileno=plan.descriptor) as listening:
        server.serve(listening)
    close()


def _viewers(plan: PagePlan) -> tuple[Viewers, Callable[[], None]]:
    """Who answers requests, and what ends it."""
    if not plan.mechanisms:
        viewer = _viewer(plan, connector_of(plan.properties))
        viewer.watch()
        return OneViewer(viewer), viewer.close

    def make(mechanism: str, user: str, password: str) -> Viewer:
        return _viewer(plan, connector_as(plan.properties, mechanism, user, password))

    logins = PageLogins(make, plan.mechanisms, SystemClock())
    return ViewersWhoLogIn(logins), logins.close


def _viewer(plan: PagePlan, connector: Connector) -> Viewer:
    cluster = ClusterClient(
        plan.servers, client_id=CLIENT_ID, retry_timeout_ms=RETRY_TIMEOUT_MS, connector=connector
    )
    return Viewer(
        cluster,
        options=plan.options,
        connector=connector,
        find_controllers=lambda: [Endpoint(host, port) for host, port in plan.controllers],
    )


def _stop_with_driver(driver: BinaryIO, server: PageServer) -> None:
    while driver.read(1):
        pass
    server.stop()


def main() -> None:
    """Its standard output and error are a file of the driver's logs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's, which ends the pipe
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    os.nice(NICENESS)
    logger.info("the page begins, process %d", os.getpid())
    run(decode_plan(sys.stdin.buffer.readline()), sys.stdin.buffer)
    logger.info("the page ends")


if __name__ == "__main__":
    main()
