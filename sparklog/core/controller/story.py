"""What lately happened to a machine, kept short, so that a failure arrives with its history."""

from collections import deque
from dataclasses import dataclass, field

from sparklog.model.errors import SparklogError

STORY_LINES_MAX = 200


class IllegalTransition(SparklogError):  # noqa: N818 (the field's word)
    """A fact that cannot follow what came before: a bug in the shell or in the machine. Has the story."""


@dataclass(slots=True)
class Story:
    """The last ``STORY_LINES_MAX`` facts and decisions, oldest first."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=STORY_LINES_MAX))

    def note(self, now_ms: int, line: str) -> None:
        self.lines.append(f"{now_ms} {line}")

    def illegal(self, what: str) -> IllegalTransition:
        """The exception to raise for ``what``."""
        return IllegalTransition(f"{what}; what led here:\n" + "\n".join(self.lines))
