"""Reports brokers that were launched again and get no executor: Spark itself waits without a word.

The first line follows after ten seconds, each later one after twice the time of the one before, and after
five minutes at most. A broker that fails for another reason reports that itself.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.model.ids import BrokerId

LOOK_INTERVAL_S: Final = 1.0
FIRST_REPORT_S: Final = 10.0
PAUSE_MAX_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class WaitingBroker:
    """A broker whose job runs and has no process yet."""

    broker_id: BrokerId
    began_s: float
    """When it began to wait, by the monotonic clock: another wait has another beginning."""
    waited_s: float


class DueReports:
    """Which waits are to be reported; one call of ``due`` for each look."""

    def __init__(self) -> None:
        self._next_s: dict[tuple[BrokerId, float], float] = {}

    def due(self, waiting: Sequence[WaitingBroker]) -> list[WaitingBroker]:
        """Those to report now. A wait that has ended is forgotten."""
        keys = {(one.broker_id, one.began_s) for one in waiting}
        self._next_s = {key: at_s for key, at_s in self._next_s.items() if key in keys}
        return [
            one
            for one in waiting
            if one.waited_s >= self._next_s.get((one.broker_id, one.began_s), FIRST_REPORT_S)
        ]

    def reported(self, one: WaitingBroker) -> None:
        """``one`` was reported: the next report follows later."""
        self._next_s[one.broker_id, one.began_s] = one.waited_s + min(one.waited_s, PAUSE_MAX_S)


class ExecutorWaits:
    """Looks each second, on a thread of its own, from construction to ``close``."""

    def __init__(
        self,
        waiting: Callable[[], Sequence[WaitingBroker]],
        why: Callable[[str, float], str | None],
        report: Callable[[str], None],
    ) -> None:
        """``why`` makes the line of a broker that has waited so many seconds; None while it is not known."""
        self._waiting = waiting
        self._why = why
        self._report = report
        self._closing = threading.Event()
        threading.Thread(target=self._run, name="executor-waits", daemon=True).start()

    def close(self) -> None:
        """Report no more."""
        self._closing.set()

    def _run(self) -> None:
        reports = DueReports()
        while not self._closing.wait(LOOK_INTERVAL_S):
            for one in reports.due(self._waiting()):
                line = self._why(f"broker {one.broker_id}", one.waited_s)
                if line is not None:
                    self._report(line)
                    reports.reported(one)
