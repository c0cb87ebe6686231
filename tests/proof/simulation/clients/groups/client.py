"""What all clients of a coordinator do: find it, ask it, and find it again when it is another."""

from collections.abc import Callable
from typing import Any, Final

from simulation.clients.client import CALL_TIMEOUT_MS, RETRY_MS, Workplace
from simulation.machines.network import Call
from simulation.schedule import US_PER_MS, Process, dice
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

MOVED: Final = (ErrorCode.not_coordinator, ErrorCode.coordinator_not_available)
"""After these a client looks for the coordinator anew."""


class GroupClient:
    """One process of a client. Clients of one ``name`` may follow each other; each is another ``life``."""

    def __init__(self, place: Workplace, name: str, life: int, group_id: str) -> None:
        self.name = name
        self.group_id = group_id
        self.process = Process(place.schedule, f"{name}#{life}")
        self.coordinator: str | None = None
        self.is_hushed = False
        """Whether it writes nothing any more, so that the cluster may come to rest."""
        self._place = place
        self._draw = dice(place.seed, f"{name} life {life}")
        self._is_finding = False

    def start(self) -> None:
        self.process.soon(self.go_on)

    def go_on(self) -> None:
        """Do what is to be done next; called whenever a coordinator was found."""
        raise NotImplementedError

    def end(self) -> None:
        """Die, as by SIGKILL: its connections are closed, and nobody is told."""
        if self.process.is_alive:
            self.process.kill()
            self._place.network.died(self.process)

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._place.schedule.after(int(delay_ms * US_PER_MS), self.process, action)

    def call(
        self,
        host: str,
        message: Any,
        on_response: Callable[[Any], None],
        on_failure: Callable[[], None],
        *,
        timeout_ms: int = CALL_TIMEOUT_MS,
    ) -> Call | None:
        return self._place.network.call(
            self.process,
            self.name,
            host,
            message,
            timeout_ms=timeout_ms,
            on_response=on_response,
            on_failure=lambda error: on_failure(),
            is_bound=True,
        )

    def find_coordinator(self) -> None:
        """Ask some broker; ``go_on`` follows."""
        if self._is_finding:
            return
        self._is_finding, self.coordinator = True, None
        host = self._draw.choice(self._place.hosts)
        self.call(
            host, FindCoordinatorRequest(coordinator_keys=[self.group_id]), self._found, self._not_found
        )

    def _found(self, response: FindCoordinatorResponse) -> None:
        (found,) = response.coordinators
        if found.error_code is not ErrorCode.none:
            self._not_found()
            return
        self._is_finding, self.coordinator = False, found.host
        self.go_on()

    def _not_found(self) -> None:
        self.later(RETRY_MS, self._find_again)

    def _find_again(self) -> None:
        self._is_finding = False
        self.find_coordinator()
