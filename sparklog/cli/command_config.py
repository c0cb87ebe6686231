"""``--command-config FILE``: the properties of a client, with Kafka's names, as Kafka's tools take them.

The variable SPARKLOG_COMMAND_CONFIG names the file for all commands that get no option. A name that no client
of Kafka has is refused, as it may be a misspelt promise of safety; one without effect here is named once.
"""

import argparse
import difflib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sparklog.cli.progress import say
from sparklog.client.cluster import ClusterClient
from sparklog.client.property_names import CLIENT_PROPERTIES
from sparklog.client.security.connecting import connector_of
from sparklog.client.security.security_properties import resolved, security_properties, without_effect
from sparklog.model.errors import ConfigError
from sparklog.model.settings.settings_text import parse_properties
from sparklog.network.dialing.connector import Connector

OPTION: Final = "--command-config"
VARIABLE: Final = "SPARKLOG_COMMAND_CONFIG"

CLIENT_ID: Final = "client.id"
CLIENT_RACK: Final = "client.rack"
REQUEST_TIMEOUT: Final = "request.timeout.ms"
CALL_TIMEOUT: Final = "default.api.timeout.ms"
_EFFECTIVE: Final = (CLIENT_ID, CLIENT_RACK, REQUEST_TIMEOUT, CALL_TIMEOUT)

_OVERRIDDEN: Final = ("bootstrap.servers",)
"""Passed over without a word: an option of the command goes over it, as in Kafka's tools."""

TIMEOUT_MS_MAX: Final = 2**31 - 1


def add_command_config_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        OPTION,
        default=argparse.SUPPRESS,
        type=Path,
        metavar="FILE",
        help=f"properties of a client, such as security.protocol and ssl.*; or in the variable {VARIABLE}",
    )


@dataclass(frozen=True, slots=True)
class CommandConfig:
    """What a file says of the client; ``source`` names it in errors, empty without one."""

    source: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    def connector(self) -> Connector:
        """How to dial; ConfigError names the file."""
        with self._named():
            connector = connector_of(self.properties)
            ignored = without_effect(self.properties)
        if ignored is not None:
            say(f"warning: {self.source}: {ignored}")
        return connector

    def client(self, servers: str, *, retry_timeout_ms: int) -> ClusterClient:
        """A client of the cluster at ``servers``, not connected yet."""
        connector = self.connector()
        with self._named():
            return ClusterClient(
                servers,
                client_id=self._text(CLIENT_ID) or "sparklog-cli",
                client_rack=self._text(CLIENT_RACK),
                request_timeout_ms=self._timeout_ms(REQUEST_TIMEOUT, 30_000),
                retry_timeout_ms=self._timeout_ms(CALL_TIMEOUT, retry_timeout_ms),
                connector=connector,
            )

    def _text(self, name: str) -> str:
        return resolved(name, self.properties.get(name, "")).strip()

    def _timeout_ms(self, name: str, default_ms: int) -> int:
        text = self._text(name)
        if not text:
            return default_ms
        if not text.isascii() or not text.isdigit() or not 0 < int(text) <= TIMEOUT_MS_MAX:
            raise ConfigError(f"{name}={text!r}: must be a number of milliseconds from 1 to {TIMEOUT_MS_MAX}")
        return int(text)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except ConfigError as error:
            raise (ConfigError(f"{self.source}: {error}") if self.source else error) from None


def command_config_of(arguments: argparse.Namespace) -> CommandConfig:
    """The file's properties, none without a file; ConfigError for a name that no client of Kafka has."""
    path: Path | None = getattr(arguments, "command_config", None)
    source = f"{OPTION} {path}"
    if path is None:
        named = os.environ.get(VARIABLE, "")
        if not named:
            return CommandConfig()
        path, source = Path(named), f"{VARIABLE}={named}"
    properties = read_properties(path, source)
    _check_names(properties, source)
    return CommandConfig(source, properties)


def read_properties(path: Path, source: str) -> dict[str, str]:
    """The properties in a file; ConfigError names it by ``source``."""
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{source}: {error.strerror}; give a file of properties") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is no text in UTF-8: byte {error.start} cannot be read") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _check_names(properties: Mapping[str, str], source: str) -> None:
    for name in properties:
        if name not in CLIENT_PROPERTIES:
            near = difflib.get_close_matches(name, sorted(CLIENT_PROPERTIES), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{source}: no client of Kafka has a property {name!r}{hint}")
    judged = {*security_properties(properties), *_EFFECTIVE, *_OVERRIDDEN}
    ignored = sorted(properties.keys() - judged)
    if ignored:
        say(f"warning: {source}: no effect here has {', '.join(ignored)}")
