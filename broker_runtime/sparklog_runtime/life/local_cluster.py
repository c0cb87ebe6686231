"""A cluster of this application: ZooKeeper, a controller candidate, Spark, and a broker per slot.

The start overlaps what can be: ZooKeeper and Spark's JVM are launched first, at the same time; while they
start, the controller's code is imported; once ZooKeeper answers, the controller joins the race; once Spark
has a context, brokers are launched. ``stop`` works at any moment, and returns when no process is left.

    with LocalCluster(ClusterOptions(root=Path("/tmp/cluster"), brokers=3)) as cluster:
        print(cluster.bootstrap_servers)
"""

import logging
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Final

from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import ConfigError
from sparklog.model.listeners import LISTENERS
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.coordinator_settings import of_a_start
from sparklog.model.settings.web_rows import without_web
from sparklog.network.listener_tls import inter_broker_server
from sparklog.zookeeper.configured_session import tls_of
from sparklog.zookeeper.embedded import find_java
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.broker_process.broker_ports import Ports, check_ports, ports_of_brokers
from sparklog_runtime.broker_process.job_launcher import SparkJobLauncher
from sparklog_runtime.driver_servers.servers import Controller, embedded_zookeeper, preload, start_controller
from sparklog_runtime.driver_servers.zookeeper_keeper import ZooKeeperKeeper
from sparklog_runtime.executors.allocation import ExecutorAllocation
from sparklog_runtime.executors.broker_jobs import inheritable_thread, one_broker_per_executor
from sparklog_runtime.executors.decommissions import Decommissions
from sparklog_runtime.life.cluster_entries import broker_entries, controller_entries
from sparklog_runtime.life.cluster_file import ClusterFile, remove_cluster_file
from sparklog_runtime.life.cluster_page import ClusterPage
from sparklog_runtime.life.driver_reports import DriverReports
from sparklog_runtime.life.publisher import Publisher
from sparklog_runtime.settings.log_files import OutputFiles
from sparklog_runtime.settings.settings_check import check_settings, is_local
from sparklog_runtime.settings.spark_security import check_spark_security
from sparklog_runtime.settings.start_defaults import (
    chosen_defaults,
    defaults_in_words,
    differences_in_words,
    keep_defaults,
)
from sparklog_runtime.start.asked_brokers import AskedBrokers
from sparklog_runtime.start.cluster_folders import Layout, RootLock
from sparklog_runtime.start.cluster_options import (
    ClusterOptions,
    default_conf,
    is_on_this_machine,
    own_address,
)
from sparklog_runtime.start.own_secrets import check_own_secrets
from sparklog_runtime.start.prepared_zookeeper import prepare_zookeeper
from sparklog_runtime.start.readiness import (
    await_election,
    await_master,
    await_metadata,
    await_remnants,
    await_zookeeper,
)
from sparklog_runtime.start.renewed_plans import RenewedPlans, stopped_in_words
from sparklog_runtime.start.session import SparkHost
from sparklog_runtime.start.start_patience import Background, Patience, brokers_in_words
from sparklog_runtime.stop.child_processes import processes_of_run, send, sweep_run
from sparklog_runtime.supervision.executor_waits import ExecutorWaits
from sparklog_runtime.supervision.id_assignment import FixedIds, IdAssignment, IdsByData
from sparklog_runtime.supervision.supervisor import JobLauncher, Supervisor, SupervisorCallbacks
from sparklog_runtime.supervision.tcp_ports import PortReservation

logger: Final = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
BROKERS_STOP_TIMEOUT_S: Final = 30.0
SWEEP_GRACE_S: Final = 3.0


class LocalCluster:
    """See the module's text. ``start`` once, ``stop`` as often as you like."""

    def __init__(
        self,
        options: ClusterOptions,
        *,
        progress: Callable[[str], None] | None = None,
        notice: Callable[[str], None] | None = None,
        context: Any = None,
    ) -> None:
        """``context`` is a running SparkContext to use instead of starting Spark; it is left running.

        ``progress`` gets lines about what a start waits for. ``notice`` (default: ``progress``) gets lines on
        deaths and returns of brokers and of ZooKeeper while the cluster runs.
        """
        options.check()
        self.options: Final = options
        self.layout: Final = Layout.at(options.root)
        self.run: Final = secrets.token_hex(8)
        self._stopping = threading.Event()
        self._progress = progress or (lambda text: None)
        self._notice = notice or self._progress
        self._patience = Patience(self._stopping, self._progress)
        self._given_context = context
        self._starting = threading.Lock()
        self._stop_lock = threading.Lock()
        self._joining = threading.Lock()
        """Orders a stop and a controller that starts at the same time."""
        self._has_stopped = False
        self._settings: Mapping[str, str] = options.settings
        """Those of the options, and what a start has chosen beside them."""
        self._chosen: Mapping[str, str] = {}
        self._config = BrokerConfig.parse(options.settings)
        self._listeners = self._config.listeners
        self._broker_ports = ports_of_brokers(self._listeners, options.port, options.brokers)
        check_ports(self._listeners, self._broker_ports, options.settings, on_one_machine=self._runs_here())
        self._ended = threading.Event()
        self._failure: str | None = None
        self._reports = DriverReports(self.layout.events_file, self._parts)
        self._page = ClusterPage(
            self._config,
            self.layout.root,
            self.run,
            self.layout.page_log,
            is_chosen=options.has_page,
            is_local=self._runs_here(),
        )
        self._publisher = Publisher(self.layout.cluster_file, self._describe, self._reports.look)
        self._output_files = OutputFiles(self.layout.output_files)
        self._lock: RootLock | None = None
        self._is_accepted = False
        """Whether the start got beyond what may refuse it; before, nothing is written."""
        self._reserved: PortReservation | None = None
        self._zookeeper: ZooKeeperKeeper | None = None
        self._spark: SparkHost | None = None
        self._controller: Controller | None = None
        self._cluster_id = ""
        self._supervisor: Supervisor | None = None
        self._closed_first: list[Callable[[], None]] = []
        self._began = time.monotonic()
        self._check_secrets(self._progress)

    def _check_secrets(self, warn: Callable[[str], None]) -> None:
        has_brokers = self._runs_here() and self.options.brokers > 0
        check_own_secrets(self._config, self._driver_host, has_brokers=has_brokers, warn=warn)

    def _parts(self) -> tuple[Controller | None, Supervisor | None]:
        return self._controller, self._supervisor

    # ------------------------------------------------------------------ what a running cluster reports

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of our brokers; of the cluster's, if we have none (a standby controller)."""
        supervisor = self._supervisor
        processes = [] if supervisor is None else supervisor.processes()
        if processes:
            return ",".join(host_port(process.host, process.port) for process in processes)
        others = [] if self._controller is None else self._controller.registered_brokers()
        return ",".join(others or self._own_addresses())

    def _own_addresses(self) -> list[str]:
        """Where our brokers listen once they are started, on this machine."""
        ports = [next(iter(ports.values())) for ports in self._broker_ports] if self._runs_here() else []
        return [host_port(LOOPBACK, port) for port in ports]

    @property
    def page_url(self) -> str | None:
        """Where this driver serves a page, if it does."""
        return self._page.url

    @property
    def zookeeper(self) -> str:
        if self.options.zookeeper is not None:
            return self.options.zookeeper
        assert self._zookeeper is not None, "not started"
        return self._zookeeper.connect_string

    @property
    def context(self) -> Any:
        """The SparkContext in which the brokers run; data jobs may use it too."""
        if self._given_context is not None:
            return self._given_context
        return None if self._spark is None else self._spark.context

    @property
    def spark(self) -> Any:
        """A SparkSession on that context."""
        from pyspark.sql import SparkSession

        return SparkSession(self.context)

    def broker_pids(self) -> dict[int, int]:
        """Broker id to the process that serves it now."""
        supervisor = self._supervisor
        processes = [] if supervisor is None else supervisor.processes()
        return {process.broker_id: process.pid for process in processes}

    def wait_ended(self, timeout_s: float | None = None) -> bool:
        """Wait until the cluster is being stopped or can no longer run; ``failure`` says why."""
        return self._ended.wait(timeout_s)

    @property
    def failure(self) -> str | None:
        return self._failure

    # ------------------------------------------------------------------ start

    def __enter__(self) -> "LocalCluster":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything; returns when all brokers are registered and a controller is elected.

        Raises a SparklogError that says what is wrong, with everything stopped again.
        """
        try:
            with self._starting:
                self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        options = self.options
        self._began = time.monotonic()
        self._lock = RootLock(self.layout)
        if options.zookeeper is None or (options.brokers and self._given_context is None):
            find_java()  # what needs it would say so later, and several at a time
        await_remnants(self.layout.root, self._patience)
        conf = self._checked_spark_conf()
        self._choose_defaults(is_new=self._lock.is_new)
        self._reserve_ports()
        if options.zookeeper is not None:
            timeout_s = self._config.get_int("zookeeper.connection.timeout.ms") / 1_000
            await_zookeeper(options.zookeeper, timeout_s, self._patience, tls_of(self._config.zookeeper))
        if options.brokers and self._given_context is None:
            await_master(self._master(), self._patience)
        self._is_accepted = True
        remove_cluster_file(self.layout.cluster_file)
        self.layout.create()
        self._output_files.start()
        self._tell_defaults()
        self._page.open(self._progress)
        spark = self._launch_spark(conf)
        if options.zookeeper is None:
            self._zookeeper = ZooKeeperKeeper(
                partial(embedded_zookeeper, self._config.zookeeper),
                self.layout.zookeeper,
                self._publisher.announce,
                self._notice,
            )
            self._zookeeper.launch()
        connecting = None if spark is None else Background(spark.connect, "spark-connect")
        preload()
        self._note("controller imported")
        self._await_embedded_zookeeper()
        prepare_zookeeper(self.zookeeper, self._config, is_own=options.zookeeper is None, warn=self._progress)
        self._note("ZooKeeper answers")
        controller = self._join_the_race()
        self._note("controller candidate up")
        if options.brokers:
            self._launch_brokers(connecting)
            self._note("brokers registered")
        session_s = self._config.get_int("zookeeper.session.timeout.ms") / 1_000
        await_election(controller, self._driver_host(), self._application(), session_s, self._patience)
        self._compare_defaults(controller)
        if self._supervisor is not None:
            asked = AskedBrokers(BrokerConfig.parse(of_a_start(self._settings, options.brokers)))
            await_metadata(controller, self._supervisor, asked, self._supervisor.to_serve(), self._patience)
            for broker in self._supervisor.processes()[:1]:
                asked.have_internal_topics(broker)
        self._cluster_id = controller.cluster_id
        self._patience.check()
        self._page.start(self._parts, self._driver_host())
        self._publisher.start()
        self._note("ready")

    def _choose_defaults(self, *, is_new: bool) -> None:
        options = self.options
        if options.chooses_defaults:
            kept = self.layout.defaults_file
            self._chosen = chosen_defaults(options.settings, options.brokers, kept, is_new=is_new)
            self._settings = {**self.layout.audit, **options.settings, **self._chosen}
            self._config = BrokerConfig.parse(self._settings)

    def _tell_defaults(self) -> None:
        if self.options.chooses_defaults and self.options.brokers:
            keep_defaults(self.layout.defaults_file, self._chosen)
            self._progress(defaults_in_words(self._config))

    def _compare_defaults(self, controller: Controller) -> None:
        """Warn if another application's controller is in office, and has other settings of new topics."""
        elected = controller.elected()
        if elected is not None:
            address = host_port(elected.host, elected.port)
            for difference in differences_in_words(self._config, elected.topic_defaults, address):
                self._progress(f"warning: {difference}")

    def _note(self, what: str) -> None:
        """Where the seconds of a start go, for the log."""
        logger.info("start: %s after %.2f s", what, time.monotonic() - self._began)

    def _runs_here(self) -> bool:
        return is_on_this_machine(self._master())

    def _master(self) -> str:
        return (
            str(self._given_context.master)
            if self._given_context is not None
            else self.options.spark_master()
        )

    def _application(self) -> str:
        return self.options.application_name()

    def _driver_host(self) -> str:
        """The address at which brokers and other controllers reach this process."""
        if self._runs_here():
            return "127.0.0.1"
        if self.context:
            return str(self.context.getConf().get("spark.driver.host"))
        return own_address(self.options.zookeeper)

    def _checked_spark_conf(self) -> dict[str, str]:
        """Settings for a Spark of our own; ConfigError for those that brokers cannot live with."""
        options = self.options
        if not options.brokers or self._given_context is not None:
            return {}
        conf = {**default_conf(options, self.layout), **options.spark_conf}
        check_settings(conf, self._master(), options.brokers)
        check_spark_security(conf, self._config, is_here=self._runs_here())
        return conf

    def _reserve_ports(self) -> None:
        """Keep the brokers' ports free for them, where they run on this machine."""
        if self._runs_here():
            self._reserved = PortReservation()
            self._broker_ports = [
                {name: self._reserve(self._reserved, name, port) for name, port in ports.items()}
                for ports in self._broker_ports
            ]
        elif any(not port for ports in self._broker_ports for port in ports.values()):
            raise ConfigError("port 0 works on this machine only: name the first port with --port")

    def _reserve(self, reserved: PortReservation, listener: str, port: int) -> int:
        endpoint = self._listeners.bound[listener]
        option = f"in {LISTENERS}" if endpoint.port else "with --port"
        return reserved.reserve(endpoint.host or LOOPBACK, port, f"choose another {option}")

    def _launch_spark(self, conf: Mapping[str, str]) -> SparkHost | None:
        """Start Spark's JVM, if there are brokers to run and Spark is not running yet."""
        if not self.options.brokers or self._given_context is not None:
            return None
        spark = SparkHost(self.layout, self._master(), conf, self.run)
        self._spark = spark
        self._patience.check()
        spark.launch()
        spark.watch(self._fail)
        return spark

    def _await_embedded_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._patience.wait(self._zookeeper.wait_started, lambda: "ZooKeeper")

    def _join_the_race(self) -> Controller:
        """Start the controller candidate, in the background: a ZooKeeper may keep it waiting."""

        def join() -> None:
            controller = start_controller(
                connect_string=self.zookeeper,
                host=self._driver_host(),
                settings=self._settings,
                application=self._application(),
                is_alone=self.options.zookeeper is None,
                web_url=self._page.url or "",
            )
            with self._joining:
                self._controller = controller
                is_late = self._has_stopped
            if is_late:
                controller.stop()

        joining = Background(join, "controller-start")
        self._patience.wait(joining.wait, lambda: f"a session with ZooKeeper at {self.zookeeper}")
        joining.raise_failure("the controller did not start")
        assert self._controller is not None
        return self._controller

    def _launch_brokers(self, connecting: "Background | None") -> None:
        if connecting is not None:
            self._patience.wait(connecting.wait, lambda: "Spark")
            connecting.raise_failure("Spark did not start")
        self._note("Spark context made")
        conf = dict(self.context.getConf().getAll())
        check_settings(conf, self._master(), self.options.brokers)
        is_here = self._runs_here()
        check_spark_security(conf, self._config, is_here=is_here)
        for warning in self._reports.note_spark(conf, self._master(), self._config, is_here=is_here):
            self._progress(f"warning: {warning}")
        self._check_secrets(logger.info)  # again: Spark knows this machine's address now
        controller = self._controller
        assert controller is not None
        wished = controller.wishes(self.options.ids())
        for line in stopped_in_words(wished, self.options.root):
            self._progress(line)
        supervisor = Supervisor(
            ids=self._id_assignment(),
            ports_of=self._ports_of,
            callbacks=SupervisorCallbacks(
                broker_died=controller.broker_died,
                is_registered=controller.is_registered,
                on_change=self._publisher.announce,
                on_notice=self._notice,
            ),
            thread=inheritable_thread(),
            tls=inter_broker_server(self._config),
            wished=wished,
            renewed=RenewedPlans(self.options, self._chosen, self._listeners).renew,
        )
        control_port = supervisor.listen(self._driver_host(), self._config.get_int("supervisor.port"))
        self._supervisor = supervisor
        self._patience.check()
        supervisor.launch(self._plans(supervisor.token, control_port), self._job_launcher(self.context, conf))
        controller.follow_wishes(self.options.ids(), supervisor.obey)
        self._await_brokers(supervisor, conf)

    def _await_brokers(self, supervisor: Supervisor, conf: Mapping[str, str]) -> None:
        if is_local(self._master()):
            self._await_registered(supervisor, lambda waited_s: None)
            return
        allocation = ExecutorAllocation(self.context, self._master(), conf, self.options.brokers)
        self._closed_first.append(allocation.close)
        self._await_registered(supervisor, allocation.in_words)
        waits = ExecutorWaits(supervisor.waiting_for_executors, allocation.wait_in_words, self._notice)
        leaving = Decommissions(self.context, supervisor.jobs, supervisor.leave_executor, self._notice)
        self._closed_first += [waits.close, leaving.close]

    def _await_registered(
        self, supervisor: Supervisor, missing_executors: Callable[[float], str | None]
    ) -> None:
        def are_registered(timeout_s: float) -> bool:
            if supervisor.wait_registered(timeout_s):
                return True
            failure = supervisor.failed()
            if failure is not None:
                raise type(failure)(f"a broker cannot start: {failure} (see {self.layout.logs})")
            return False

        self._patience.wait(
            are_registered, lambda: brokers_in_words(self._missing_brokers(supervisor)), missing_executors
        )

    def _missing_brokers(self, supervisor: Supervisor) -> list[int]:
        serving = {process.broker_id for process in supervisor.processes() if process.is_registered}
        return [broker_id for broker_id in supervisor.to_serve() if broker_id not in serving]

    def _id_assignment(self) -> IdAssignment:
        ids = self.options.ids()
        if self._runs_here():
            return FixedIds(ids)
        return IdsByData(ids, started_ms=time.monotonic_ns() // 1_000_000)

    def _ports_of(self, broker_id: int) -> Ports:
        return self._broker_ports[self.options.ids().index(broker_id)]

    def _plans(self, token: str, control_port: int) -> list[BrokerPlan]:
        options = self.options
        patterns = options.log_dir_patterns or self.layout.log_dir_patterns(options.log_dirs_per_broker)
        here = self._runs_here()
        log_file = (
            f"{self.layout.escaped_root}/logs/broker-{{id}}.log"
            if here
            else f"{os.path.dirname(patterns[0])}/broker-{{id}}.log"
        )
        plan = BrokerPlan(
            slot=0,
            supervisor_host=self._driver_host(),
            supervisor_port=control_port,
            token=token,
            has_control_tls=self._listeners.inter_broker in self._listeners.with_tls(),
            zookeeper=self.zookeeper,
            host="127.0.0.1" if here else None,
            log_dir_patterns=patterns,
            log_file_pattern=log_file,
            settings=of_a_start(without_web(self._settings), options.brokers),
            hosts=options.hosts(),
            rack=options.settings.get("broker.rack") or (self._application() if options.zookeeper else None),
        )
        return [replace(plan, slot=slot) for slot in range(options.brokers)]

    def _job_launcher(self, context: Any, conf: Mapping[str, str]) -> JobLauncher:
        if is_local(self._master()):
            return SparkJobLauncher(context)
        return SparkJobLauncher(context, one_broker_per_executor(int(conf.get("spark.executor.cores", "1"))))

    # ------------------------------------------------------------------ while it runs

    def _fail(self, why: str) -> None:
        if self._failure is None and not self._stopping.is_set():
            self._failure = why
            logger.error("%s", why)
            self._ended.set()

    def _describe(self) -> ClusterFile:
        supervisor, controller = self._supervisor, self._controller
        assert controller is not None
        processes = [] if supervisor is None else supervisor.processes()
        return ClusterFile(
            cluster_id=self._cluster_id,
            bootstrap_servers=self.bootstrap_servers,
            zookeeper=self.zookeeper,
            zookeeper_pid=None if self._zookeeper is None else self._zookeeper.pid,
            controllers=controller_entries(
                controller, self._driver_host(), self._page, is_alone=self.options.zookeeper is None
            ),
            brokers=broker_entries(processes),
        )

    # ------------------------------------------------------------------ stop

    def stop(self) -> None:
        """Stop everything, in whatever state it is; returns when no process of this run is left."""
        self._stopping.set()
        self._ended.set()
        with self._stop_lock:
            self._interrupt_start()
            # A start in progress sees the flag and returns; after that it launches nothing more.
            with self._starting:
                self._stop_all()

    def _interrupt_start(self) -> None:
        """Wake a start that waits: for Spark, where no broker is to be stopped first, or for brokers."""
        if self._supervisor is not None:
            self._attempt("brokers", self._stop_brokers)
        elif self._spark is not None:
            self._attempt("Spark", self._spark.stop)

    def _stop_all(self) -> None:
        for close in self._closed_first:
            close()
        self._publisher.stop()
        self._attempt("the page", self._page.stop)
        self._output_files.stop()
        if self._supervisor is not None:
            self._attempt("brokers", self._stop_brokers)
        if self._spark is not None:
            self._attempt("Spark", self._spark.stop)
        with self._joining:
            self._has_stopped = True
            controller = self._controller
        if controller is not None:
            self._attempt("the controller", controller.stop)
        self._attempt("the last events", self._reports.close)
        if self._zookeeper is not None:
            self._attempt("ZooKeeper", self._zookeeper.stop)
        if self._spark is not None:
            killed = sweep_run(self.run, SWEEP_GRACE_S)
            if killed:
                logger.warning("processes %s did not end by themselves and were killed", killed)
        if self._is_accepted:
            shutil.rmtree(self.layout.scratch, ignore_errors=True)
        if self._reserved is not None:
            self._reserved.release()
        if self._lock is not None and self._is_accepted:
            self._lock.release()
        elif self._lock is not None:
            self._lock.withdraw()
        self._supervisor = self._controller = self._zookeeper = self._spark = self._lock = None

    def _stop_brokers(self) -> None:
        """Send SIGCONT to processes that were paused first: a paused process cannot stop cleanly."""
        assert self._supervisor is not None
        zookeeper_pid = None if self._zookeeper is None else self._zookeeper.pid
        for pid in [*processes_of_run(self.run), *([] if zookeeper_pid is None else [zookeeper_pid])]:
            send(pid, signal.SIGCONT)
        self._supervisor.stop(BROKERS_STOP_TIMEOUT_S if self._failure is None else SWEEP_GRACE_S)

    def _attempt(self, what: str, stop: Callable[[], object]) -> None:
        """Log a failure and go on: a stop must reach its end."""
        began = time.monotonic()
        try:
            stop()
        except Exception:
            logger.exception("%s did not stop properly", what)
        logger.info("stopped %s in %.1f s", what, time.monotonic() - began)
