"""The connector that a client's properties ask for."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sparklog.client.security.security_properties import login_settings_of, tls_settings_of
from sparklog.model.errors import ConfigError
from sparklog.network.dialing.connection import Connection
from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector

if TYPE_CHECKING:
    from sparklog.model.settings.login_settings import ClientLoginSettings
    from sparklog.model.settings.tls_settings import TlsSettings
    from sparklog.network.login.client_login import ClientLogin
    from sparklog.network.tls.sides import TlsClient


def connector_of(properties: Mapping[str, str]) -> Connector:
    """How to dial, by Kafka's names: ``security.protocol``, ``ssl.*`` and ``sasl.*``.

    Properties of other kinds are passed over. ConfigError for those of security that are unknown, wrong, or
    cannot be kept; and for a file that is missing, which may show at a later connection.
    """
    tls, login = tls_settings_of(properties), login_settings_of(properties)
    if tls is None and login is None:
        return IN_THE_CLEAR
    return Connector(None if tls is None else _tls(tls), None if login is None else _login(login))


def connector_as(properties: Mapping[str, str], mechanism: str, user: str, password: str) -> Connector:
    """How somebody dials who has said who they are: the properties say the rest, and name no user."""
    # It imports heavy libraries, which a client without a login has no need of.
    from sparklog.credentials.jaas_users import UserAndPassword
    from sparklog.network.login.client_login import ClientLogin

    tls = tls_settings_of(properties)
    login = ClientLogin.of_user(mechanism, UserAndPassword(user, password))
    return Connector(None if tls is None else _tls(tls), login)


def _tls(settings: "TlsSettings") -> "TlsClient":
    # It imports heavy libraries, which a client in the clear has no need of.
    from sparklog.network.tls.from_settings import client_side

    return client_side(settings)


def _login(settings: "ClientLoginSettings") -> "ClientLogin":
    # start time: as above
    from sparklog.network.login.client_login import ClientLogin

    return ClientLogin(settings)


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
