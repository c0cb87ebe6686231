"""The connector that a client's properties ask for."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sparklog.client.security.security_properties import tls_settings_of
from sparklog.model.errors import ConfigError
from sparklog.network.dialing.connection import Connection
from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector


def connector_of(properties: Mapping[str, str]) -> Connector:
    """How to dial, by Kafka's names: ``security.protocol`` PLAINTEXT or SSL, and ``ssl.*``.

    Properties of other kinds are passed over. ConfigError for those of security that are unknown, wrong, or
    cannot be kept, such as a login; and for a file that is missing, which may show at a later connection.
    """
    settings = tls_settings_of(properties)
    if settings is None:
        return IN_THE_CLEAR
    # It imports heavy libraries, which a client in the clear has no need of.
    from sparklog.network.tls.from_settings import client_side

    return Connector(client_side(settings))


def connector_of_many_hosts(properties: Mapping[str, str]) -> Connector:
    """The same where the properties go to many hosts: an error of one host names it, as files may differ."""
    with _host_named():
        connector = connector_of(properties)
    return connector if connector is IN_THE_CLEAR else _OnThisHost(connector)


class _OnThisHost(Connector):
    def __init__(self, connector: Connector) -> None:
        super().__init__()
        self._connector = connector

    def open(self, *address: Any, **terms: Any) -> Connection:
        with _host_named():
            return self._connector.open(*address, **terms)


@contextmanager
def _host_named() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"on host {socket.gethostname()}: {error}") from error
