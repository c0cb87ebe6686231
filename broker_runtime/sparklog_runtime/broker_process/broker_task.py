"""A broker's life inside a Spark task: PySpark's worker process becomes the broker.

The main thread, which receives signals, only waits for a reason to stop. All reasons lead to a clean stop:

    stop          the supervisor said so
    SIGTERM       sent by a user, or by the kernel when the parent has ended (PR_SET_PDEATHSIG)
    SIGHUP        PySpark's daemon ends: its executor, driver or Spark context has ended
    parent        the parent has changed; polled, for systems whose kernel sends no signal
    broker        the broker stopped by itself: a newer incarnation exists, or a disk failed

When its ZooKeeper session ends, the broker stops serving at once, because others may lead now, and starts
again in the same process: an outage of ZooKeeper hits all brokers together, and new processes cost seconds.

When the connection to the supervisor ends, the broker connects again and serves on: ZooKeeper decides which
brokers live.

Spark reuses worker processes, and a thread of an old broker could disturb the next task: the task returns
only if all its threads have ended; otherwise the process exits. A retry by Spark (attempt 1 or more) returns
at once, because the supervisor relaunches brokers itself, with backoff.
"""

import glob
import logging
import os
import queue
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from sparklog.model.errors import ConfigError, LogDirectoryError, SparklogError, UnsafeStartError
from sparklog.model.zookeeper import ZooKeeperError
from sparklog.network.dialing.peer_refused import PeerRefused
from sparklog_runtime.broker_process.broker_plan import (
    BrokerIdentity,
    BrokerPlan,
    RunningBroker,
    control_tls,
    make_real_broker,
)
from sparklog_runtime.broker_process.control_channel import (
    ControlConnection,
    ControlError,
    Message,
    require_int,
    require_mapping,
)
from sparklog_runtime.broker_process.control_handshake import join
from sparklog_runtime.executors.host_check import is_executor, refuse_log_dirs, spark_folders
from sparklog_runtime.settings.log_files import log_to_file
from sparklog_runtime.stop.child_processes import die_with_parent

logger: Final = logging.getLogger(__name__)

STOP_TIMEOUT_S: Final = 25.0
"""A stop that takes longer ends the process; the next start recovers."""

_PARENT_POLL_S: Final = 0.5
_RECONNECT_S: Final = 0.5
_CONNECT_TIMEOUT_S: Final = 5.0
_THREADS_GONE_S: Final = 1.0
_PATIENCE_S: Final = 2.0
_BROKER_POLL_S: Final = 0.1


class StopReason:
    """The first reason to stop, and a wait for it that signals interrupt.

    Signals come in twos and threes when an executor ends (from PySpark's daemon, the kernel, Spark), each in
    the middle of another's handler. A ``threading.Event`` would then wait for its own lock for ever; putting
    into a ``SimpleQueue`` is reentrant.
    """

    def __init__(self) -> None:
        self.text = ""
        self._given: queue.SimpleQueue[None] = queue.SimpleQueue()

    def give(self, text: str) -> None:
        if not self.text:
            self.text = text
            self._given.put(None)

    def is_given(self) -> bool:
        return bool(self.text)

    def wait(self, timeout_s: float | None = None) -> bool:
        try:
            self._given.get(timeout=timeout_s)
        except queue.Empty:
            return self.is_given()
        self._given.put(None)  # for other waiting threads
        return True


def run_broker_task(plan: BrokerPlan, rows: Iterator[Any]) -> Iterator[str]:
    """What the one task of a broker's Spark job runs; yields how the broker ended."""
    from pyspark import TaskContext  # a broker in a test has no Spark

    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        return iter(["not run: the supervisor relaunches brokers, not Spark"])
    return iter([run_broker_process(plan)])


def run_broker_process(plan: BrokerPlan) -> str:
    """Be the broker until there is a reason to stop. Ends the process unless it can be left as it was."""
    threads_before = set(threading.enumerate())
    reason = StopReason()
    handlers = _install_signal_handlers(reason)
    _watch_parent(reason)
    process = _BrokerProcess(plan, reason)
    try:
        outcome = process.run()
    except BaseException as error:
        logger.exception("broker process failed")
        if not process.has_joined and isinstance(error, ConfigError | PeerRefused):
            # The supervisor cannot be reached for good, so Spark delivers the reason.
            reason.give("stop")
            _put_back(handlers)
            raise
        # End the process: a half-started broker in a pooled worker would go on serving unnoticed.
        process.report_failure(error)
        logging.shutdown()
        os._exit(1)
    logging.shutdown()
    if reason.text != "stop" or not _threads_gone(threads_before):
        os._exit(0)
    _put_back(handlers)
    return outcome


def _install_signal_handlers(reason: StopReason) -> dict[int, Any]:
    def on_signal(number: int, _frame: FrameType | None) -> None:
        reason.give(signal.Signals(number).name)

    return {
        number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    }


def _put_back(handlers: dict[int, Any]) -> None:
    """Leave the worker's signals as they were."""
    die_with_parent(0)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _watch_parent(reason: StopReason) -> None:
    parent = os.getppid()
    die_with_parent(signal.SIGTERM)

    def watch() -> None:
        while not reason.wait(_PARENT_POLL_S):
            if os.getppid() != parent:
                reason.give("parent")

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _threads_gone(before: set[threading.Thread]) -> bool:
    """Whether no thread is left that was not there ``before``, given a moment."""
    deadline = time.monotonic() + _THREADS_GONE_S
    while left := [thread for thread in threading.enumerate() if thread not in before]:
        if time.monotonic() > deadline:
            return False
        left[0].join(0.05)
    return True


def _found_ids(patterns: tuple[str, ...]) -> list[int]:
    """Ids of the brokers that have a log directory on this host."""
    found = set()
    for pattern in patterns:
        before, _, after = pattern.partition("{id}")
        plain = before.format(), after.format()
        shape = re.compile(re.escape(plain[0]) + r"(\d+)" + re.escape(plain[1]))
        for path in glob.glob(glob.escape(plain[0]) + "*" + glob.escape(plain[1])):
            match = shape.fullmatch(path)
            if match is None:
                continue
            if not os.path.isdir(path):
                raise LogDirectoryError(f"{path} is no directory, and log.dirs needs one there: move it away")
            if os.listdir(path):
                found.add(int(match[1]))
    return sorted(found)


class _BrokerProcess:
    """The broker, its connection to the supervisor, and the order in which they start and stop."""

    def __init__(self, plan: BrokerPlan, reason: StopReason) -> None:
        self._plan = plan
        self._reason = reason
        self._connection: ControlConnection | None = None
        self._identity: BrokerIdentity | None = None
        self._registered: Message | None = None
        self._ended = threading.Event()
        self._started_at = time.monotonic()

    @property
    def has_joined(self) -> bool:
        """Whether there has been a connection to the supervisor."""
        return self._connection is not None

    def run(self) -> str:
        identity = self._join()
        if identity is None:
            return "stopped before it knew its id"
        self._identity = identity
        refuse_log_dirs(identity.log_dirs, spark_folders(Path.cwd(), os.environ), socket.gethostname())
        _log_to_file(self._plan.log_file_pattern.format(id=identity.broker_id))
        logger.info(
            "broker %d starts as process %d on ports %s", identity.broker_id, os.getpid(), identity.ports
        )
        threading.Thread(target=self._listen, name="control", daemon=True).start()
        broker = self._make(identity)
        self._start(broker)
        while self._has_lost_session(broker):
            logger.warning("broker %d starts again in this process: %s", identity.broker_id, broker.failure)
            broker = self._make(replace(identity, ports=broker.ports))
            self._start(broker)
        logger.info("broker %d stops: %s", identity.broker_id, self._reason.text)
        self._stop(broker)
        return f"broker {identity.broker_id} stopped: {self._reason.text}"

    def _make(self, identity: BrokerIdentity) -> RunningBroker:
        make = self._plan.make_broker
        if make is not None:
            return make(self._plan, identity)
        return make_real_broker(self._plan, identity, self._tell_recovery)

    def _has_lost_session(self, broker: RunningBroker) -> bool:
        """Wait for a reason to stop (False), or for the end of the broker's ZooKeeper session (True)."""
        while not self._reason.is_given():
            if broker.wait_stopped(_BROKER_POLL_S):
                if broker.has_lost_session and not self._reason.is_given():
                    return True
                self._reason.give(f"broker: {broker.failure or 'it stopped by itself'}")
        return False

    def report_failure(self, error: BaseException) -> None:
        """Report to the supervisor why the broker cannot run, if it is connected."""
        fatal = isinstance(error, ConfigError)
        known = isinstance(error, SparklogError | OSError)
        text = str(error) if known else f"{type(error).__name__}: {error}"
        host = socket.gethostname()
        if is_executor(os.environ) and f"host {host}" not in text:
            text = f"host {host}: {text}"
        self._tell(
            {
                "type": "failed",
                "slot": self._plan.slot,
                "reason": text[:2_000],
                "fatal": fatal,
                "unsafe": isinstance(error, UnsafeStartError),
                "zookeeper_is_away": isinstance(error, ZooKeeperError),
            }
        )

    def _join(self) -> BrokerIdentity | None:
        """Connect, send the hello, and wait for our identity; None if we have to stop first."""
        plan = self._plan
        connection = self._open()
        self._connection = connection
        connection.send(self._hello())
        welcome = None
        while welcome is None and not self._reason.is_given():
            try:
                welcome = connection.receive(_PARENT_POLL_S)
            except TimeoutError:
                continue
            if welcome is None:
                raise ControlError(f"the supervisor at {connection.peer_name} refused this broker process")
            if welcome["type"] == "stop":
                self._reason.give("stop")
        if welcome is None or welcome["type"] != "welcome":
            return None
        return plan.identity(
            require_int(welcome, "broker_id"), require_mapping(welcome, "ports", int), connection.local_host
        )

    def _open(self) -> ControlConnection:
        """A connection to the supervisor, both sides of which have proved that they know the run's token."""
        plan = self._plan
        connection = ControlConnection.open(
            plan.supervisor_host, plan.supervisor_port, _CONNECT_TIMEOUT_S, control_tls(plan)
        )
        try:
            join(connection, plan.token)
        except BaseException:
            connection.close()
            raise
        return connection

    def _hello(self) -> Message:
        hello = {
            "type": "hello",
            "slot": self._plan.slot,
            "pid": os.getpid(),
            "found": _found_ids(self._plan.log_dir_patterns),
        }
        return hello if self._identity is None else {**hello, "broker_id": self._identity.broker_id}

    def _start(self, broker: RunningBroker) -> None:
        """Start the broker in a thread of its own, so that a reason to stop can interrupt the wait."""
        failures: list[BaseException] = []

        def start() -> None:
            try:
                broker.start()
            except BaseException as error:  # noqa: BLE001 (raised again in the main thread)
                failures.append(error)

        starter = threading.Thread(target=start, name="broker-start", daemon=True)
        starter.start()
        while starter.is_alive() and not self._reason.is_given():
            starter.join(0.02)
        if self._reason.is_given():
            starter.join(STOP_TIMEOUT_S)
        if failures:
            raise failures[0]
        if starter.is_alive():
            raise SparklogError(f"the start of the broker did not end within {STOP_TIMEOUT_S} s of a stop")
        served = broker.node
        assert self._identity is not None
        self._registered = {
            "type": "registered",
            "epoch": int(served.epoch),
            "host": served.host,
            "port": served.port,
            "listeners": dict(broker.addresses),
            "log_dirs": list(self._identity.log_dirs),
            "metrics_port": broker.metrics_port,
        }
        self._tell(self._registered)

    def _tell_recovery(self, text: str) -> None:
        """Report progress of a recovery that takes long enough for people to wonder."""
        if time.monotonic() - self._started_at > _PATIENCE_S:
            self._tell({"type": "recovering", "text": text[:500]})

    def _stop(self, broker: RunningBroker) -> None:
        overdue = threading.Timer(STOP_TIMEOUT_S, self._exit_overdue)
        overdue.daemon = True
        overdue.start()
        broker.stop(clean=True)
        overdue.cancel()
        self._ended.set()
        self._tell({"type": "bye", "clean": True, "reason": self._reason.text})
        if self._connection is not None:
            self._connection.close()

    def _exit_overdue(self) -> NoReturn:
        logger.error(
            "the broker did not stop within %s s; the process exits, the next start recovers", STOP_TIMEOUT_S
        )
        logging.shutdown()
        os._exit(1)

    def _tell(self, message: Message) -> None:
        if self._connection is None:
            return
        try:
            self._connection.send(message)
        except OSError as error:
            logger.info("the supervisor did not receive %s: %s", message["type"], error)

    def _listen(self) -> None:
        """Receive from the supervisor, and connect again whenever the connection ends."""
        while not self._ended.is_set():
            message = self._receive()
            if message is None:
                self._reconnect()
            elif message["type"] == "stop":
                self._reason.give("stop")

    def _receive(self) -> Message | None:
        assert self._connection is not None
        try:
            return self._connection.receive()
        except (OSError, ControlError) as error:
            logger.warning("control connection: %s", error)
            return None

    def _reconnect(self) -> None:
        if self._ended.wait(_RECONNECT_S):
            return
        try:
            connection = self._open()
            connection.send(self._hello())
            if self._registered is not None:
                connection.send(self._registered)
        except (OSError, ControlError) as error:
            logger.info("the supervisor cannot be reached: %s", error)
            return
        self._connection = connection


def _log_to_file(path: str) -> None:
    """Send this process's log to the broker's own file. Workers are forked: replace what was inherited."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    log_to_file(Path(path))
    sys.excepthook = lambda kind, error, trace: logger.critical("uncaught", exc_info=(kind, error, trace))
