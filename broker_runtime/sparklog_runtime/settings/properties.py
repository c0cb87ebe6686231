"""Settings files: Kafka's ``server.properties``, and Spark's ``spark-defaults.conf``."""

from collections.abc import Callable
from pathlib import Path

from sparklog.model.errors import ConfigError
from sparklog.model.settings.settings_text import parse_properties


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
