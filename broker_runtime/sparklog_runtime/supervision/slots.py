"""A slot of the supervisor: its job, its process, and how its broker is in the words of ``status``."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.controller.state.applications import HostedBroker
from sparklog.core.controller.state.wishes import Wish
from sparklog.model.errors import SparklogError, UnsafeStartError
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch, BrokerId
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.broker_process.control_channel import (
    ControlConnection,
    Message,
    require_int,
    require_list,
    require_mapping,
    require_str,
)
from sparklog_runtime.stop.process_end import ProcessWatch
from sparklog_runtime.supervision.start_history import CRASH_LOOP_STARTS, StartHistory

NO_EXECUTOR_S: Final = 10.0
"""A job that has no process after this long waits for an executor."""


START_TRIES_MAX: Final = 3
"""After so many starts that led to no registered broker, a start of the cluster fails."""


@dataclass(frozen=True, slots=True)
class BrokerProcess:
    """A broker's process as it is now."""

    broker_id: BrokerId
    pid: int
    host: str
    port: int
    epoch: BrokerEpoch
    log_dirs: tuple[str, ...]
    is_registered: bool
    metrics_port: int | None = None
    listeners: Mapping[str, str] = field(default_factory=dict)
    """``host:port`` by listener name, once it is registered."""


@dataclass(slots=True)
class Slot:
    plan: BrokerPlan
    process: BrokerProcess | None = None
    """The last process that said hello; kept after its death until another takes over."""
    connection: ControlConnection | None = None
    registered_at: float | None = None
    starts: StartHistory = field(default_factory=StartHistory)
    shown_reason: str = ""
    """Why its broker cannot run, as it was reported last: a reason that stays is reported once."""
    ended: bool = False
    job: int = 0
    """Counts this slot's jobs, so that a cancel meant for one never hits the next."""
    job_runs: bool = False
    without_process_since: float = 0.0
    """When its job was launched, or when the process of that job ended: Spark runs a task again by itself."""
    said_bye: bool = False
    buried_pid: int = -1
    """The last process that was reported dead."""
    farewell: str = ""
    """Why the process stopped, if it said so before it ended."""
    is_cut: bool = False
    """Whether its process cannot be reached, and its registration may last: nothing is launched meanwhile."""
    leaves: str = ""
    """Why its process was asked to stop, to be launched again elsewhere."""
    watch: ProcessWatch | None = None
    died_at: float | None = None
    """Since when its broker is away; None while it serves."""
    failure: str = ""
    fatal: bool = False
    is_unsafe: bool = False
    """Whether its start is refused for safety."""
    zookeeper_is_away: bool = False
    """Whether that is the failure of this start."""
    threads: list[threading.Thread] = field(default_factory=list)
    is_recovering: bool = False
    """Whether the process said that it is, and has not registered since."""
    shown: HostedBroker | None = None
    """What was last said of its broker."""
    obeyed_starts: int = 0
    """The wish's ``starts`` that its present job follows."""

    def begin_job(self, now: float) -> None:
        """A job is launched at ``now``, by the monotonic clock in seconds."""
        self.job += 1
        self.job_runs = True
        self.without_process_since = now
        self.registered_at = None
        self.zookeeper_is_away = False
        self.farewell = self.leaves = ""

    @property
    def has_said_why(self) -> bool:
        """Whether the reason of its end is here, or will not be. Spark and the connection report it apart."""
        return bool(self.farewell or self.failure) or not self.is_connected

    def end_job(self, error: str, now: float, *, is_fatal: bool, is_unsafe: bool) -> tuple[float | None, str]:
        """Its job has ended, with Spark's ``error`` or none: how many seconds its broker served, or None if
        it never did, and why it ended, or nothing.
        """
        self.job_runs = False
        if error and self.registered_at is None and not self.failure:
            self.failure, self.fatal, self.is_unsafe = error, is_fatal, is_unsafe
        served_s = None if self.registered_at is None else now - self.registered_at
        return served_s, self.farewell or self.failure or error

    def register(self, message: Message) -> float | None:
        """Its process serves. Since when it was away, by the monotonic clock; None at the first start."""
        assert self.process is not None, self
        self.process = registered_process(self.process, message)
        self.registered_at = time.monotonic()
        self.failure = self.shown_reason = ""
        self.is_recovering = False
        died_at, self.died_at = self.died_at, None
        return died_at

    def note_failure(self, reason: str, message: Message) -> bool:
        """Its process said that it cannot run; whether the reason is another than was shown last."""
        self.failure = self.farewell = reason
        self.fatal = message.get("fatal") is True
        self.is_unsafe = message.get("unsafe") is True
        self.zookeeper_is_away = message.get("zookeeper_is_away") is True
        is_new, self.shown_reason = reason != self.shown_reason, reason
        return is_new

    @property
    def lasting_failure(self) -> SparklogError | None:
        """Why its broker cannot start, once trying again has no prospect."""
        if not self.failure or not (self.fatal or self.starts.barren >= START_TRIES_MAX):
            return None
        return (UnsafeStartError if self.is_unsafe else SparklogError)(self.failure)

    @property
    def is_connected(self) -> bool:
        return self.connection is not None

    def leave(self, job: int, why: str) -> ControlConnection | None:
        """Its process is to stop, if it still is that of ``job``: the connection over which to say so."""
        if self.job != job or self.connection is None:
            return None
        self.leaves = why
        return self.connection

    def take_over(self, connection: ControlConnection, broker_id: BrokerId, pid: int, port: int) -> None:
        """A process said hello, which is not registered yet."""
        self.connection = connection
        self.is_cut = False
        self.is_recovering = False
        self.said_bye = False
        self.farewell = self.leaves = ""
        if self.watch is not None:
            self.watch.close()
        # A process of another host has a number that means another process here.
        self.watch = ProcessWatch(pid) if self.plan.host is not None else None
        self.process = BrokerProcess(
            broker_id=broker_id,
            pid=pid,
            host=self.plan.host or "",
            port=port,
            epoch=NO_BROKER_EPOCH,
            log_dirs=tuple(pattern.format(id=broker_id) for pattern in self.plan.log_dir_patterns),
            is_registered=False,
        )


def registered_process(process: BrokerProcess, message: Message) -> BrokerProcess:
    """The process after its message that it is registered. ControlError if that lacks something."""
    return BrokerProcess(
        broker_id=process.broker_id,
        pid=process.pid,
        host=require_str(message, "host"),
        port=require_int(message, "port"),
        epoch=BrokerEpoch(require_int(message, "epoch")),
        log_dirs=tuple(require_list(message, "log_dirs", str)),
        is_registered=True,
        metrics_port=_metrics_port(message),
        listeners=require_mapping(message, "listeners", str),
    )


def hosted_of(slot: Slot, wish: Wish, *, is_stopping: bool) -> HostedBroker:
    """``since_ms`` stays while the state does."""
    assert slot.process is not None, slot
    state = state_of(slot, wish, is_stopping=is_stopping)
    reason = slot.starts.last_reason if state == "crash loop" else slot.farewell or slot.failure
    shown = slot.shown
    is_same = shown is not None and shown.state == state
    slot.shown = HostedBroker(
        slot.process.broker_id,
        state,
        "" if state == "serving" or wish is not Wish.serving else reason,
        shown.since_ms if shown is not None and is_same else time.time_ns() // 1_000_000,
        max(0, slot.job - 1),
        slot.obeyed_starts,
    )
    return slot.shown


def state_of(slot: Slot, wish: Wish, *, is_stopping: bool) -> str:
    """In the words of ``sparklog status``."""
    if is_stopping:
        return "stopping"
    if wish is not Wish.serving:
        return "stopping" if slot.connection is not None else wish.value
    if slot.process is not None and slot.process.is_registered:
        return "serving"
    if slot.starts.short >= CRASH_LOOP_STARTS:
        return "crash loop"
    if slot.connection is not None:
        return "recovering" if slot.is_recovering else "starting"
    has_waited = time.monotonic() - slot.without_process_since >= NO_EXECUTOR_S
    return "no executor" if slot.job_runs and has_waited else "away"


def name_of(slot: Slot) -> str:
    if slot.process is not None:
        return f"broker {slot.process.broker_id}"
    return f"the broker of slot {slot.plan.slot}, whose id is not known yet,"


def _metrics_port(message: Message) -> int | None:
    return None if message.get("metrics_port") is None else require_int(message, "metrics_port")
