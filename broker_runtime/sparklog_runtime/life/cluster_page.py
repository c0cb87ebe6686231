"""Whether this driver serves a page, where, and what the page's process gets to know of the cluster."""

import ipaddress
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sparklog.core.security.login.plain import PLAIN
from sparklog.model.cluster_facts import SecurityProtocol, host_port
from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.kafka_names import listener_prefix
from sparklog.model.settings.tls_settings import tls_settings_of_listener
from sparklog.model.settings.web_rows import (
    PAGE,
    WEB_ALLOWED_HOSTS,
    WEB_HOST,
    WEB_LISTENER,
    WEB_OPEN,
    WEB_PORT,
    WEB_RECORDS,
    tls_of_page,
)
from sparklog.web.page_plan import PagePlan
from sparklog_runtime.driver_servers.driver_page import DriverPage
from sparklog_runtime.driver_servers.servers import Controller
from sparklog_runtime.supervision.supervisor import Supervisor

Say = Callable[[str], None]
Parts = Callable[[], tuple[Controller | None, Supervisor | None]]

NONE: Final = -1
TRUST: Final = (
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.endpoint.identification.algorithm",
)
"""The settings by which brokers know each other, and the page knows them."""


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
        if self._port() == NONE:
            return
        tls = self._tls()
        if tls:
            # start time: it imports heavy libraries, which a page in the clear has no need of
            from sparklog.network.tls.from_settings import server_side

            server_side(tls_settings_of_listener(tls, PAGE))
        protocol = self._protocol()
        if _is_loopback(host) or self.config.get_bool(WEB_OPEN):
            return
        if not protocol.has_login:
            raise ConfigError(
                f"{WEB_HOST}={host}: everybody who reaches it would see the page; leave it at 127.0.0.1, "
                f"name a listener with logins in {WEB_LISTENER}, or set {WEB_OPEN}=true"
            )
        if not tls:
            raise ConfigError(
                f"{WEB_HOST}={host}: passwords would cross the network in the clear; set "
                f"web.ssl.keystore.location, leave it at 127.0.0.1, or set {WEB_OPEN}=true"
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
        if self._protocol() is SecurityProtocol.SSL:
            say(
                f"no page: clients of listener {listener} are known by certificates, and the page has none; "
                "on one's own machine: sparklog page --bootstrap-server HOST:PORT --command-config FILE"
            )
            return
        host = self.config.get_str(WEB_HOST)
        try:
            self._page = DriverPage.open(host, port, run=self.run, log=self.log, has_tls=bool(self._tls()))
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
            properties=self._properties(listener),
            mechanisms=self._mechanisms(listener),
            tls=self._tls(),
        )

    def _tls(self) -> dict[str, str]:
        given = {name: str(value) for name, value in self.config.given.items()}
        return tls_of_page(given)

    def _protocol(self) -> SecurityProtocol:
        return self.config.listeners.advertised[self._listener()].security_protocol

    def _properties(self, listener: str) -> dict[str, str]:
        """How the page's process dials: it trusts whom brokers trust."""
        protocol = self._protocol()
        if protocol is SecurityProtocol.PLAINTEXT:
            return {}
        given, prefix = self.config.given, listener_prefix(listener)
        trusted = {
            name: str(text) for name in TRUST if (text := given.get(f"{prefix}{name}", given.get(name)))
        }
        return {"security.protocol": protocol.name, **trusted}

    def _mechanisms(self, listener: str) -> tuple[str, ...]:
        """Those of the listener, SCRAM first; none where nobody logs in."""
        if not self._protocol().has_login:
            return ()
        return tuple(sorted(self.config.login(listener).mechanisms, key=lambda one: one == PLAIN))

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
