"""A slot of the supervisor: its machine, its process, and how its broker is in the words of ``status``."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sparklog.core.controller.state.applications import HostedBroker
from sparklog.core.controller.state.wishes import Wish
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
from sparklog_runtime.supervision.slot_machine import Failure, SlotMachine
from sparklog_runtime.supervision.slot_states import Do, SlotState


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


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with a slot, without the lock: its job and its connection as they were under it."""

    slot: "Slot"
    do: Do
    job: int
    connection: ControlConnection | None


@dataclass(slots=True)
class Slot:
    plan: BrokerPlan
    machine: SlotMachine = field(default_factory=SlotMachine)
    process: BrokerProcess | None = None
    """The last process that said hello; kept after its death until another takes over."""
    connection: ControlConnection | None = None
    watch: ProcessWatch | None = None
    threads: list[threading.Thread] = field(default_factory=list)
    ended: bool = False
    shown: HostedBroker | None = None
    """What was last said of its broker."""

    @property
    def is_connected(self) -> bool:
        return self.connection is not None

    @property
    def has_said_why(self) -> bool:
        """Whether the reason of its end is here, or will not be. Spark and the connection report it apart."""
        return bool(self.machine.farewell or self.machine.failure) or not self.is_connected

    def order(self, do: Do) -> Order:
        return Order(self, do, self.machine.job, self.connection)

    def register(self, message: Message) -> float | None:
        """Its process serves. Since when it was away, by the monotonic clock; None at the first start."""
        assert self.process is not None, self
        self.process = registered_process(self.process, message)
        return self.machine.registered(time.monotonic())

    def note_failure(self, reason: str, message: Message) -> bool:
        """Its process said that it cannot run; whether the reason is another than was shown last."""
        failure = Failure(
            reason=reason,
            is_fatal=message.get("fatal") is True,
            is_unsafe=message.get("unsafe") is True,
        )
        return self.machine.failed(failure, zookeeper_is_away=message.get("zookeeper_is_away") is True)

    def take_over(self, connection: ControlConnection, broker_id: BrokerId, pid: int, port: int) -> Do:
        """A process said hello, which is not registered yet."""
        self.connection = connection
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
        return self.machine.said_hello(pid)

    def lose_connection(self) -> tuple[bool, Do, ProcessWatch | None]:
        """Its connection ended. Whether its broker had served, what to do, and what knows the cause."""
        self.connection = None
        if self.process is not None:
            self.process = replace(self.process, is_registered=False)
        watch, self.watch = self.watch, None
        return *self.machine.ended(time.monotonic()), watch


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


def hosted_of(slot: Slot, wish: Wish) -> HostedBroker:
    """``since_ms`` stays while the state does."""
    assert slot.process is not None, slot
    machine, shown = slot.machine, slot.shown
    machine.looked_at(time.monotonic())
    state = wish.value if machine.state is SlotState.STOPPED else machine.state.word
    is_same = shown is not None and shown.state == state
    slot.shown = HostedBroker(
        slot.process.broker_id,
        state,
        machine.reason if wish is Wish.serving else "",
        shown.since_ms if shown is not None and is_same else time.time_ns() // 1_000_000,
        max(0, machine.job - 1),
        machine.obeyed_starts,
    )
    return slot.shown


def name_of(slot: Slot) -> str:
    if slot.process is not None:
        return f"broker {slot.process.broker_id}"
    return f"the broker of slot {slot.plan.slot}, whose id is not known yet,"


def _metrics_port(message: Message) -> int | None:
    return None if message.get("metrics_port") is None else require_int(message, "metrics_port")
