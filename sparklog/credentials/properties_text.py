"""Files in Java's properties format, read as ``java.util.Properties`` reads them, and without showing a line:
they hold secrets.

    # or ! begins a comment        name = value, name: value, name value
    a backslash at the end joins the next line, whose blanks at the front are dropped
    \\t \\n \\r \\f \\uXXXX stand for characters, and any other character after a backslash for itself
"""

import re
from collections.abc import Iterator
from typing import Final

from sparklog.model.errors import ConfigError

_NAME_AND_VALUE: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_STANDS_FOR: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties_of_text(text: str) -> dict[str, str]:
    """Values by name; the last of two with one name counts."""
    found: dict[str, str] = {}
    for line in _joined_lines(text):
        parts = _NAME_AND_VALUE.fullmatch(line)
        if parts is not None:
            found[_unescaped(parts[1])] = _unescaped(parts[2])
    return found


def _joined_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        backslashes = len(pending) - len(pending.rstrip("\\"))
        if backslashes % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    """Two escapes may be the halves of one character."""
    plain = _ESCAPE.sub(_character, text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    if escape[2] == "u":
        raise ConfigError(
            "a value of the properties file has \\u without four hexadecimal digits; correct it"
        )
    return _STANDS_FOR.get(escape[2], escape[2])
