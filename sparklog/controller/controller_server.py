"""A controller candidate as a server: its listener, its event loop, its way to ZooKeeper and to brokers.

One of them runs on the driver of each application that hosts brokers. All of them race for ``/controller``;
the winner decides, the others answer NOT_CONTROLLER and wait. The listener speaks the protocol of that of the
brokers. Threads: the event loop (which alone decides), the listener's reactor, a timer, and while active one
sender per live broker.
"""

import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from sparklog.controller.broker_channels import BrokerChannels, ChannelPorts
from sparklog.controller.broker_wishes import Known, follow_wishes
from sparklog.controller.candidate import Candidate
from sparklog.controller.channel_connections import ChannelConnections
from sparklog.controller.event_loop import EventLoop
from sparklog.controller.handlers import ControllerHandlers
from sparklog.controller.metrics import controller_metrics
from sparklog.controller.notification_purge import NotificationPurge
from sparklog.controller.ports import AnswerCommand
from sparklog.controller.reports import report_of
from sparklog.core.controller.actions import PushAnswer
from sparklog.core.controller.commands.controller_command import Command
from sparklog.core.controller.events.cluster_event import NumberedEvent
from sparklog.core.controller.state.applications import HostedBroker
from sparklog.core.controller.state.znodes import (
    CONFIG_CHANGES,
    CONTROLLER,
    ControllerNode,
    decode_controller,
)
from sparklog.core.security.rule_nodes import CHANGES
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.network.acceptor import Listener
from sparklog.network.access.access_control import AccessControl, access_control_of
from sparklog.network.access.audit_file import open_audit
from sparklog.network.listener_tls import (
    cluster_logins,
    inter_broker_connector,
    inter_broker_server,
    own_principal,
    tls_of_metrics,
    watch_expiry,
)
from sparklog.network.loop_threads import LoopThreads, no_calls
from sparklog.network.reactor import Reactor
from sparklog.network.timer import ThreadTimer
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse
from sparklog.zookeeper.broker_registration import read_or_create_cluster_id
from sparklog.zookeeper.entity_configs import EntityConfigs
from sparklog.zookeeper.rule_watch import RuleWatch
from sparklog.zookeeper.user_nodes import UsersReader, login_secret

logger: Final = logging.getLogger(__name__)

STOP_TIMEOUT_MS: Final = 5_000
EVENTS_TIMEOUT_MS: Final = 30_000
USERS_TIMEOUT_MS: Final = 1_000
"""Longest wait for the loop that reads users, which may wait for an absent ZooKeeper itself."""

LISTENER: Final = "CONTROLLER"
HANDLERS: Final = 1
"""Decoding is all that handlers do here."""

TOPIC_DEFAULTS: Final = ("default.replication.factor", "min.insync.replicas")
"""Settings of which only those of the controller in office count: its node tells them."""


class ControllerServer:
    """``start`` returns when the listener is up and the first run for office is through.

    ``web_url``: where the driver of this candidate serves a page; empty if it does not.

    ``zookeeper`` is a started session of its own; the caller closes it after ``stop``.
    """

    def __init__(
        self,
        *,
        zookeeper: ZooKeeper,
        host: str,
        port: int,
        cluster_config: BrokerConfig,
        clock: Clock,
        pid: int,
        application: str,
        web_url: str = "",
    ) -> None:
        self._zookeeper = zookeeper
        self._host = host
        self._config = cluster_config
        self._clock = clock
        self._pid = pid
        self._application = application
        self._web_url = web_url
        self._audit = open_audit(cluster_config, "controller", clock)
        self._access_control = access_control_of(cluster_config, clock, threading.Lock(), self._audit.audit)
        self._handlers = ControllerHandlers(
            cluster_config,
            self._submit_command,
            self._report,
            access_control=self._access_control,
            topic_name=self._topic_name,
            audit=self._audit.audit,
        )
        self._tls = inter_broker_server(cluster_config)
        self._metrics_tls = tls_of_metrics(cluster_config)
        self._logins = cluster_logins(cluster_config, [cluster_config.listeners.inter_broker])
        self._user_loops = LoopThreads(no_calls)
        self._reactor = self._new_reactor(port)
        self._loop = EventLoop("controller-events", self._on_failure)
        self._timer: ThreadTimer | None = None
        self._candidate: Candidate | None = None
        connections = self._connections = ChannelConnections(
            f"controller-{application}", inter_broker_connector(cluster_config)
        )
        self._channel_threads = LoopThreads(connections.ask)
        self._channel_ports = ChannelPorts(
            self._channel_threads,
            itertools.count().__next__,
            connections.hang_up,
            connections.has_ended,
            threading.Lock,
        )
        self.metrics_port: int | None = None
        """Where metrics are served, if they are."""
        self._closing = ExitStack()

    @property
    def port(self) -> int:
        return self._reactor.ports[0]

    @property
    def is_active(self) -> bool:
        candidate = self._candidate
        return candidate is not None and candidate.is_active

    @property
    def failure(self) -> str | None:
        """Why this candidate could not serve when it last tried; None if it could."""
        return None if self._candidate is None else self._candidate.failure

    @property
    def events(self) -> tuple[NumberedEvent, ...]:
        """The newest events of this controller's term, or of its last one; oldest first."""
        return () if self._candidate is None else self._candidate.latest_events

    def start(self) -> None:
        read_or_create_cluster_id(self._zookeeper)
        self._follow_users()
        if self._access_control is not None:
            self._follow_rules(self._access_control)
        self._start_purge()
        self._reactor.start()
        self._timer = ThreadTimer("controller-timer")
        self._candidate = Candidate(
            zookeeper=self._zookeeper,
            node=ControllerNode(
                self._host,
                self.port,
                self._pid,
                self._application,
                self._clock.wall_ms(),
                {name: str(self._config.get_int(name)) for name in TOPIC_DEFAULTS},
            ),
            config=self._config,
            clock=self._clock,
            timer=self._timer,
            submit=self._loop.submit,
            open_channels=self._open_channels,
            web_url=self._web_url,
        )
        self._loop.start()
        self._loop.submit(self._candidate.start)
        self.publish(())
        self._start_metrics(self._candidate, self._timer)
        self.run_events()

    def stop(self) -> None:
        """Leave the office free for the next controller, and end all threads."""
        self._closing.close()
        self._user_loops.close(USERS_TIMEOUT_MS / 1_000)
        self._reactor.stop(STOP_TIMEOUT_MS)
        candidate = self._candidate
        if candidate is not None and not self._loop.stop(candidate.close, STOP_TIMEOUT_MS):
            logger.warning("the controller still waits for ZooKeeper; its office ends with its session")
        if self._timer is not None:
            self._timer.stop()
        self._connections.close()
        self._channel_threads.close(STOP_TIMEOUT_MS / 1_000)
        self._audit.close()

    def active_controller(self) -> ControllerNode | None:
        """The active controller, read from ZooKeeper, or None."""
        node = self._zookeeper.get(CONTROLLER)
        return None if node is None else decode_controller(node.data)

    def broker_died(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, how: str = "") -> None:
        """The supervisor saw this incarnation end, ``how`` in words. Comes back at once; fail-over follows in
        milliseconds.
        """
        self._loop.submit(lambda: self._in_candidate().broker_died(broker_id, broker_epoch, how))

    def publish(self, brokers: Sequence[HostedBroker], spark_warnings: Sequence[str] = ()) -> None:
        """Tell the cluster how the brokers of this application are, and what its Spark settings lack. Comes
        back at once.
        """
        hosted, lacking = tuple(brokers), tuple(spark_warnings)
        self._loop.submit(lambda: self._in_candidate().publish(hosted, lacking))

    def follow_wishes(self, brokers: Sequence[BrokerId], obey: Callable[[Known], None]) -> None:
        """Call ``obey`` with what is wished of these brokers, and with each change, on another thread."""
        ids = tuple(brokers)
        self._user_loops.start("broker-wishes", lambda: follow_wishes(self._zookeeper, ids, obey))

    def run_events(self) -> None:
        """Wait until everything that is queued now has been worked off."""
        done = threading.Event()
        self._loop.submit(done.set)
        if not done.wait(EVENTS_TIMEOUT_MS / 1_000):
            logger.warning("the controller is busy or waits for ZooKeeper")

    def _follow_users(self) -> None:
        logins = self._logins
        if logins is not None:
            logins.users.secret = login_secret(self._zookeeper)
            users = EntityConfigs(self._zookeeper, [UsersReader(logins.users, logins.on_gone)])
            users.read_all()
            self._user_loops.start("controller-users", users.loop)
            for name, loop in logins.removals().items():
                self._user_loops.start(f"controller-removed-users-{name}", loop)

    def _start_metrics(self, candidate: Candidate, timer: ThreadTimer) -> None:
        tls = {} if self._tls is None else {LISTENER: self._tls}
        certificate_metrics = watch_expiry("controller", tls, self._clock, timer)
        port = self._config.get_int("metrics.port")
        if port < 0:
            return
        # Here, so that only those pay for its library who want metrics.
        from sparklog.network.metrics_server import serve_metrics

        server = serve_metrics(
            lambda: (*controller_metrics(candidate), *certificate_metrics()),
            self._config.get_str("metrics.host") or self._host,
            port,
            name="controller",
            tls=self._metrics_tls,
        )
        if server is not None:
            self.metrics_port = server.port
            self._closing.callback(server.close)

    def _start_purge(self) -> None:
        """Delete old notifications: of users and quotas always, of rules where there are some."""
        of_rules = () if self._access_control is None else CHANGES.values()
        directories = (CONFIG_CHANGES, *of_rules)
        purge = NotificationPurge(self._zookeeper, directories, self._clock, lambda: self.is_active)
        self._channel_threads.start("old-notifications", purge.loop)

    def _follow_rules(self, access: AccessControl) -> None:
        """Read the access rules, and go on reading what changes. Raises ConfigError if the controller may do
        nothing by them.
        """
        watch = RuleWatch(
            self._zookeeper,
            access.authorizer,
            lambda patterns: self._loop.submit(lambda: self._in_candidate().acls_changed(patterns)),
        )
        watch.read_all()
        access.check_own_right(own_principal(self._config), "the controller")
        self._channel_threads.start("access-rules", watch.loop)

    def _new_reactor(self, port: int) -> Reactor:
        config, logins = self._config, self._logins
        login = None if logins is None else logins.of(config.listeners.inter_broker)
        return Reactor(
            [Listener(self._host, port, LISTENER, self._tls, login)],
            self._handlers.handle,
            processors=1,
            handlers=HANDLERS,
            queue_max=config.get_int("queued.max.requests"),
            frame_bytes_max=config.get_int("socket.request.max.bytes"),
            idle_ms=config.get_int("connections.max.idle.ms"),
            login_ms=config.get_int("connections.login.timeout.ms"),
            clock=self._clock,
            name="controller",
        )

    # ------------------------------------------------------------------------- between the threads

    def _topic_name(self, topic_id: TopicId) -> str | None:
        """Read beside the event loop: a topic that is not there yet, or no more, is one that is not there."""
        term = None if self._candidate is None else self._candidate.term
        return None if term is None else term.image.topic_names.get(topic_id)

    def _in_candidate(self) -> Candidate:
        assert self._candidate is not None, "the controller was not started"
        return self._candidate

    def _submit_command(self, command: Command, answer: AnswerCommand) -> None:
        self._loop.submit(lambda: self._in_candidate().command(command, answer))

    def _report(self, request: ClusterReportRequest) -> ClusterReportResponse:
        """What this controller knows, from the last view of its event loop: nobody waits for the loop."""
        candidate = self._candidate
        if candidate is None:
            return report_of(None, None, request)
        report = report_of(candidate.view, candidate.node, request, lambda: controller_metrics(candidate))
        report.age_ms = candidate.zookeeper_away_ms
        return report

    def _on_failure(self, error: Exception) -> None:
        self._in_candidate().fail(error)

    def _open_channels(self, epoch: ControllerEpoch) -> BrokerChannels:
        def on_answer(answer: PushAnswer) -> None:
            self._loop.submit(lambda: self._in_candidate().push_answered(epoch, answer))

        return BrokerChannels(
            epoch,
            on_answer,
            self._channel_ports,
            listener=self._config.listeners.inter_broker,
            request_timeout_ms=self._config.get_int("request.timeout.ms"),
        )
