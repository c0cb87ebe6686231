"""What the demo shows: numbered steps, lines below them, and tables."""

import sys
import threading
import time
from collections.abc import Sequence
from typing import Final

from sparklog.cli.table import Table, terminal_width

INDENT: Final = "   "


class Screen:
    """Prints to standard output, one line at a time from any thread, until it is hushed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._step = 0
        self._is_hushed = False

    def hush(self) -> None:
        """Print no more: the demo stops, and what its threads still have to say is of no use."""
        with self._lock:
            self._is_hushed = True

    def step(self, title: str) -> None:
        self._step += 1
        self._print(f"\n{self._step}. {title}")

    def line(self, text: str) -> None:
        """A line of the current step, with the seconds since the demo began."""
        self._print(f"   {time.monotonic() - self._began:6.1f} s  {text}")

    def text(self, text: str = "") -> None:
        self._print(text)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Aligned columns, numbers to the right, no wider than the terminal."""
        numeric = [
            all(isinstance(value, int | float) for value in column) for column in zip(*rows, strict=True)
        ]
        table = Table(headings, [[_show(value) for value in row] for row in rows], numeric)
        width = terminal_width()
        table.fit(max(1, width - len(INDENT)) if width else 0)
        self._print("")
        for line in table.lines(rule="-"):
            self._print(f"{INDENT}{line}")

    def _print(self, text: str) -> None:
        with self._lock:
            if not self._is_hushed:
                print(text, flush=True)

    @staticmethod
    def problem(text: str) -> None:
        print(f"sparklog: {text}", file=sys.stderr, flush=True)


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.0f}" if isinstance(value, float) else str(value)
