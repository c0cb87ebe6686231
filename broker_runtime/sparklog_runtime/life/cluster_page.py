"""Whether this driver serves a page, where, and what the page's process gets to know of the cluster."""

import ipaddress
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sparklog.model.cluster_facts import SecurityProtocol, host_port
from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.web_rows import (
    WEB_ALLOWED_HOSTS,
    WEB_HOST,
    WEB_LISTENER,
    WEB_OPEN,
    WEB_PORT,
    WEB_RECORDS,
)
from sparklog.web.page_plan import PagePlan
from sparklog_runtime.driver_servers.driver_page import DriverPage
from sparklog_runtime.driver_servers.servers import Controller
from sparklog_runtime.supervision.supervisor import Supervisor

Say = Callable[[str], None]
Parts = Callable[[], tuple[Controller | None, Supervisor | None]]

NONE: Final = -1


@dataclass(slots=True)
class ClusterPage:
    """``open`` takes the port, ``start`` serves, ``stop`` ends it; none does anything where there is no page.

    ``is_chosen``: the start wants a page though no setting names a port.
    """

    config: BrokerConfig
    root: Path
    run: str
    log: Path
    is_chosen: bool = False
    is_local: bool = True
    _page: DriverPage | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """ConfigError for settings ``web.*`` that would show the page to strangers."""
        host = self.config.get_str(WEB_HOST)
        if self._port() == NONE or _is_loopback(host) or self.config.get_bool(WEB_OPEN):
            return
        raise ConfigError(
            f"{WEB_HOST}={host}: everybody who reaches it would see the page; leave it at 127.0.0.1, or set "
            f"{WEB_OPEN}=true"
        )

    @property
    def port(self) -> int | None:
        return None if self._page is None else self._page.port

    @property
    def url(self) -> str | None:
        return None if self._page is None else self._page.url

    def open(self, say: Say) -> None:
        """A page that cannot be is no reason to be without a cluster: then ``say`` says why."""
        port = self._port()
        if port == NONE:
            return
        listener = self._listener()
        protocol = self.config.listeners.advertised[listener].security_protocol
        if protocol is not SecurityProtocol.PLAINTEXT:
            say(
                f"no page: clients of listener {listener} prove who they are, and the page is nobody; "
                "on one's own machine: sparklog page --bootstrap-server HOST:PORT --command-config FILE"
            )
            return
        host = self.config.get_str(WEB_HOST)
        try:
            self._page = DriverPage.open(host, port, run=self.run, log=self.log)
        except OSError as error:
            say(
                f"warning: no page: {WEB_PORT}={port} cannot be opened at {host_port(host, port)}: "
                f"{error.strerror}; give another port, or {WEB_PORT}=0 for any free one"
            )

    def start(self, parts: Parts, controller_host: str) -> None:
        """``parts``: the driver's controller and supervisor now."""
        if self._page is not None:
            self._page.start(lambda descriptor: self._plan(descriptor, parts, controller_host))

    def stop(self) -> None:
        page, self._page = self._page, None
        if page is not None:
            page.stop()

    def _plan(self, descriptor: int, parts: Parts, controller_host: str) -> PagePlan:
        controller, supervisor = parts()
        listener = self._listener()
        processes = [] if supervisor is None else supervisor.processes()
        servers = [process.listeners[listener] for process in processes if listener in process.listeners]
        if not servers and controller is not None:
            servers = controller.registered_brokers()
        joined = ",".join(servers)
        named = f"--root {shlex.quote(str(self.root))}" if self.is_local else f"--bootstrap-server {joined}"
        return PagePlan(
            descriptor=descriptor,
            servers=joined,
            options=named,
            host=self.config.get_str(WEB_HOST),
            allowed_hosts=tuple(self.config.get_list(WEB_ALLOWED_HOSTS)),
            shows_records=self.config.get_bool(WEB_RECORDS),
            controllers=() if controller is None else ((controller_host, controller.port),),
        )

    def _port(self) -> int:
        given = self.config.get_int(WEB_PORT)
        return 0 if given == NONE and self.is_chosen and WEB_PORT not in self.config.given else given

    def _listener(self) -> str:
        listeners = self.config.listeners
        chosen = self.config.get_str(WEB_LISTENER) or listeners.first
        if chosen not in listeners.advertised:
            known = ", ".join(listeners.advertised)
            raise ConfigError(f"{WEB_LISTENER}={chosen} is no listener of clients; there are {known}")
        return chosen


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
