"""Settings files in Java's properties format, as Kafka's ``server.properties`` is written."""

from pathlib import Path
from typing import Final

from sparklog.model.errors import ConfigError

_COMMENTS: Final = ("#", "!")


def parse_properties(text: str) -> dict[str, str]:
    """Names and values, in order. ``#`` and ``!`` begin comments, a backslash at the end joins lines."""
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
        name, equals, value = pending.partition("=")
        if not equals:
            raise ConfigError(f"line {number}: {pending!r} is not of the form name=value")
        found[name.strip()] = value.strip()
        pending = ""
    if pending:
        raise ConfigError(f"the last line, {pending!r}, ends with a backslash, which joins it to nothing")
    return found


def read_properties(path: Path) -> dict[str, str]:
    """The settings in a file; ConfigError names the file."""
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"settings file {path}: {error.strerror}") from None
    except ConfigError as error:
        raise ConfigError(f"settings file {path}: {error}") from None
