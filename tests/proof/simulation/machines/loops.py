"""Drives loops (``sparklog.model.loops``) by events: the counterpart of ``sparklog.network.loop_threads``.

A loop that fails ends the run: in a real process it would begin anew, and the bug would only be in the log.
"""

from collections.abc import Callable
from typing import Any, Final

from simulation.machines.network import Call, Network, OnFailure, OnResponse
from simulation.schedule import US_PER_MS, Event, Process
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId
from sparklog.model.loops import (
    Await,
    CallBroker,
    CallController,
    Loop,
    Pause,
    Question,
    Signal,
    go_on,
)
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest

TURN_US: Final = 50
"""What a turn of a loop takes at least."""


class LoopTasks:
    """``sparklog.model.loops.Loops``: the loops of one process."""

    def __init__(self, process: Process, host: str, network: Network) -> None:
        self.process: Final = process
        self.host: Final = host
        self.network: Final = network
        self.turns_us: dict[str, int] = {}
        """How long a turn of a loop takes at least, by its name, where that is not ``TURN_US``."""
        self._running: list[_LoopTask] = []

    def start(self, name: str, begin: Callable[[], Loop]) -> None:
        task = _LoopTask(self, begin(), self.turns_us.get(name, TURN_US))
        self._running.append(task)
        self.process.soon(task.begin)

    def hang_up(self, broker_id: BrokerId, lane: int = 0) -> None:
        """End the calls to this broker on that lane, as ``PeerConnections.forget`` does."""
        for task in self._running:
            if (call := task.call_to(broker_id, lane)) is not None:
                call.abandon()

    def has_ended(self, node: Node, lane: int) -> bool:
        """Whether that broker's process has ended, as ``PeerConnections.has_ended`` finds out."""
        return self.network.refuses(self.host, node.host)

    def call_controller(
        self, question: CallController, answered: "OnResponse", failed: "OnFailure"
    ) -> Call | None:
        raise AssertionError(f"this process has no way to the controller: {question}")

    def ended(self, task: "_LoopTask") -> None:
        self._running.remove(task)


class _LoopTask:
    """One loop: each outcome is an event, which goes on to the next question."""

    def __init__(self, tasks: LoopTasks, loop: Loop, turn_us: int) -> None:
        self._tasks = tasks
        self._process = tasks.process
        self._loop = loop
        self._turn_us = turn_us
        self._question: Question | None = None
        self._call: Call | None = None

    def begin(self) -> None:
        self._take(go_on(self._loop))

    def call_to(self, broker_id: BrokerId, lane: int) -> Call | None:
        """The call that it waits for, if that goes to this broker on that lane."""
        question = self._question
        if not isinstance(question, CallBroker) or (question.node.id, question.lane) != (broker_id, lane):
            return None
        return self._call

    def _take(self, question: Question | None) -> None:
        self._question, self._call = question, None
        match question:
            case None:
                self._tasks.ended(self)
            case Pause(delay_ms):
                self._after(delay_ms * US_PER_MS, lambda: self._answered(None))
            case Await(signal, timeout_ms):
                self._await(signal, timeout_ms)
            case CallBroker(node, LeanFetchRequest()) if not self._tasks.network.has_lean_fetch(node.host):
                # As a connection that knows it from ApiVersions; nothing is sent.
                unknown = KafkaError(ErrorCode.unsupported_version, f"{node.host} has no LeanFetch")
                self._after(0, lambda: self._failed(unknown))
            case CallBroker(node, message, timeout_ms, lane):
                tasks = self._tasks
                self._call = tasks.network.call(
                    self._process,
                    tasks.host,
                    node.host,
                    message,
                    timeout_ms=timeout_ms,
                    on_response=self._answered,
                    on_failure=self._failed,
                    lane=lane,
                )
            case CallController():
                self._tasks.call_controller(question, self._answered, self._failed)

    def _await(self, signal: Signal, timeout_ms: int | None) -> None:
        ends: list[Event] = []

        def ended() -> None:
            signal.wake = None
            for event in ends:
                event.cancel()
            self._answered(signal.take())

        def given() -> None:
            signal.wake = None
            ends.append(self._after(0, ended))

        if timeout_ms is not None:
            ends.append(self._after(timeout_ms * US_PER_MS, ended))
        if signal.is_given:
            given()
        else:
            signal.wake = given

    def _after(self, delay_us: int, action: Callable[[], None]) -> Event:
        return self._process.schedule.after(max(delay_us, self._turn_us), self._process, action)

    def _answered(self, outcome: Any) -> None:
        self._take(go_on(self._loop, outcome))

    def _failed(self, error: Exception) -> None:
        self._take(go_on(self._loop, error=error))
