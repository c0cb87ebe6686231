"""Where the progress of a query is drawn: a line of a terminal, the output of a notebook's cell, plain text.

A terminal's line is drawn over itself, no wider than the terminal. Whatever is not a terminal (a file, a
pipe) gets plain lines, one each ``PLAIN_INTERVAL_S`` and one at the end, without a control character. A
notebook is known by IPython's kernel; nothing of IPython is imported where there is none.
"""

import html
import importlib
import shutil
import sys
from typing import Any, Final, Protocol, TextIO

from sparklog_datasource.monitoring.figures import Figures

PLAIN_INTERVAL_S: Final = 10.0
BAR_WIDTH: Final = 30
BAR_WIDTH_MIN: Final = 10

_ERASE_LINE: Final = "\r\x1b[K"


class Picture(Protocol):
    """Draws one query's figures."""

    def draw(self, figures: Figures, now_s: float) -> None: ...

    def end(self, figures: Figures, why: str) -> None:
        """The last figures; ``why`` nothing more follows."""
        ...


class TerminalLine:
    """One line, drawn over itself."""

    def __init__(self, name: str, file: TextIO) -> None:
        self._name = name
        self._file = file

    def draw(self, figures: Figures, now_s: float) -> None:
        self._write(figures, "")

    def end(self, figures: Figures, why: str) -> None:
        self._write(figures, f" ({why})")
        self._file.write("\n")
        self._file.flush()

    def _write(self, figures: Figures, after: str) -> None:
        width = shutil.get_terminal_size().columns - 1  # a full line would begin the next one
        text = f"{figures}{after}"
        room = min(BAR_WIDTH, width - len(self._name) - len(text) - 4)
        shown = figures.done is not None and room >= BAR_WIDTH_MIN
        line = f"{self._name} {_bar(figures.done or 0.0, room)} {text}" if shown else f"{self._name} {text}"
        self._file.write(_ERASE_LINE + line[:width])
        self._file.flush()


class PlainLines:
    """A line now and then."""

    def __init__(self, name: str, file: TextIO) -> None:
        self._name = name
        self._file = file
        self._last_s: float | None = None

    def draw(self, figures: Figures, now_s: float) -> None:
        if self._last_s is None or now_s - self._last_s >= PLAIN_INTERVAL_S:
            self._last_s = now_s
            self._write(str(figures))

    def end(self, figures: Figures, why: str) -> None:
        self._write(f"{figures} ({why})")

    def _write(self, text: str) -> None:
        self._file.write(f"{self._name}: {text}\n")
        self._file.flush()


class NotebookOutput:
    """The output of the cell that asked, changed in place.

    ``display`` is IPython's: it shows an object and returns a handle, whose ``update`` shows another in its
    place.
    """

    def __init__(self, name: str, display: Any) -> None:
        self._name = name
        self._handle = display(_Shown(name, Figures(0, 0.0, None, None)), display_id=True)

    def draw(self, figures: Figures, now_s: float) -> None:
        self._handle.update(_Shown(self._name, figures))

    def end(self, figures: Figures, why: str) -> None:
        self._handle.update(_Shown(self._name, figures, f" ({why})"))


class _Shown:
    """Figures as a notebook asks for them; a frontend without HTML takes the text."""

    def __init__(self, name: str, figures: Figures, after: str = "") -> None:
        self._name = name
        self._figures = figures
        self._after = after

    def __repr__(self) -> str:
        return f"{self._name}: {self._figures}{self._after}"

    def _repr_html_(self) -> str:
        done = self._figures.done
        bar = "" if done is None else f'<progress max="1" value="{done:.4f}"></progress> '
        text = html.escape(f"{self._figures}{self._after}")
        return f"<div><b>{html.escape(self._name)}</b> {bar}{text}</div>"


def picture_of(name: str, file: TextIO | None) -> Picture:
    """What fits: the given file; without one the notebook's cell, or standard error."""
    display = _notebook_display() if file is None else None
    if display is not None:
        return NotebookOutput(name, display)
    target = sys.stderr if file is None else file
    return TerminalLine(name, target) if target.isatty() else PlainLines(name, target)


def _notebook_display() -> Any:
    """IPython's ``display`` if this process is the kernel of a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    return importlib.import_module("IPython.display").display


def _bar(done: float, width: int) -> str:
    """``[=====     ]``, as wide as said."""
    inside = width - 2
    filled = int(done * inside)
    return f"[{'=' * filled}{' ' * (inside - filled)}]"
