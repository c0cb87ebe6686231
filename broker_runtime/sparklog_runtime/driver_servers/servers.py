"""The servers of a cluster that run on the driver's host: ZooKeeper and the controller candidate.

Their code is imported inside functions, for the sake of start time: the controller imports much that other
commands do not need, and its import overlaps with the start of Spark's JVM.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from sparklog.core.controller.events.cluster_event import NumberedEvent
from sparklog.core.controller.state.applications import HostedBroker
from sparklog.core.controller.state.wishes import WishedBroker
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.settings.zookeeper_settings import ZooKeeperSettings
from sparklog_runtime.driver_servers.elected_controller import ElectedController

_PRELOADED: Final = (
    "sparklog_runtime.driver_servers.controller_candidate",
    "sparklog.network.dialing.connection",
    "sparklog.wire.messages.discovery.metadata",
)


class ZooKeeperServer(Protocol):
    """The embedded ZooKeeper (``sparklog.zookeeper.embedded.EmbeddedZooKeeper``)."""

    @property
    def pid(self) -> int | None: ...
    @property
    def exit_status(self) -> int | None:
        """How it ended, as ``subprocess`` has it; None while it runs."""
        ...

    @property
    def connect_string(self) -> str: ...
    def start(self) -> object:
        """Start it, on the port that it had before if it ran before; returns when it answers."""
        ...

    def stop(self) -> None: ...


class Controller(Protocol):
    """A controller candidate with its ZooKeeper session."""

    @property
    def port(self) -> int: ...
    @property
    def metrics_port(self) -> int | None:
        """Where it serves metrics, if it does."""
        ...

    @property
    def is_active(self) -> bool: ...
    @property
    def failure(self) -> str | None:
        """Why it cannot take charge, if it tried and could not."""
        ...

    @property
    def cluster_id(self) -> str: ...
    def elected(self) -> ElectedController | None:
        """The active controller, of any application; None while no candidate is elected."""
        ...

    def registered_brokers(self) -> list[str]:
        """``host:port`` of every live broker of the cluster."""
        ...

    def broker_died(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, cause: str) -> None:
        """The process of this incarnation has ended: fail over now, before its ZooKeeper session expires."""
        ...

    def is_registered(self, broker_id: BrokerId, broker_epoch: BrokerEpoch) -> bool:
        """Whether ZooKeeper has the registration of this incarnation; ZooKeeperError if it is away."""
        ...

    def events(self) -> tuple[NumberedEvent, ...]:
        """The newest events of its term, or of its last one, oldest first; none if it never was in office."""
        ...

    def wishes(self, brokers: Sequence[int]) -> Mapping[int, WishedBroker]:
        """What is wished of these brokers now, as far as they have registered before."""
        ...

    def follow_wishes(
        self, brokers: Sequence[int], obey: Callable[[Mapping[int, WishedBroker]], None]
    ) -> None:
        """Call ``obey``, on another thread, with what is wished of them, and again with what has changed."""
        ...

    def publish(self, brokers: Sequence[HostedBroker], spark_warnings: Sequence[str]) -> None:
        """Tell the cluster how the brokers of this application are, and what its Spark settings lack. Comes
        back at once.
        """
        ...

    def stop(self) -> None: ...


def embedded_zookeeper(settings: ZooKeeperSettings, data_dir: Path, port: int) -> ZooKeeperServer:
    """An embedded ZooKeeper that is not started yet; port 0 takes a free one. ConfigError if it is to speak
    TLS, and cannot.
    """
    from sparklog.zookeeper.embedded import EmbeddedZooKeeper
    from sparklog.zookeeper.embedded_tls import EmbeddedTls

    return EmbeddedZooKeeper(
        data_dir, port=port, tls=None if settings.tls is None else EmbeddedTls(settings.tls)
    )


def start_controller(
    *,
    connect_string: str,
    host: str,
    settings: Mapping[str, str],
    application: str,
    is_alone: bool,
    web_url: str,
) -> Controller:
    """A controller candidate that has joined the race; ``is_alone`` as ``ControllerCandidate`` has it.

    ``web_url``: where this driver serves a page; empty if it does not.
    """
    from sparklog_runtime.driver_servers.controller_candidate import ControllerCandidate

    return ControllerCandidate(
        connect_string, host, settings, application, is_alone=is_alone, web_url=web_url
    )


def preload() -> None:
    """Import what a start needs later; called while other processes start."""
    for name in _PRELOADED:
        importlib.import_module(name)
