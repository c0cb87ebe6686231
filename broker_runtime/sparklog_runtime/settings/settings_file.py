"""A file with the settings of brokers, as ``sparklog conf`` writes it: Kafka's ``server.properties``.

``zookeeper.connect`` and ``log.dirs`` are for the start rather than for brokers, which get them from it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog_runtime.settings.properties import read_properties
from sparklog_runtime.settings.settings_check import zookeeper_problem

ZOOKEEPER: Final = "zookeeper.connect"
LOG_DIRS: Final = "log.dirs"
_HOSTS_FILE: Final = "hosts.file"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    settings: dict[str, str]
    """Those of brokers."""
    zookeeper: str | None
    """None if the file does not say it."""
    log_dir_patterns: tuple[str, ...]
    """With ``{id}`` for a broker's id; empty if the file does not say it."""


def read_settings_file(path: Path) -> SettingsFile:
    """ConfigError says what cannot work, and names the file."""
    settings = read_properties(path)
    zookeeper = settings.pop(ZOOKEEPER, "") or None
    problem = None if zookeeper is None else zookeeper_problem(zookeeper)
    if problem is not None:
        raise ConfigError(f"{path}: {ZOOKEEPER}={zookeeper}: {problem}")
    roots = [root.strip() for root in settings.pop(LOG_DIRS, "").split(",") if root.strip()]
    if not all(root.startswith("/") for root in roots):
        raise bad_log_dirs(path, roots)
    if settings.get(_HOSTS_FILE):
        settings[_HOSTS_FILE] = str(path.absolute().parent / settings[_HOSTS_FILE])
    return SettingsFile(settings, zookeeper, tuple(_pattern(root) for root in roots))


def bad_log_dirs(path: Path, roots: list[str]) -> ConfigError:
    """The error of a file whose log directories cannot be used, or that names none."""
    return ConfigError(
        f"{path}: {LOG_DIRS}={','.join(roots)} must list absolute directories on the brokers' hosts; an "
        "executor's working directory is deleted with it"
    )


def _pattern(root: str) -> str:
    return root.rstrip("/").replace("{", "{{").replace("}", "}}") + "/broker-{id}"
