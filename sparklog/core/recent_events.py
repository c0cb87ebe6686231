"""The latest events of a machine, so that a failure is reported together with what led to it."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from sparklog.model.errors import SparklogError

EVENTS_MAX: Final = 200
EVENT_CHARACTERS_MAX: Final = 500


class IllegalTransition(SparklogError):  # noqa: N818 (the field's word)
    """A fact that cannot follow the facts before it: a bug in the shell or in the machine."""


@dataclass(slots=True)
class RecentEvents:
    """The last ``events_max`` facts and decisions, oldest first, a line each."""

    events_max: int = EVENTS_MAX
    lines: deque[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = deque(maxlen=self.events_max)

    def note(self, line: str) -> None:
        self.lines.append(line[:EVENT_CHARACTERS_MAX])

    def illegal(self, what: str) -> IllegalTransition:
        """The exception to raise for ``what``, with the events that led to it."""
        return IllegalTransition(f"{what}; what led here:\n" + "\n".join(self.lines))
