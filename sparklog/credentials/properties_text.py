"""Files in Java's properties format, read as ``java.util.Properties`` reads them, and without showing a line:
they hold secrets.

    # or ! begins a comment        name = value, name: value, name value
    a backslash at the end joins the next line, whose blanks at the front are dropped
    \\t \\n \\r \\f \\uXXXX stand for characters, and any other character after a backslash for itself
"""

import re
from collections.abc import Iterator
from typing import Final

from sparklog.model.settings.java_text import goes_on, unescaped

_NAME_AND_VALUE: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def properties_of_text(text: str) -> dict[str, str]:
    """Values by name; the last of two with one name counts."""
    found: dict[str, str] = {}
    for line in _joined_lines(text):
        parts = _NAME_AND_VALUE.fullmatch(line)
        if parts is not None:
            found[unescaped(parts[1])] = unescaped(parts[2])
    return found


def _joined_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if goes_on(pending):
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending
