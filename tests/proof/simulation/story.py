"""What happened, in words: one line per step, and a digest that two runs of the same seed must share."""

import hashlib
from dataclasses import dataclass, field

from simulation.schedule import Schedule


@dataclass(slots=True)
class Story:
    """``is_told`` False keeps only the last lines, for speed."""

    schedule: Schedule
    is_told: bool = False
    lines: list[str] = field(default_factory=list)

    def tell(self, who: str, what: str) -> None:
        if self.is_told:
            self.lines.append(f"{self.schedule.now_us / 1_000:10.3f} ms  {who:<16} {what}")

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()
