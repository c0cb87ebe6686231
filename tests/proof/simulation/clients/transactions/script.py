"""One process of a client that does one thing after the other, written as a generator.

It yields what it waits for: ``Ask`` for the responses of some requests, None for each that failed, or
``Wait``. A process that is paused goes on where it was, also with requests that others have overtaken.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from simulation.clients.client import CALL_TIMEOUT_MS, RETRY_MS, Workplace
from simulation.machines.network import Connection
from simulation.schedule import US_PER_MS, Process, dice
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.find_coordinator import FindCoordinatorRequest

TIMEOUTS_MS: Final = (400, CALL_TIMEOUT_MS)


@dataclass(frozen=True, slots=True)
class Ask:
    """Requests that are sent at once, each to a host, in this order."""

    requests: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Wait:
    ms: float


Script = Generator[Ask | Wait, Any, None]


class FencedError(Exception):
    """Another producer has the transactional id, or the transaction has timed out."""


class GaveUpError(Exception):
    """Something was refused for good, or for too long: abort, and begin in another epoch."""


class ScriptedClient:
    """One process. Clients of one ``name`` may follow each other; each is another ``life``."""

    def __init__(self, place: Workplace, name: str, life: int | str) -> None:
        self.name = name
        self.process = Process(place.schedule, f"{name}#{life}")
        self.coordinator: str | None = None
        self.has_ended = False
        self._place = place
        self._draw = dice(place.seed, f"{name} life {life}")
        self._timeout_ms = self._draw.choice(TIMEOUTS_MS)
        self._connections: set[Connection] = set()
        self._script: Script = self.live()

    def start(self) -> None:
        self.process.soon(lambda: self._go_on(None))

    def live(self) -> Script:
        """Everything that it does."""
        raise NotImplementedError

    def die(self) -> None:
        """As by SIGKILL: its connections are closed, and nobody is told."""
        if self.process.is_alive:
            self.process.kill()
            self._place.network.died(self.process)

    @property
    def now_us(self) -> int:
        return self._place.schedule.now_us

    def tell(self, what: str) -> None:
        self._place.story.tell(self.process.name, what)

    def hang_up(self) -> None:
        """What is on its way over these connections may still arrive, behind what comes over others."""
        for connection in sorted(self._connections, key=lambda one: one.number):
            if connection.is_open:
                connection.fail("its client has waited too long")
        self._connections.clear()

    # ---- parts of scripts ----------------------------------------------------------------------------------

    def ask(self, host: str, message: Any) -> Generator[Ask | Wait, Any, Any]:
        """One response, or None."""
        (response,) = yield Ask(((host, message),))
        return response

    def find(self, key: str, key_type: int) -> Generator[Ask | Wait, Any, str]:
        """The coordinator of a group or a transactional id."""
        while True:
            request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
            response = yield from self.ask(self._draw.choice(self._place.hosts), request)
            if response is not None and response.coordinators[0].error_code is ErrorCode.none:
                host: str = response.coordinators[0].host
                return host
            yield Wait(RETRY_MS)

    # ---- how a script goes on ------------------------------------------------------------------------------

    def _go_on(self, outcome: Any) -> None:
        try:
            step = self._script.send(outcome)
        except StopIteration:
            self.has_ended = True
            return
        if isinstance(step, Wait):
            self._later(step.ms, lambda: self._go_on(None))
        else:
            self._send(step)

    def _later(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._place.schedule.after(int(delay_ms * US_PER_MS), self.process, action)

    def _send(self, step: Ask) -> None:
        responses: list[Any] = [None] * len(step.requests)
        left = len(step.requests)

        def end(number: int, response: Any) -> None:
            nonlocal left
            responses[number] = response
            left -= 1
            if not left:
                self._go_on(responses)

        for number, (host, message) in enumerate(step.requests):
            call = self._place.network.call(
                self.process,
                self.name,
                host,
                message,
                timeout_ms=self._timeout_ms,
                on_response=lambda response, number=number: end(number, response),  # type: ignore[misc]
                on_failure=lambda error, number=number: end(number, None),  # type: ignore[misc]
                is_bound=True,
            )
            if call is not None:
                self._connections.add(call.connection)
