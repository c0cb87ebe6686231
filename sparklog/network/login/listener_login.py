"""The logins that a listener accepts, made of its settings and of the cluster's users."""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from sparklog.core.security.login.known_users import ScramUsers
from sparklog.core.security.login.plain import PLAIN, PlainServer
from sparklog.core.security.login.scram import SCRAM_MECHANISMS, ScramMechanism
from sparklog.core.security.login.scram_server import ScramServer
from sparklog.core.security.login.server_login import LoginTerms, NewMechanism
from sparklog.credentials.jaas_users import plain_users
from sparklog.model.loops import Loop
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.login_settings import ListenerLoginSettings
from sparklog.model.settings.secrets import Secret
from sparklog.network.login.plain_removals import PlainRemovals
from sparklog.network.login.present_users import PresentUsers
from sparklog.network.login.sessions import LoginSessions

logger: Final = logging.getLogger(__name__)


class ListenerLogin:
    """``LoginSettings`` of one listener. For any thread."""

    def __init__(self, config: BrokerConfig, listener: str, users: ScramUsers) -> None:
        """ConfigError if the listener's settings, or the users of PLAIN, do not work now."""
        settings = config.login(listener)
        if settings.plain_users is not None:
            plain_users(settings.plain_users)
        self._users = users
        self.sessions = LoginSessions()
        self.removals = (
            None if settings.plain_users is None else PlainRemovals(settings.plain_users, self.sessions)
        )
        """Closes the sessions of removed users of PLAIN; None without PLAIN."""
        self.terms = LoginTerms(_mechanisms(settings, users), settings.session_max_ms)
        self.failure_delay_ms = config.get_int("connection.failed.authentication.delay.ms")
        self.request_bytes_max = config.get_int("sasl.server.max.receive.size")

    def is_known(self, user: str, mechanism: str) -> bool:
        return mechanism == PLAIN or self._users.has(user, mechanism)


class ClusterLogins:
    """The logins at the listeners of one server, by the users of its cluster. For any thread.

    The owner loads ``users`` before it listens, and keeps them as the cluster has them.
    """

    def __init__(self, config: BrokerConfig, listeners: Iterable[str]) -> None:
        """``listeners``: those with logins. ConfigError as above."""
        self.users = ScramUsers()
        self._by_listener = {name: ListenerLogin(config, name, self.users) for name in listeners}

    def of(self, listener: str) -> ListenerLogin | None:
        """None where clients do not log in."""
        return self._by_listener.get(listener)

    def on_gone(self, user: str, mechanism: str) -> None:
        """A credential was deleted: what it has opened is closed."""
        count = sum(login.sessions.close((user, mechanism)) for login in self._by_listener.values())
        logger.info("%r may not log in by %s any more; %d connections are closed", user, mechanism, count)

    def removals(self) -> dict[str, Callable[[], Loop]]:
        """Loops that close the connections of removed users of PLAIN, by listener."""
        found = {name: login.removals for name, login in self._by_listener.items()}
        return {name: removals.loop for name, removals in found.items() if removals is not None}


def _mechanisms(settings: ListenerLoginSettings, users: ScramUsers) -> Mapping[str, NewMechanism]:
    return {name: _begin(name, settings.plain_users, users) for name in settings.mechanisms}


def _begin(name: str, jaas: Secret | None, users: ScramUsers) -> NewMechanism:
    if name != PLAIN:
        return _begin_scram(SCRAM_MECHANISMS[name], users)
    assert jaas is not None, "a listener with PLAIN names its users"
    passwords = PresentUsers(jaas)
    return lambda _: PlainServer(passwords)


def _begin_scram(mechanism: ScramMechanism, users: ScramUsers) -> NewMechanism:
    credential_of = partial(users.credential, mechanism)
    return lambda nonce: ScramServer(mechanism, credential_of, nonce)
