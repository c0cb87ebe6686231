"""Keeps one broker process per slot alive, and knows within milliseconds when one has died.

Each slot has a thread that runs a Spark job of one task, again and again: while the broker lives the job
runs; when it has ended, the thread waits (longer after each failed start) and runs it again.

The supervisor detects a death by the end of the TCP connection that every broker process keeps to it: the
kernel closes that at once, whereas Spark takes 0.15 s to more than a second to notice. ``broker_died`` is
then called with the broker's id and epoch, so that the controller can fail over long before ZooKeeper's
session timeout. It is a hint: the connection of a living broker may break too, and then ZooKeeper and the
broker epoch keep two incarnations apart. A connection that times out is none (``network_cuts``).

One lock guards all slots; callbacks are called without it.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from sparklog.core.controller.state.applications import HostedBroker
from sparklog.core.controller.state.wishes import WishedBroker
from sparklog.model.errors import ConfigError, SparklogError, UnsafeStartError
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.broker_process.control_channel import (
    ControlConnection,
    ControlError,
    Message,
    require_int,
    require_list,
    require_str,
)
from sparklog_runtime.executors.decommissions import SlotJob
from sparklog_runtime.stop.process_end import cause_of_end, end_in_words
from sparklog_runtime.supervision.control_listener import ControlListener
from sparklog_runtime.supervision.executor_waits import WaitingBroker
from sparklog_runtime.supervision.id_assignment import IdAssignment
from sparklog_runtime.supervision.network_cuts import Cuts, IsRegistered
from sparklog_runtime.supervision.slot_machine import Failure
from sparklog_runtime.supervision.slot_states import Do
from sparklog_runtime.supervision.slots import BrokerProcess, Order, Slot, name_of
from sparklog_runtime.supervision.wished_brokers import WishedBrokers

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsServer

logger: Final = logging.getLogger(__name__)

DECOMMISSIONED: Final = "its executor is decommissioned"

JOB_END_WAIT_S: Final = 5.0
"""How long a job may outlive its process's connection before it is cancelled."""

LAST_WORDS_WAIT_S: Final = 2.0
"""How long the end of a process's connection, with its reason, may follow the end of its job."""

CANCEL_INTERVAL_S: Final = 0.5
"""How often a stop cancels jobs that have no process yet: Spark may submit one after it was cancelled."""

CAUSE_WAIT_MS: Final = 20
"""How long a death waits for its cause, which follows the end of the connection within a millisecond or so:
others lead only once it is reported.
"""


class JobLauncher(Protocol):
    """Runs broker tasks: Spark, or plain processes in tests."""

    def run(self, plan: BrokerPlan) -> None:
        """Run a slot's task; returns or raises when it has ended."""
        ...

    def cancel(self, slot: int) -> None:
        """End a slot's task by force."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorCallbacks:
    """What the supervisor reports. Called on its threads, without its lock."""

    broker_died: Callable[[BrokerId, BrokerEpoch, str], None]
    """A registered broker's process ended: broker id, broker epoch, and the cause if the kernel gives it."""
    on_change: Callable[[], None]
    """``processes`` may answer differently now."""
    is_registered: IsRegistered = lambda broker, epoch: False
    """Asked while a broker's process cannot be reached."""
    on_notice: Callable[[str], None] = lambda text: None
    """A line for the user: a broker is away, or back."""


class Supervisor:
    """See the module's text. ``listen``, ``launch`` the plans, ``stop``."""

    def __init__(
        self,
        *,
        ids: IdAssignment,
        ports_of: Callable[[int], Mapping[str, int]],
        callbacks: SupervisorCallbacks,
        thread: Callable[..., threading.Thread] = threading.Thread,
        tls: "TlsServer | None" = None,
        wished: Mapping[int, WishedBroker] = MappingProxyType({}),
        renewed: Callable[[BrokerPlan], BrokerPlan] = lambda plan: plan,
    ) -> None:
        """``ports_of`` says by listener on which ports a broker listens, the one that users see first.
        ``tls``: of the control port; None for one in the clear. ``wished``: what is wished of brokers now.
        ``renewed``: a plan with settings as they are now, for a broker that is launched again; ConfigError.
        """
        self._renewed = renewed
        self._wishes = WishedBrokers(ids, dict(wished))
        self.token: Final = secrets.token_hex(32)
        self._ids = ids
        self._ports_of = ports_of
        self._callbacks = callbacks
        self._thread = thread
        self._slots: dict[int, Slot] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._cuts = Cuts(self._changed, callbacks.is_registered, callbacks.on_notice)
        self._listener = ControlListener(self.token, self._serve, tls)
        self._launcher: JobLauncher | None = None

    # ------------------------------------------------------------------ from the driver

    def listen(self, host: str, port: int = 0) -> int:
        """Open the control port, 0 for any; returns its number. PortInUse if another process has it."""
        return self._listener.open(host, port)

    def launch(self, plans: Sequence[BrokerPlan], launcher: JobLauncher) -> None:
        """Run one job per plan, each on a thread of its own, until ``stop``."""
        self._launcher = launcher
        with self._changed:
            if self._stopping:
                return
            self._slots = {plan.slot: Slot(plan) for plan in plans}
            slots = list(self._slots.values())
            self._follow_wishes()
        for slot in slots:
            runner = self._thread(
                target=self._run_slot,
                args=(slot, launcher),
                name=f"broker-slot-{slot.plan.slot}",
                daemon=True,
            )
            slot.threads.append(runner)
            runner.start()

    def obey(self, wished: Mapping[int, WishedBroker]) -> None:
        """This is wished of brokers now: stop those that shall not serve, launch those that shall."""
        with self._changed:
            if not self._wishes.note(wished):
                return
            orders = self._follow_wishes()
            self._changed.notify_all()
        self._carry_out(orders)
        self._callbacks.on_change()

    def to_serve(self) -> list[int]:
        """The ids of brokers whose wish is to serve."""
        with self._changed:
            return self._wishes.to_serve()

    def processes(self) -> list[BrokerProcess]:
        """The broker processes, by broker id; one that died stays until its successor said hello. Brokers
        that stay stopped have none.
        """
        with self._changed:
            found = [
                slot.process
                for slot in self._slots.values()
                if slot.process is not None and (slot.connection is not None or self._may_run(slot))
            ]
        return sorted(found, key=lambda process: process.broker_id)

    def waiting_for_executors(self) -> list[WaitingBroker]:
        """Brokers that were launched again, and whose job has no process yet."""
        now = time.monotonic()
        with self._changed:
            running = [one for one in self._slots.values() if one.machine.job_runs and self._may_run(one)]
            found = [
                (one.process, one.machine.without_process_since) for one in running if not one.is_connected
            ]
        return [WaitingBroker(one.broker_id, since, now - since) for one, since in found if one is not None]

    def jobs(self) -> list[SlotJob]:
        """The jobs whose brokers run."""
        with self._changed:
            return [
                SlotJob(one.plan.slot, one.machine.job) for one in self._slots.values() if one.is_connected
            ]

    def leave_executor(self, job: SlotJob) -> None:
        """The executor of this job is decommissioned: its broker stops in order, and is launched again."""
        with self._changed:
            slot = self._slots[job.slot]
            do = slot.machine.decommissioned(job.job, DECOMMISSIONED)
            order = slot.order(do)
        if do is not Do.NOTHING:
            self._callbacks.on_notice(f"{name_of(slot)} stops: {DECOMMISSIONED}")
        self._carry_out([order])

    def hosted(self) -> list[HostedBroker]:
        """How each broker is that has had a process here, or stays stopped; by broker id."""
        with self._changed:
            return self._wishes.hosted(self._slots.values())

    def wait_registered(self, timeout_s: float) -> bool:
        """Wait until all brokers serve; ends early, with False, at a stop or when one cannot."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._is_complete() or self._failure() is not None, timeout_s
            )
            return self._is_complete()

    def connections(self) -> list[ControlConnection]:
        """Open connections of broker processes that have said hello."""
        return self._listener.connections()

    def failed(self) -> SparklogError | None:
        """Why a broker cannot start, once trying again has no prospect; UnsafeStartError if it is refused for
        safety.
        """
        with self._changed:
            return self._failure()

    def stop(self, timeout_s: float) -> bool:
        """Ask every broker to stop, and wait; cancel jobs that last longer. True if all ended in time.

        A job whose process never connected is cancelled at once, because it may wait for an executor.
        """
        with self._changed:
            self._stopping = self._cuts.is_over = True
            slots = list(self._slots.values())
            for slot in slots:
                slot.machine.application_stops()
            self._changed.notify_all()
        for connection in self.connections():
            _try_send(connection, {"type": "stop"})
        deadline = time.monotonic() + timeout_s
        all_ended = self._wait_ended_or_cancel_waiting(slots, deadline)
        if not all_ended and self._launcher is not None:
            for slot in [slot for slot in slots if not slot.ended]:
                logger.warning(
                    "slot %d did not stop within %.0f s; its job is cancelled", slot.plan.slot, timeout_s
                )
                self._cancel(slot, slot.machine.job)
            self._wait_ended(slots, time.monotonic() + JOB_END_WAIT_S)
        self._listener.close()
        return all_ended

    # ------------------------------------------------------------------ slots

    def _is_complete(self) -> bool:
        return self._wishes.are_registered(self._slots.values())

    def _may_run(self, slot: Slot) -> bool:
        return self._wishes.may_run(slot, self._slots.values())

    def _failure(self) -> SparklogError | None:
        return next((found for one in self._slots.values() if (found := one.machine.lasting_failure)), None)

    def _wait_ended(self, slots: Sequence[Slot], deadline: float) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: all(slot.ended for slot in slots), max(0.0, deadline - time.monotonic())
            )

    def _wait_ended_or_cancel_waiting(self, slots: Sequence[Slot], deadline: float) -> bool:
        """Wait until all slots have ended or the deadline has passed, and cancel jobs without a process."""
        while not self._wait_ended(slots, min(deadline, time.monotonic() + CANCEL_INTERVAL_S)):
            if time.monotonic() >= deadline:
                return False
            with self._changed:
                waiting = [(slot, slot.machine.job) for slot in slots if slot.process is None]
            for slot, job in waiting:
                self._cancel(slot, job)
        return True

    def _run_slot(self, slot: Slot, launcher: JobLauncher) -> None:
        try:
            while self._await_wish(slot):
                self._run_job(slot, launcher)
                self._pause(slot)
        finally:
            with self._changed:
                slot.ended = True
                self._changed.notify_all()

    def _await_wish(self, slot: Slot) -> bool:
        """Wait until its broker is to serve, and launch; False at a stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or slot.machine.may_launch)
            if self._stopping:
                return False
            slot.machine.launches(self._wishes.starts_of(slot), time.monotonic())
            return True

    def _run_job(self, slot: Slot, launcher: JobLauncher) -> None:
        machine, error = slot.machine, None
        try:
            if machine.job > 1:
                slot.plan = self._renewed(slot.plan)
            launcher.run(slot.plan)
        except Exception as caught:  # noqa: BLE001 (Spark reports the death of a broker as its own errors)
            error = Failure(
                reason=_first_line(caught),
                is_fatal=isinstance(caught, ConfigError),
                is_unsafe=isinstance(caught, UnsafeStartError),
            )
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or slot.has_said_why, LAST_WORDS_WAIT_S)
            crash_loop = machine.job_ended(error, time.monotonic())
            is_wished = machine.is_wished
            self._changed.notify_all()
        if not self._stopping and is_wished:
            how = "the broker stopped" if error is None else error.reason
            logger.warning("the job of slot %d ended: %s", slot.plan.slot, how)
            if crash_loop is not None:
                self._callbacks.on_notice(f"{name_of(slot)}: {crash_loop}")

    def _pause(self, slot: Slot) -> None:
        """Wait before the next job, unless a start is asked for now."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._stopping
                    or not slot.machine.is_wished
                    or self._wishes.starts_of(slot) != slot.machine.obeyed_starts
                ),
                slot.machine.starts.pause_s(),
            )

    def _cancel(self, slot: Slot, job: int) -> None:
        with self._changed:
            if slot.machine.job != job or not slot.machine.job_runs or self._launcher is None:
                return
            launcher = self._launcher
        launcher.cancel(slot.plan.slot)

    def _follow_wishes(self) -> list[Order]:
        """Each slot follows what is wished of its broker now; what is to be done then, without the lock."""
        return [slot.order(slot.machine.wished(self._may_run(slot))) for slot in self._slots.values()]

    def _carry_out(self, orders: Sequence[Order]) -> None:
        for order in orders:
            if order.do is Do.ASK_TO_STOP and order.connection is not None:
                _try_send(order.connection, {"type": "stop"})
            elif order.do is Do.CANCEL_JOB:
                self._cancel(order.slot, order.job)

    # ------------------------------------------------------------------ connections

    def _serve(self, connection: ControlConnection, first: Message) -> None:
        """One connection of a broker process: from its hello to its end, or one message, a failure."""
        if first["type"] == "failed":
            self._on_failed(self._slot(first), first)
            return
        slot = self._greet(connection, first)
        if slot is None:
            return
        error: OSError | None = None
        try:
            while (message := connection.receive()) is not None:
                self._on_message(slot, connection, message)
        except OSError as caught:
            error = caught
            raise
        finally:
            connection.close()
            self._cuts.outlast(slot, connection, error)
            self._on_connection_end(slot, connection)

    def _greet(self, connection: ControlConnection, hello: Message) -> Slot | None:
        """Send the process its broker id. None if the process has to stop."""
        slot = self._slot(hello)
        broker_id = self._identify(slot, hello)
        if broker_id is None:
            connection.send({"type": "stop"})
            return None
        pid = require_int(hello, "pid")
        orders = self._take_over(slot, connection, broker_id, pid)
        connection.send({"type": "welcome", "broker_id": broker_id, "ports": dict(self._ports_of(broker_id))})
        self._carry_out(orders)
        logger.info("broker %d is process %d", broker_id, pid)
        self._callbacks.on_change()
        return slot

    def _slot(self, message: Message) -> Slot:
        with self._changed:
            slot = self._slots.get(require_int(message, "slot"))
        if slot is None:
            raise ControlError(f"there is no slot {message['slot']}")
        return slot

    def _identify(self, slot: Slot, hello: Message) -> int | None:
        found = (
            [require_int(hello, "broker_id")] if "broker_id" in hello else require_list(hello, "found", int)
        )
        with self._changed:
            while not self._stopping and self._may_run(slot):
                now_ms = time.monotonic_ns() // 1_000_000
                broker_id = self._ids.claim(slot.plan.slot, found, now_ms, self._wishes.to_serve())
                if broker_id is not None:
                    return broker_id
                self._changed.wait(0.2)
        return None

    def _take_over(self, slot: Slot, connection: ControlConnection, broker_id: int, pid: int) -> list[Order]:
        with self._changed:
            port = next(iter(self._ports_of(broker_id).values()))
            do = slot.take_over(connection, BrokerId(broker_id), pid, port)
            orders = [slot.order(do), *self._follow_wishes()]
            self._changed.notify_all()
            return orders

    def _on_message(self, slot: Slot, connection: ControlConnection, message: Message) -> None:
        match message["type"]:
            case "registered":
                self._on_registered(slot, connection, message)
            case "recovering":
                text = require_str(message, "text")
                with self._changed:
                    slot.machine.recovers()
                if slot.process is not None:
                    self._callbacks.on_notice(f"broker {slot.process.broker_id}: {text}")
            case "failed":
                self._on_failed(slot, message)
            case "bye":
                with self._changed:
                    is_clean = message.get("clean") is True
                    slot.machine.bade_farewell(str(message.get("reason", ""))[:500], clean=is_clean)
            case unknown:
                raise ControlError(f"a broker does not say {unknown!r}")

    def _on_failed(self, slot: Slot, message: Message) -> None:
        """A broker's process cannot run; it may not even have said hello."""
        reason = require_str(message, "reason")
        logger.error("the broker in slot %d cannot run: %s", slot.plan.slot, reason)
        with self._changed:
            is_new = slot.note_failure(reason, message)
            self._changed.notify_all()
        if is_new:
            self._callbacks.on_notice(f"{name_of(slot)} cannot run: {reason}")

    def _on_registered(self, slot: Slot, connection: ControlConnection, message: Message) -> None:
        with self._changed:
            if slot.connection is not connection or slot.process is None:
                return
            died_at, process = slot.register(message), slot.process
            logger.info("broker %d is registered in epoch %d", process.broker_id, process.epoch)
            self._changed.notify_all()
        self._callbacks.on_change()
        if died_at is not None and not self._stopping:
            away_s = time.monotonic() - died_at
            text = f"broker {process.broker_id} is back as process {process.pid} after {away_s:.1f} s"
            self._callbacks.on_notice(text)
            logger.info("%s", text)

    def _on_connection_end(self, slot: Slot, connection: ControlConnection) -> None:
        """The process of a slot has died, has stopped, or cannot be reached."""
        with self._changed:
            if slot.connection is not connection:
                return  # it has connected again meanwhile
            machine, process, job = slot.machine, slot.process, slot.machine.job
            self._ids.release(slot.plan.slot)
            had_served, do, watch = slot.lose_connection()
            farewell = machine.leaves or machine.farewell
            self._changed.notify_all()
        if process is not None and do is Do.REPORT_DEATH:
            logger.warning("broker %d, process %d, has died", process.broker_id, process.pid)
            cause = cause_of_end(None if watch is None else watch.status(CAUSE_WAIT_MS))
            self._callbacks.broker_died(process.broker_id, process.epoch, cause)
        how = f"stopped ({farewell})" if farewell else end_in_words(watch.status() if watch else None)
        with self._changed:
            machine.farewell = farewell or f"it {how}"
            is_wished = machine.is_wished
        if process is not None and had_served and not self._stopping:
            what = f"{how}; it is launched again" if is_wished else "stopped, as it was asked to"
            self._callbacks.on_notice(f"broker {process.broker_id} (process {process.pid}) {what}")
        if not is_wished:
            self._callbacks.on_change()
        if watch is not None:
            watch.close()
        with self._changed:
            over = self._changed.wait_for(
                lambda: machine.job != job or not machine.job_runs or slot.is_connected, JOB_END_WAIT_S
            )
        if not over:
            logger.warning("the job of slot %d outlives its process; it is cancelled", slot.plan.slot)
            self._cancel(slot, job)


def _try_send(connection: ControlConnection, message: Message) -> None:
    try:
        connection.send(message)
    except OSError as error:
        logger.info("%s did not receive %s: %s", connection.peer_name, message["type"], error)


def _first_line(error: BaseException) -> str:
    text = str(error) if isinstance(error, SparklogError) else f"{type(error).__name__}: {error}"
    return text.splitlines()[0][:500]
