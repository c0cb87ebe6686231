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
from typing import BinaryIO, Final

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.cluster import ClusterClient
from sparklog.client.security.connecting import connector_of
from sparklog.web.page_app import build_app
from sparklog.web.page_plan import PagePlan, decode_plan
from sparklog.web.page_settings import PageSettings
from sparklog.web.serving import PageServer
from sparklog.web.viewer import CLIENT_ID, RETRY_TIMEOUT_MS, Viewer

UNUSED_MAX_S: Final = 600.0

logger: Final = logging.getLogger(__name__)


def run(plan: PagePlan, driver: BinaryIO) -> None:
    """Serve until there was no request for ten minutes, or until ``driver``, a pipe from it, ends."""
    connector = connector_of(plan.properties)
    cluster = ClusterClient(
        plan.servers, client_id=CLIENT_ID, retry_timeout_ms=RETRY_TIMEOUT_MS, connector=connector
    )
    viewer = Viewer(
        cluster,
        options=plan.options,
        connector=connector,
        find_controllers=lambda: [Endpoint(host, port) for host, port in plan.controllers],
    )
    settings = PageSettings(
        host=plan.host, allowed_hosts=plan.allowed_hosts, shows_records=plan.shows_records
    )
    server = PageServer(
        build_app(lambda _: viewer, settings), is_over=lambda unused_s: unused_s > UNUSED_MAX_S
    )
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    threading.Thread(
        target=_stop_with_driver, args=(driver, server), name="driver-watch", daemon=True
    ).start()
    viewer.watch()
    with socket.socket(fileno=plan.descriptor) as listening:
        server.serve(listening)
    viewer.close()


def _stop_with_driver(driver: BinaryIO, server: PageServer) -> None:
    while driver.read(1):
        pass
    server.stop()


def main() -> None:
    """Its standard output and error are a file of the driver's logs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's, which ends the pipe
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logger.info("the page begins, process %d", os.getpid())
    run(decode_plan(sys.stdin.buffer.readline()), sys.stdin.buffer)
    logger.info("the page ends")


if __name__ == "__main__":
    main()
