"""A session with ZooKeeper for a command, as a file of brokers' settings says."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sparklog.cli.command_config import read_properties
from sparklog.cli.progress import say
from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig, check_broker_settings
from sparklog.model.settings.zookeeper_settings import ZooKeeperSettings
from sparklog.zookeeper.configured_session import new_session
from sparklog.zookeeper.kazoo_admin import KazooAdmin

TIMEOUT_MS: Final = 10_000
_PREFIX: Final = "zookeeper."
_CONNECT: Final = "zookeeper.connect"


@contextmanager
def session_of(
    connect_string: str, settings_file: Path | None, *, creates_chroot: bool = True
) -> Iterator[KazooAdmin]:
    """A session that has started; without a file it shows nobody, and speaks in the clear.

    Raises ConfigError for a file that cannot be used, ConnectionLost if no server answers.
    """
    session = new_session(connect_string, settings_of(settings_file), TIMEOUT_MS)
    with session.start(TIMEOUT_MS, creates_chroot=creates_chroot):
        yield session


def settings_of(settings_file: Path | None) -> ZooKeeperSettings:
    """The settings ``zookeeper.*`` of a file; its others, and the address in it, are passed over."""
    if settings_file is None:
        return ZooKeeperSettings()
    source = f"--settings {settings_file}"
    given = _of_zookeeper(read_properties(settings_file, source))
    try:
        for warning in check_broker_settings(given).warnings:
            say(f"warning: {source}: {warning}")
        return BrokerConfig.parse(given).zookeeper
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _of_zookeeper(given: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in given.items() if name.startswith(_PREFIX) and name != _CONNECT}
