"""Tables for people: aligned columns, numbers to the right, separated by blanks, no wider than the terminal.

A table that is too wide gets, until it fits: headings of several lines; no columns without a value, nor those
that its caller can spare; cells of several lines in its widest columns of text. What was left out is named
below it. A pipe or a file has no width, unless ``COLUMNS`` says one.
"""

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.cli.printable import printable

GAP: Final = "  "
NOTHING: Final = "-"
"""The text of a cell without a value."""

FOLDED_MIN: Final = 12
"""Columns of text are folded to this many characters at the least."""

_BREAKS: Final = ", -:/"
"""Characters after which a cell is folded rather than elsewhere."""


def terminal_width() -> int:
    """In characters; 0 if standard output is no terminal, and nothing else says a width."""
    return shutil.get_terminal_size((0, 0)).columns


def render_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    spare: Sequence[str] = (),
    width: int | None = None,
) -> str:
    """The table as text; a column whose cells are all numbers is aligned to the right.

    ``spare``: the columns that may be left out, least needed first. ``width`` None is the terminal's.
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    numeric = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(headers))]
    table = Table(headers, texts, numeric)
    left_out = table.fit(terminal_width() if width is None else width, spare)
    note = [f"(no room for {', '.join(left_out)}; --json has all)"] if left_out else []
    return "\n".join([*table.lines(), *note])


@dataclass(slots=True)
class _Column:
    name: str
    is_numeric: bool
    heading: list[str]
    cells: list[list[str]]
    """Each as its lines."""

    @property
    def width(self) -> int:
        return max(len(line) for lines in (self.heading, *self.cells) for line in lines)

    @property
    def is_empty(self) -> bool:
        return bool(self.cells) and all(lines == [NOTHING] for lines in self.cells)

    def fold_heading(self) -> None:
        cells = max((len(line) for lines in self.cells for line in lines), default=0)
        least = max(map(len, self.name.split()))
        self.heading = textwrap.wrap(self.name, max(cells, least), break_long_words=False)

    def fold_cells(self, width: int) -> None:
        self.cells = [list(_folded("".join(lines), width)) for lines in self.cells]


class Table:
    """Columns of text. ``fit`` makes them narrower, ``lines`` shows them."""

    def __init__(
        self, headings: Sequence[str], texts: Sequence[Sequence[str]], numeric: Sequence[bool]
    ) -> None:
        self._columns = [
            _Column(heading, numeric[i], [heading], [[row[i]] for row in texts])
            for i, heading in enumerate(headings)
        ]
        self._row_count = len(texts)

    @property
    def width(self) -> int:
        return sum(column.width for column in self._columns) + len(GAP) * (len(self._columns) - 1)

    def fit(self, width: int, spare: Sequence[str] = ()) -> list[str]:
        """Make it no wider, if that can be; 0 is any width. Returns the columns that are left out."""
        if not width or self.width <= width:
            return []
        for column in self._columns:
            column.fold_heading()
        empty = [column.name for column in self._columns if column.is_empty]
        left_out = []
        for name in dict.fromkeys([*empty, *spare]):
            if self.width <= width:
                break
            self._columns = [column for column in self._columns if column.name != name]
            left_out.append(name)
        self._fold_cells(width)
        return left_out

    def _fold_cells(self, width: int) -> None:
        while (excess := self.width - width) > 0:
            texts = [column for column in self._columns if not column.is_numeric]
            widest = max(texts, key=lambda column: column.width, default=None)
            if widest is None or widest.width <= FOLDED_MIN:
                return
            before = widest.width
            widest.fold_cells(max(FOLDED_MIN, before - excess))
            if widest.width == before:  # its heading is one long word
                return

    def lines(self, rule: str = "") -> Iterator[str]:
        """Headings, a line of ``rule`` below each if there is one, and rows; each may have several lines."""
        yield from self._shown([column.heading for column in self._columns], is_heading=True)
        if rule:
            yield GAP.join(rule * column.width for column in self._columns)
        for i in range(self._row_count):
            yield from self._shown([column.cells[i] for column in self._columns])

    def _shown(self, cells: Sequence[list[str]], *, is_heading: bool = False) -> Iterator[str]:
        height = max(map(len, cells))
        for i in range(height):
            padded = []
            for column, lines in zip(self._columns, cells, strict=True):
                at = i - (height - len(lines)) if is_heading else i  # headings stand upon their columns
                text = lines[at] if 0 <= at < len(lines) else ""
                padded.append(text.rjust(column.width) if column.is_numeric else text.ljust(column.width))
            yield GAP.join(padded).rstrip()


def _folded(text: str, width: int) -> Iterator[str]:
    """The text in lines of at most ``width``, which end with a character of ``_BREAKS`` where one is near."""
    while len(text) > width:
        after = max(text.rfind(character, 0, width) for character in _BREAKS) + 1
        end = after if after > width // 2 else width
        yield text[:end]
        text = text[end:]
    yield text


def _text(cell: object) -> str:
    if cell is None or cell == "":
        return NOTHING
    if isinstance(cell, list | tuple):
        return printable(",".join(str(item) for item in cell)) or NOTHING
    return printable(str(cell))


def _is_number(cell: object) -> bool:
    return cell is None or isinstance(cell, int)
