"""Which clients stand still, so that they are restarted as an operator would.

Client libraries hang after faults, some for ever (tests/proof/docs/chaos.md names which, and in what). A
client that had no answer for ``STUCK_S`` is told to write where its threads are, killed and replaced. This
hides no fault of brokers that lasts: the replacement has to be answered too, and after healing everybody is
waited for once.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

STUCK_S: Final = 40.0
"""Longer than every fault and stall, shorter than the wait for everybody after healing."""


class Answers:
    """How often a text stands in files that grow. Each byte is read once."""

    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self._read: dict[Path, int] = {}
        self._count = 0

    def count(self, paths: Iterable[Path]) -> int:
        """In whole lines of ``paths`` until now; a path that does not exist yet has none."""
        for path in paths:
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                lines, newline, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(lines) + len(newline)
            self._count += lines.count(self._text)
        return self._count


class Watch:
    """When each client was answered last; a new life counts as an answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[str, int] = {}
        self._since: dict[str, float] = {}

    def begin(self, name: str) -> None:
        """Another life of ``name``."""
        self._since[name] = self._clock()

    def is_stuck(self, name: str, answers: int) -> bool:
        """Whether ``name``, which has had ``answers`` by now, has had no other one for too long."""
        if answers != self._answers.get(name, 0):
            self._answers[name] = answers
            self._since[name] = self._clock()
        return self._clock() - self._since[name] > STUCK_S
