"""The text of settings files in Java's properties format: Kafka's ``server.properties``, the files of its
clients, and Spark's ``spark-defaults.conf``, which puts blanks between name and value.

``#`` and ``!`` begin comments. A backslash at the end joins lines; before a character it means what it means
in Java (``\\n``, ``\\t``, ``\\u00e9``; two are one). Of a name that stands twice the last value counts.
"""

import re
from collections.abc import Callable
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.java_text import goes_on, unescaped

_COMMENTS: Final = ("#", "!")
_SPARK_LINE: Final = re.compile(r"([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*)", re.DOTALL)
_FIRST_WORD: Final = re.compile(r"[a-z][a-z0-9_.-]*(?![^\s=:])")


def parse_properties(text: str) -> dict[str, str]:
    """Names and values, in order; ConfigError names the line that is none of both."""

    def parse(line: str) -> tuple[str, str]:
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigError(f"{_shown(line)} is not of the form name=value")
        return name.strip(), value.strip()

    return _parse_lines(text, parse)


def parse_spark_properties(text: str) -> dict[str, str]:
    """The same for Spark's files, where blanks, ``=`` or ``:`` stand between name and value."""

    def parse(line: str) -> tuple[str, str]:
        found = _SPARK_LINE.fullmatch(line)
        if found is None:
            raise ConfigError(f"{_shown(line)} is not of the form name value")
        return found[1], found[2]

    return _parse_lines(text, parse)


def _parse_lines(text: str, parse: Callable[[str], tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    pending = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not pending and (not line or line.startswith(_COMMENTS)):
            continue
        pending += line
        if goes_on(pending):
            pending = pending[:-1]
            continue
        try:
            name, value = parse(pending)
            found[name] = unescaped(value)
        except ConfigError as error:
            raise ConfigError(f"line {number}: {error}") from None
        pending = ""
    if pending:
        raise ConfigError(
            f"the last line, {_shown(pending)}, ends with a backslash, which joins it to nothing"
        )
    return found


def _shown(line: str) -> str:
    """A line's first word if it may be a name; other words may be passwords, or parts of a key."""
    word = _FIRST_WORD.match(line)
    return repr(word[0]) if word else "it"
