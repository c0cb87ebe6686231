"""What a broker does beside its loops, as events: its calls to the controller, its chores, its cleaner.

Each task is the counterpart of a thread wrapper of ``sparklog.broker`` and drives the same shipped object.
The loops themselves are the shipped ones (``machines.loops``).
"""

import contextlib
import random
from collections.abc import Callable, Generator
from typing import Any, Final, Literal

from simulation.machines.loops import LoopTasks
from simulation.machines.network import Call, Network, OnFailure, OnResponse
from simulation.schedule import US_PER_MS, Process, ProcessDied
from sparklog.broker.disks.log_cleaner import Cleaning, LogCleaner
from sparklog.broker.life.housekeeping import chores_of
from sparklog.broker.replicas.chores import Chores
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.model.ids import TopicPartition
from sparklog.model.loops import CallController, Changes
from sparklog.model.settings.config import BrokerConfig

Stage = Literal["under way", "done", "given up"]


class SimulatedLink:
    """The connections to the controller; the counterpart of ``ControllerLink``."""

    def __init__(self, process: Process, host: str, network: Network) -> None:
        self.changes = Changes()
        self.address: str | None = None
        """Of whom it takes for the controller."""
        self.on_send: Callable[[Any], None] = lambda message: None
        """Called with each message that leaves."""
        self._process = process
        self._host = host
        self._network = network
        self._calls: list[Call] = []
        self._waiting: list[Callable[[], None]] = []
        """Calls for which there was no controller yet."""

    def call(self, message: Any, *, timeout_ms: int, on_response: OnResponse, on_failure: OnFailure) -> None:
        """Send ``message`` to the controller; as soon as there is one, if that is before the time-out."""
        if self.address is not None:
            self._send(self.address, message, timeout_ms, on_response, on_failure)
            return

        def send() -> None:
            deadline.cancel()
            self.call(message, timeout_ms=timeout_ms, on_response=on_response, on_failure=on_failure)

        def fail() -> None:
            if send not in self._waiting:
                return  # ``lead_to`` has just had it sent
            self._waiting.remove(send)
            on_failure(ConnectionError("no controller is elected"))

        self._waiting.append(send)
        deadline = self._process.schedule.after(timeout_ms * US_PER_MS, self._process, fail)

    def lead_to(self, controller: ControllerNode | None) -> None:
        address = None if controller is None else controller.host
        if address == self.address:
            return
        self.address = address
        calls, self._calls = self._calls, []
        for call in calls:
            call.abandon()
        if address is not None:
            waiting, self._waiting = self._waiting, []
            for send in waiting:
                self._process.soon(send)
        self.changes.happened()

    def _send(
        self, address: str, message: Any, timeout_ms: int, on_response: OnResponse, on_failure: OnFailure
    ) -> None:
        self.on_send(message)
        call = self._network.call(
            self._process,
            self._host,
            address,
            message,
            timeout_ms=timeout_ms,
            on_response=on_response,
            on_failure=on_failure,
        )
        if call is not None:
            self._calls = [other for other in self._calls if other.connection.is_open] + [call]


class BrokerLoops(LoopTasks):
    """The loops of a broker, with its way to the controller."""

    def __init__(self, process: Process, host: str, network: Network) -> None:
        super().__init__(process, host, network)
        self.link: Final = SimulatedLink(process, host, network)

    def call_controller(self, question: CallController, answered: OnResponse, failed: OnFailure) -> None:
        self.link.call(
            question.message, timeout_ms=question.timeout_ms, on_response=answered, on_failure=failed
        )


class ChoreTasks:
    """The counterpart of ``Housekeeping``."""

    def __init__(self, process: Process, chores: Chores, config: BrokerConfig) -> None:
        self._process = process
        self._chores = chores_of(chores, config)

    def start(self) -> None:
        for index in range(len(self._chores)):
            self._later(index)

    def _later(self, index: int) -> None:
        interval_us = self._chores[index][0] * US_PER_MS
        self._process.schedule.after(interval_us, self._process, lambda: self._do(index))

    def _do(self, index: int) -> None:
        self._chores[index][1]()
        self._later(index)


class CleanerTask:
    """The counterpart of ``CleanerThreads``: a round goes step by step, with everything else in between.

    ``on_step`` hears which log was worked on, and how far the round is.
    """

    def __init__(
        self,
        process: Process,
        cleaner: LogCleaner,
        config: BrokerConfig,
        draw: random.Random,
        on_step: Callable[[TopicPartition, Stage], None],
    ) -> None:
        self._process = process
        self._cleaner = cleaner
        self._draw = draw
        self._on_step = on_step
        self._backoff_us = config.get_int("log.cleaner.backoff.ms") * US_PER_MS
        self._steps: Generator[int, None, None] | None = None
        self._is_busy = False

    def start(self) -> None:
        self._later(self._backoff_us, self._look)

    def abandon(self) -> None:
        """The process is gone: what a round has half done stays as it is on disk."""
        steps, self._steps = self._steps, None
        if steps is not None and not self._is_busy:
            with contextlib.suppress(ProcessDied):  # a dead process tidies nothing up
                steps.close()

    def _later(self, delay_us: int, action: Callable[[], None]) -> None:
        self._process.schedule.after(delay_us, self._process, action)

    def _look(self) -> None:
        cleaning = self._cleaner.next()
        if cleaning is None:
            self._later(self._backoff_us, self._look)
            return
        self._steps = cleaning.run()
        self._go_on(cleaning)

    def _go_on(self, cleaning: Cleaning) -> None:
        assert self._steps is not None
        topic_partition = cleaning.topic_partition
        report_before = self._cleaner._last.get(topic_partition)
        self._is_busy = True
        try:
            next(self._steps)
        except StopIteration:
            self._steps = None
        finally:
            self._is_busy = False
        stage: Stage = "under way"
        if self._steps is None:
            stage = "given up" if self._cleaner._last.get(topic_partition) is report_before else "done"
        self._on_step(topic_partition, stage)
        delay_us = int(self._draw.uniform(0, 3) * US_PER_MS)
        self._later(delay_us, (lambda: self._go_on(cleaning)) if stage == "under way" else self._look)
