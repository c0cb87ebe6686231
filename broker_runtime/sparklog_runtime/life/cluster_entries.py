"""Who stands in ``cluster.json``: our own candidate, the controller in office if that is another, brokers."""

import os
from collections.abc import Sequence

from sparklog_runtime.driver_servers.servers import Controller
from sparklog_runtime.life.cluster_file import BrokerEntry, ControllerEntry
from sparklog_runtime.life.cluster_page import ClusterPage
from sparklog_runtime.supervision.slots import BrokerProcess


def controller_entries(
    controller: Controller, host: str, page: ClusterPage, *, is_alone: bool
) -> tuple[ControllerEntry, ...]:
    """``host`` is this driver's; ``is_alone``: there can be no candidate of another application."""
    own = ControllerEntry(
        pid=os.getpid(),
        host=host,
        port=controller.port,
        active=controller.is_active,
        metrics_port=controller.metrics_port,
        web_port=page.port,
        web_url=page.url,
    )
    if own.active or is_alone:
        return (own,)
    elected = controller.elected()
    if elected is None or (elected.pid, elected.port) == (own.pid, own.port):
        return (own,)
    return (own, ControllerEntry(elected.pid, elected.host, elected.port, True))


def broker_entries(processes: Sequence[BrokerProcess]) -> tuple[BrokerEntry, ...]:
    return tuple(
        BrokerEntry(
            id=process.broker_id,
            host=process.host,
            port=process.port,
            pid=process.pid,
            log_dirs=process.log_dirs,
            metrics_port=process.metrics_port,
            listeners=process.listeners,
        )
        for process in processes
    )
