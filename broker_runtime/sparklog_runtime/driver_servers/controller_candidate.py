"""The driver's controller candidate: a ``ControllerServer`` and the ZooKeeper session that it uses.

This module imports the whole controller, which most commands do not need: ``servers`` imports it when a start
has launched what takes longer.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sparklog.controller.broker_wishes import Known, read_wishes
from sparklog.controller.controller_server import ControllerServer
from sparklog.core.controller.events.cluster_event import NumberedEvent
from sparklog.core.controller.state.applications import HostedBroker
from sparklog.core.controller.state.wishes import WishedBroker
from sparklog.core.controller.state.znodes import (
    BROKER_IDS,
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    broker_path,
    decode_broker,
    decode_cluster_id,
    decode_controller,
)
from sparklog.model.errors import SparklogError
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch, BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import Check, ConnectionLost, Delete, MultiFailed
from sparklog.network.clock import SystemClock
from sparklog.zookeeper.access_check import check_access
from sparklog.zookeeper.configured_session import new_session
from sparklog_runtime.driver_servers.elected_controller import ElectedController
from sparklog_runtime.stop.child_processes import is_alive

logger: Final = logging.getLogger(__name__)


class ControllerCandidate:
    """In the race for ``/controller`` from construction to ``stop``; see ``servers.Controller``."""

    def __init__(
        self,
        connect_string: str,
        host: str,
        settings: Mapping[str, str],
        application: str,
        *,
        is_alone: bool,
        web_url: str,
    ) -> None:
        """``is_alone``: no other process on this machine can be of this application now. Then the office of
        a dead predecessor is freed at once, instead of when its session expires.
        """
        config = BrokerConfig.parse(settings)
        self._zookeeper = new_session(
            connect_string, config.zookeeper, config.get_int("zookeeper.session.timeout.ms")
        )
        self._zookeeper.start(config.get_int("zookeeper.connection.timeout.ms"))
        try:
            check_access(self._zookeeper)
            self._server = ControllerServer(
                zookeeper=self._zookeeper,
                host=host,
                port=config.get_int("controller.port"),
                cluster_config=config,
                clock=SystemClock(),
                pid=os.getpid(),
                application=application,
                web_url=web_url,
            )
            if is_alone:
                self._put_predecessor_aside(application)
            self._server.start()
        except BaseException:
            self._zookeeper.close()
            raise

    def _put_predecessor_aside(self, application: str) -> None:
        """Delete the ``/controller`` node of a killed controller of this application.

        The check of the controller epoch makes it safe: if another controller was elected since we read the
        node, the multi-op fails; the old one can write nothing once the next has raised the epoch.
        """
        epoch = self._zookeeper.exists(CONTROLLER_EPOCH)
        elected = self.elected()
        if epoch is None or elected is None or elected.application != application or is_alive(elected.pid):
            return
        try:
            self._zookeeper.multi([Check(CONTROLLER_EPOCH, epoch.version), Delete(CONTROLLER)])
        except (MultiFailed, ConnectionLost) as refused:
            logger.info("left %s to the end of its session: %s", CONTROLLER, refused)
            return
        logger.info("deleted %s of the run before: its process %d has ended", CONTROLLER, elected.pid)

    @property
    def port(self) -> int:
        return int(self._server.port)

    @property
    def metrics_port(self) -> int | None:
        return self._server.metrics_port

    @property
    def is_active(self) -> bool:
        return bool(self._server.is_active)

    @property
    def failure(self) -> str | None:
        return self._server.failure

    @property
    def cluster_id(self) -> str:
        node = self._zookeeper.get(CLUSTER_ID)
        if node is None:
            raise SparklogError(f"ZooKeeper has no {CLUSTER_ID}: no controller has prepared the cluster yet")
        return decode_cluster_id(node.data)

    def elected(self) -> ElectedController | None:
        node = self._zookeeper.get(CONTROLLER)
        if node is None:
            return None
        found = decode_controller(node.data)
        return ElectedController(
            pid=found.pid,
            host=found.host,
            port=found.port,
            application=found.application,
            topic_defaults=found.topic_defaults,
        )

    def registered_brokers(self) -> list[str]:
        found = []
        for broker_id in sorted(BrokerId(int(name)) for name in self._zookeeper.children(BROKER_IDS)):
            node = self._zookeeper.get(broker_path(broker_id))
            if node is not None:
                broker = decode_broker(broker_id, node.data, NO_BROKER_EPOCH)
                found.append(str(next(iter(broker.endpoints.values()))))
        return found

    def broker_died(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, cause: str) -> None:
        self._server.broker_died(broker_id, broker_epoch, cause)

    def is_registered(self, broker_id: BrokerId, broker_epoch: BrokerEpoch) -> bool:
        stat = self._zookeeper.exists(broker_path(broker_id))
        return stat is not None and stat.czxid == broker_epoch

    def events(self) -> tuple[NumberedEvent, ...]:
        return self._server.events

    def wishes(self, brokers: Sequence[int]) -> dict[int, WishedBroker]:
        return _wished(read_wishes(self._zookeeper, map(BrokerId, brokers)))

    def follow_wishes(
        self, brokers: Sequence[int], obey: Callable[[Mapping[int, WishedBroker]], None]
    ) -> None:
        self._server.follow_wishes(tuple(map(BrokerId, brokers)), lambda known: obey(_wished(known)))

    def publish(self, brokers: Sequence[HostedBroker], spark_warnings: Sequence[str]) -> None:
        self._server.publish(brokers, spark_warnings)

    def stop(self) -> None:
        self._server.stop()
        self._zookeeper.close()


def _wished(known: Known) -> dict[int, WishedBroker]:
    return {int(broker): WishedBroker(one.wish, one.starts) for broker, one in known.items()}
