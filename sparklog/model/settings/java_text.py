"""Backslashes in Java's texts: of properties files, and of quoted values in JAAS strings."""

import re
from typing import Final

from sparklog.model.errors import ConfigError

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_STANDS_FOR: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def unescaped(text: str) -> str:
    """``text`` with what its backslashes mean: ``\\n``, ``\\t``, ``\\r``, ``\\f``, ``\\uXXXX``, and any other
    character for itself. Two escapes may be the halves of one character.
    """
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def goes_on(line: str) -> bool:
    """Whether the next line belongs to this one: it ends with a backslash that is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    if escape[2] == "u":
        raise ConfigError("a value has '\\u' without the four digits of a character, as in '\\u00e9'")
    return _STANDS_FOR.get(escape[2], escape[2])
