"""Tables for people: aligned columns, numbers to the right, separated by blanks."""

from collections.abc import Sequence
from typing import Final

GAP: Final = "  "
NOTHING: Final = "-"
"""The text of a cell without a value."""


def render_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The table as text; a column whose cells are all numbers is aligned to the right."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(headers), *cells]) for i in range(len(headers))]
    numeric = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(headers))]
    return "\n".join(_line(line, widths, numeric) for line in [list(headers), *cells])


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if is_numeric else cell.ljust(width)
        for cell, width, is_numeric in zip(cells, widths, numeric, strict=True)
    )
    return GAP.join(padded).rstrip()


def _text(cell: object) -> str:
    if cell is None or cell == "":
        return NOTHING
    if isinstance(cell, list | tuple):
        return ",".join(str(item) for item in cell) or NOTHING
    return str(cell)


def _is_number(cell: object) -> bool:
    return cell is None or isinstance(cell, int)
