"""How the progress of a query is drawn in a terminal, in a notebook, and where neither is."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sparklog_datasource.monitoring.figures import Figures
from sparklog_datasource.monitoring.pictures import NotebookOutput, PlainLines, TerminalLine, picture_of

HALF = Figures(50, 5.0, 50, 0.5)
UNKNOWN = Figures(0, 0.0, None, None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_columns(count: int) -> None:
        monkeypatch.setenv("COLUMNS", str(count))

    set_columns(80)
    return set_columns


def test_a_terminal_shows_a_bar_in_one_line_that_is_drawn_over_itself(columns: Any) -> None:
    file = Terminal()
    line = TerminalLine("q", file)
    line.draw(HALF, 0)
    line.draw(HALF, 1)
    line.end(HALF, "ended")
    bar = f"[{'=' * 14}{' ' * 14}]"
    shown = f"\r\x1b[Kq {bar} 50 rows, 5/s, 50 behind"
    assert file.getvalue() == f"{shown}{shown}{shown} (ended)\n"


@pytest.mark.parametrize("width", [5, 20, 40, 60])
def test_a_line_is_narrower_than_its_terminal(columns: Any, width: int) -> None:
    columns(width)
    file = Terminal()
    TerminalLine("a query", file).draw(HALF, 0)
    line = file.getvalue().removeprefix("\r\x1b[K")
    assert 0 < len(line) < width


def test_there_is_no_bar_before_the_lag_is_known(columns: Any) -> None:
    file = Terminal()
    TerminalLine("q", file).draw(UNKNOWN, 0)
    assert file.getvalue() == "\r\x1b[Kq 0 rows, 0/s"


def test_what_is_no_terminal_gets_plain_lines_now_and_then_and_one_at_the_end() -> None:
    file = io.StringIO()
    lines = PlainLines("q", file)
    for second in range(12):
        lines.draw(HALF, second)
    lines.end(HALF, "ended")
    plain = "q: 50 rows, 5/s, 50 behind"
    assert file.getvalue().splitlines() == [plain, plain, f"{plain} (ended)"]


def test_the_file_decides_between_a_bar_and_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(picture_of("q", Terminal()), TerminalLine)
    assert isinstance(picture_of("q", io.StringIO()), PlainLines)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(picture_of("q", None), TerminalLine)


class Display:
    """Stands in for IPython's ``display`` and its handle."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def __call__(self, shown: object, *, display_id: bool) -> "Display":
        assert display_id
        self.shown.append(shown)
        return self

    def update(self, shown: object) -> None:
        self.shown.append(shown)


def test_a_notebook_shows_a_bar_that_is_changed_in_place_and_a_text_elsewhere() -> None:
    display = Display()
    output = NotebookOutput("<q>", display)
    output.draw(HALF, 0)
    output.end(HALF, "failed: a < b")
    first, half, last = display.shown
    assert repr(first) == "<q>: 0 rows, 0/s"
    bar = '<progress max="1" value="0.5000"></progress>'
    assert half._repr_html_() == f"<div><b>&lt;q&gt;</b> {bar} 50 rows, 5/s, 50 behind</div>"
    assert "(failed: a &lt; b)" in last._repr_html_()


@pytest.mark.parametrize(("kernel", "is_notebook"), [(object(), True), (None, False)])
def test_only_a_kernel_of_ipython_is_a_notebook(
    monkeypatch: pytest.MonkeyPatch, kernel: object, is_notebook: bool
) -> None:
    shell = SimpleNamespace(kernel=kernel)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=Display()))
    assert isinstance(picture_of("q", None), NotebookOutput) is is_notebook
    assert isinstance(picture_of("q", io.StringIO()), PlainLines)
