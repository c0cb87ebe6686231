"""A cluster of this application: ZooKeeper, a controller candidate, Spark, and a broker per slot.

The start overlaps what can be: ZooKeeper and Spark's JVM are launched first, at the same time; while they
start, the controller's code is imported; once ZooKeeper answers, the controller joins the race; once Spark
has a context, brokers are launched. ``stop`` works at any moment of it, from any thread, and returns when
no process of the run is left.

    with LocalCluster(ClusterOptions(root=Path("/tmp/cluster"), brokers=3)) as cluster:
        print(cluster.bootstrap_servers)
"""

import logging
import os
import secrets
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

from sparklog.model.errors import ConfigError, SparklogError
from sparklog_runtime.broker_plan import BrokerIdentity, BrokerPlan, RunningBroker
from sparklog_runtime.cluster_file import (
    BrokerEntry,
    ClusterFile,
    ControllerEntry,
    remove_cluster_file,
)
from sparklog_runtime.cluster_options import ClusterOptions, default_conf, is_on_this_machine, own_address
from sparklog_runtime.identities import FixedIdentities, Identities, IdentitiesByData
from sparklog_runtime.layout import Layout, RootLock
from sparklog_runtime.parts import Controller, Parts, RealParts
from sparklog_runtime.ports import PortReservation, is_listening
from sparklog_runtime.processes import processes_of_run, send, sweep_run
from sparklog_runtime.publisher import Publisher
from sparklog_runtime.session import SparkHost, SparkJobLauncher
from sparklog_runtime.settings_check import check_settings, is_local, settings_warnings
from sparklog_runtime.supervisor import JobLauncher, Supervisor, SupervisorCallbacks
from sparklog_runtime.zookeeper_keeper import ZooKeeperKeeper

log = logging.getLogger(__name__)

BROKERS_STOP_TIMEOUT_S: Final = 30.0
SWEEP_GRACE_S: Final = 3.0
WAIT_STEP_S: Final = 0.05
PROGRESS_INTERVAL_S: Final = 2.0
ELECTION_TIMEOUT_S: Final = 60.0


class StartInterrupted(SparklogError):  # noqa: N818 (it states a fact)
    """The start was given up because a stop was asked for."""


class LocalCluster:
    """See the module's text. ``start`` once, ``stop`` as often as you like."""

    def __init__(
        self,
        options: ClusterOptions,
        *,
        parts: Parts | None = None,
        make_broker: Callable[[BrokerPlan, BrokerIdentity], RunningBroker] | None = None,
        progress: Callable[[str], None] | None = None,
        context: Any = None,
    ) -> None:
        """``context`` is a running SparkContext to use instead of starting Spark; it is left running."""
        options.check()
        self.options: Final = options
        self.layout: Final = Layout.at(options.root)
        self.run: Final = secrets.token_hex(8)
        self._parts: Parts = parts or RealParts()
        self._make_broker = make_broker
        self._progress = progress or (lambda text: None)
        self._given_context = context
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._stop_lock = threading.Lock()
        self._ended = threading.Event()
        self._failure: str | None = None
        self._publisher = Publisher(self.layout.cluster_file, self._describe)
        self._lock: RootLock | None = None
        self._ports: PortReservation | None = None
        self._zookeeper: ZooKeeperKeeper | None = None
        self._spark: SparkHost | None = None
        self._controller: Controller | None = None
        self._cluster_id = ""
        self._supervisor: Supervisor | None = None
        self._began = time.monotonic()

    # ------------------------------------------------------------------ what a running cluster tells

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of our brokers; of the cluster's, if we have none (a standby controller)."""
        supervisor = self._supervisor
        processes = [] if supervisor is None else supervisor.processes()
        if processes:
            return ",".join(f"{process.host}:{process.port}" for process in processes)
        return ",".join(self._controller.registered_brokers()) if self._controller is not None else ""

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

    def ready_line(self) -> str:
        return f"sparklog is ready: bootstrap.servers={self.bootstrap_servers}"

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
        remove_cluster_file(self.layout.cluster_file)
        self.layout.create()
        spark = self._launch_spark()
        if options.zookeeper is None:
            self._zookeeper = ZooKeeperKeeper(self._parts, self.layout.zookeeper, self._publisher.announce)
            self._zookeeper.launch()
        connecting = None if spark is None else _Background(spark.connect, "spark-connect")
        self._parts.preload()
        self._note("controller imported")
        self._await_zookeeper()
        self._note("ZooKeeper answers")
        self._controller = self._parts.start_controller(
            connect_string=self.zookeeper,
            host=self._driver_host(),
            settings=options.settings,
            application=self._application(),
        )
        self._note("controller candidate up")
        if options.brokers:
            self._launch_brokers(connecting)
        self._await_election(self._controller)
        self._cluster_id = self._controller.cluster_id
        self._check_stop()
        self._publisher.start()
        self._note("ready")

    def _note(self, what: str) -> None:
        """Where the seconds of a start go, for the log."""
        log.info("start: %s after %.2f s", what, time.monotonic() - self._began)

    def _check_stop(self) -> None:
        if self._stopping.is_set():
            raise StartInterrupted("the start was interrupted by a stop")

    def _runs_here(self) -> bool:
        return is_on_this_machine(self._master())

    def _master(self) -> str:
        return (
            str(self._given_context.master)
            if self._given_context is not None
            else self.options.spark_master()
        )

    def _application(self) -> str:
        return self.options.application or f"{socket.gethostname()}:{self.layout.root}"

    def _driver_host(self) -> str:
        """The address at which brokers and other controllers reach this process."""
        if self._runs_here():
            return "127.0.0.1"
        return str(self.context.getConf().get("spark.driver.host")) if self.context else own_address()

    def _launch_spark(self) -> SparkHost | None:
        """Reserve ports and start Spark's JVM, if there are brokers to run and Spark is not running yet."""
        options = self.options
        if not options.brokers:
            return None
        here = self._runs_here()
        wanted = [options.port + index if options.port else 0 for index in range(options.brokers)]
        if here:
            self._ports = PortReservation("127.0.0.1", wanted)
        elif not options.port:
            raise ConfigError("port 0 works on this machine only: name the first port with --port")
        if self._given_context is not None:
            return None
        conf = {**default_conf(options, self.layout), **options.spark_conf}
        check_settings(conf, self._master(), options.brokers)
        spark = SparkHost(self.layout, self._master(), conf, self.run)
        self._spark = spark
        self._check_stop()
        spark.launch()
        spark.watch(self._on_jvm_exit)
        return spark

    def _wait(self, is_ready: Callable[[float], bool], what: Callable[[], str]) -> None:
        """Wait in small steps, so that a stop is heard, and tell now and then what is waited for."""
        began = time.monotonic()
        told = 0
        while not is_ready(WAIT_STEP_S):
            self._check_stop()
            waited_s = time.monotonic() - began
            if waited_s // PROGRESS_INTERVAL_S > told:
                told += 1
                self._progress(f"waiting for {what()} ({waited_s:.0f} s)")
        self._check_stop()

    def _await_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._wait(self._zookeeper.wait_started, lambda: "ZooKeeper")

    def _launch_brokers(self, connecting: "_Background | None") -> None:
        if connecting is not None:
            self._await_spark(connecting)
        self._note("Spark context made")
        context = self.context
        conf = dict(context.getConf().getAll())
        check_settings(conf, self._master(), self.options.brokers)
        for warning in settings_warnings(conf):
            self._progress(f"warning: {warning}")
        assert self._controller is not None
        supervisor = Supervisor(
            identities=self._identities(),
            port_of=self._port_of,
            callbacks=SupervisorCallbacks(
                on_death=self._controller.report_broker_death, on_change=self._publisher.announce
            ),
            thread=_inheritable_thread(),
        )
        control_port = supervisor.listen(self._driver_host())
        self._supervisor = supervisor
        self._check_stop()
        supervisor.launch(self._plans(supervisor.token, control_port), self._job_launcher(context, conf))
        self._await_brokers(supervisor)

    def _await_spark(self, connecting: "_Background") -> None:
        self._wait(connecting.wait, lambda: "Spark")
        connecting.raise_failure()

    def _await_brokers(self, supervisor: Supervisor) -> None:
        def are_registered(timeout_s: float) -> bool:
            if supervisor.wait_registered(timeout_s):
                return True
            failure = supervisor.failed()
            if failure is not None:
                raise SparklogError(f"a broker cannot start: {failure} (see {self.layout.logs})")
            return False

        self._wait(are_registered, lambda: f"broker {', '.join(supervisor.missing())}")

    def _await_election(self, controller: Controller) -> None:
        deadline = time.monotonic() + ELECTION_TIMEOUT_S

        def is_elected(timeout_s: float) -> bool:
            if controller.is_active:
                return True
            elected = controller.elected()
            # A controller that was killed holds its office until its session ends: it must answer, too.
            if elected is not None and is_listening(elected.host, elected.port):
                return True
            if time.monotonic() > deadline:
                raise SparklogError(f"no controller was elected within {ELECTION_TIMEOUT_S:.0f} s")
            return self._stopping.wait(timeout_s)

        self._wait(is_elected, lambda: "a controller to be elected")

    def _identities(self) -> Identities:
        ids = self.options.ids()
        if self._runs_here():
            return FixedIdentities(ids)
        return IdentitiesByData(ids, started_ms=time.monotonic_ns() // 1_000_000)

    def _port_of(self, broker_id: int) -> int:
        index = self.options.ids().index(broker_id)
        return self.options.port + index if self._ports is None else self._ports.ports[index]

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
            zookeeper=self.zookeeper,
            host="127.0.0.1" if here else None,
            log_dir_patterns=patterns,
            log_file_pattern=log_file,
            settings=dict(options.settings),
            rack=options.settings.get("broker.rack") or (self._application() if options.zookeeper else None),
            make_broker=self._make_broker,
        )
        return [replace(plan, slot=slot) for slot in range(options.brokers)]

    def _job_launcher(self, context: Any, conf: Mapping[str, str]) -> JobLauncher:
        if is_local(self._master()):
            return SparkJobLauncher(context)
        return SparkJobLauncher(context, _one_broker_per_executor(int(conf.get("spark.executor.cores", "1"))))

    # ------------------------------------------------------------------ while it runs

    def _on_jvm_exit(self, status: int) -> None:
        self._fail(f"Spark's JVM ended with status {status}; see {self.layout.logs / 'spark.log'}")

    def _fail(self, why: str) -> None:
        if self._failure is None and not self._stopping.is_set():
            self._failure = why
            log.error("%s", why)
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
            controllers=self._controller_entries(controller),
            brokers=tuple(
                BrokerEntry(
                    id=process.broker_id,
                    host=process.host,
                    port=process.port,
                    pid=process.pid,
                    log_dirs=process.log_dirs,
                )
                for process in processes
            ),
        )

    def _controller_entries(self, controller: Controller) -> tuple[ControllerEntry, ...]:
        own = ControllerEntry(os.getpid(), self._driver_host(), controller.port, controller.is_active)
        if own.active or self.options.zookeeper is None:
            return (own,)
        elected = controller.elected()
        if elected is None or (elected.pid, elected.port) == (own.pid, own.port):
            return (own,)
        return (own, ControllerEntry(elected.pid, elected.host, elected.port, True))

    # ------------------------------------------------------------------ stop

    def stop(self) -> None:
        """Stop everything, in whatever state it is; returns when no process of this run is left."""
        self._stopping.set()
        self._ended.set()
        with self._stop_lock:
            self._interrupt_start()
            # Whoever is starting sees the flag and leaves; then nothing new can appear.
            with self._starting:
                self._stop_all()

    def _interrupt_start(self) -> None:
        """Wake a start that waits: for Spark, where no broker is to be stopped first, or for brokers."""
        if self._supervisor is not None:
            self._attempt("brokers", self._stop_brokers)
        elif self._spark is not None:
            self._attempt("Spark", self._spark.stop)

    def _stop_all(self) -> None:
        self._publisher.stop()
        if self._supervisor is not None:
            self._attempt("brokers", self._stop_brokers)
        if self._spark is not None:
            self._attempt("Spark", self._spark.stop)
        if self._controller is not None:
            self._attempt("the controller", self._controller.stop)
        if self._zookeeper is not None:
            self._attempt("ZooKeeper", self._zookeeper.stop)
        if self._spark is not None:
            killed = sweep_run(self.run, SWEEP_GRACE_S)
            if killed:
                log.warning("processes %s did not end by themselves and were killed", killed)
            shutil.rmtree(self.layout.scratch, ignore_errors=True)
        if self._ports is not None:
            self._ports.release()
        if self._lock is not None:
            self._lock.release()
        self._supervisor = self._controller = self._zookeeper = self._spark = self._lock = None

    def _stop_brokers(self) -> None:
        assert self._supervisor is not None
        self._wake_paused()
        self._supervisor.stop(BROKERS_STOP_TIMEOUT_S if self._failure is None else SWEEP_GRACE_S)

    def _wake_paused(self) -> None:
        """Continue what somebody has paused (SIGSTOP): a process that sleeps cannot stop tidily."""
        zookeeper_pid = None if self._zookeeper is None else self._zookeeper.pid
        for pid in [*processes_of_run(self.run), *([] if zookeeper_pid is None else [zookeeper_pid])]:
            send(pid, signal.SIGCONT)

    def _attempt(self, what: str, stop: Callable[[], object]) -> None:
        """Go on with the next part whatever happens: a stop must reach the end."""
        began = time.monotonic()
        try:
            stop()
        except Exception:
            log.exception("%s did not stop properly", what)
        log.info("stopped %s in %.1f s", what, time.monotonic() - began)


class _Background:
    """A call on a thread of its own."""

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._done = threading.Event()
        self._failure: BaseException | None = None

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 (raised again by raise_failure)
                self._failure = error
            self._done.set()

        threading.Thread(target=run, name=name, daemon=True).start()

    def wait(self, timeout_s: float) -> bool:
        return self._done.wait(timeout_s)

    def raise_failure(self) -> None:
        if isinstance(self._failure, SparklogError):
            raise self._failure
        if self._failure is not None:
            raise SparklogError(f"Spark did not start: {self._failure}") from self._failure


def _inheritable_thread() -> Callable[..., threading.Thread]:
    """PySpark's thread that keeps job tags apart: each is pinned to a JVM thread of its own."""
    from pyspark import InheritableThread

    made: Callable[..., threading.Thread] = InheritableThread
    return made


def _one_broker_per_executor(executor_cores: int) -> Any:
    """A profile whose task takes more than half an executor, or None where one task fills it anyway."""
    if executor_cores <= 1:
        return None
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    return ResourceProfileBuilder().require(TaskResourceRequests().cpus(executor_cores // 2 + 1)).build
