"""Settings files in Java's properties format, as Kafka's ``server.properties`` is written, and as Spark's
``spark-defaults.conf`` is, which puts blanks between name and value.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sparklog.model.errors import ConfigError

_COMMENTS: Final = ("#", "!")
_SPARK_LINE: Final = re.compile(r"([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*)")


def parse_properties(text: str) -> dict[str, str]:
    """Names and values, in order. ``#`` and ``!`` begin comments, a backslash at the end joins lines."""

    def parse(line: str) -> tuple[str, str]:
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigError(f"{line!r} is not of the form name=value")
        return name.strip(), value.strip()

    return _parse_lines(text, parse)


def parse_spark_properties(text: str) -> dict[str, str]:
    """The same for Spark's files, where blanks, ``=`` or ``:`` stand between name and value."""

    def parse(line: str) -> tuple[str, str]:
        found = _SPARK_LINE.fullmatch(line)
        if found is None:
            raise ConfigError(f"{line!r} is not of the form name value")
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
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        try:
            name, value = parse(pending)
        except ConfigError as error:
            raise ConfigError(f"line {number}: {error}") from None
        found[name] = value
        pending = ""
    if pending:
        raise ConfigError(f"the last line, {pending!r}, ends with a backslash, which joins it to nothing")
    return found


def read_properties(path: Path, parse: Callable[[str], dict[str, str]] = parse_properties) -> dict[str, str]:
    """The settings in a file; ConfigError names the file."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"settings file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"settings file {path} is no text in UTF-8: byte {error.start} cannot be read"
        ) from None
    except ConfigError as error:
        raise ConfigError(f"settings file {path}: {error}") from None
