"""What the settings ``sasl.*`` ask of one listener, and of brokers that log in at each other.

A listener's value, ``listener.name.NAME.sasl.…``, comes before that of all listeners; a mechanism's,
``listener.name.NAME.MECHANISM.…``, before both. Names of listeners and mechanisms are in lower case there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.kafka_names import listener_prefix
from sparklog.model.settings.login_rows import (
    BROKERS_MECHANISM,
    ENABLED_MECHANISMS,
    JAAS_CONFIG,
    LOGIN_SETTINGS,
    SESSION_MAX,
)
from sparklog.model.settings.secrets import Secret
from sparklog.model.settings.setting import render

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")

_DEFAULTS: Final[Mapping[str, str]] = {one.name: render(one.default) for one in LOGIN_SETTINGS}


@dataclass(frozen=True, slots=True)
class ListenerLoginSettings:
    """Logins at one listener. ``plain_users`` is the JAAS string with the users of PLAIN."""

    listener: str
    mechanisms: tuple[str, ...]
    session_max_ms: Mapping[str, int]
    plain_users: Secret | None = field(default=None)


@dataclass(frozen=True, slots=True)
class ClientLoginSettings:
    """How this process logs in elsewhere. ``jaas`` names the user and the password."""

    mechanism: str
    jaas: Secret


def login_settings_of_listener(given: Mapping[str, str], listener: str) -> ListenerLoginSettings:
    """The settings of a listener with logins; ConfigError with the setting, its value and the remedy."""
    name, text = _of_listener(given, listener, ENABLED_MECHANISMS)
    mechanisms = tuple(one.strip() for one in text.split(",") if one.strip())
    unknown = [one for one in mechanisms if one not in MECHANISMS]
    if unknown or not mechanisms:
        raise ConfigError(
            f"{name}={text}: clients log in at listener {listener}, by {', '.join(MECHANISMS)}; "
            f"write {ENABLED_MECHANISMS}=SCRAM-SHA-512"
        )
    sessions = {one: int(_of_mechanism(given, listener, one, SESSION_MAX)[1]) for one in mechanisms}
    return ListenerLoginSettings(listener, mechanisms, sessions, _plain_users(given, listener, mechanisms))


def login_settings_of_brokers(given: Mapping[str, str], listener: str) -> ClientLoginSettings:
    """How brokers log in at their listener; ConfigError as above."""
    name, mechanism = _of_listener(given, listener, BROKERS_MECHANISM)
    accepted = login_settings_of_listener(given, listener).mechanisms
    if mechanism not in accepted:
        raise ConfigError(
            f"{name}={mechanism}: brokers log in at each other by listener {listener}, which has "
            f"{', '.join(accepted)}; choose one of them"
        )
    jaas_name, jaas = _of_mechanism(given, listener, mechanism, JAAS_CONFIG)
    if not jaas:
        full = f"{listener_prefix(listener)}{mechanism.lower()}.{JAAS_CONFIG}"
        raise ConfigError(
            f"brokers log in at each other by {mechanism}, and no user is given: set {full} to a login "
            "module with username and password, the password as a reference"
        )
    return ClientLoginSettings(mechanism, Secret(jaas, jaas_name))


def _plain_users(given: Mapping[str, str], listener: str, mechanisms: tuple[str, ...]) -> Secret | None:
    if PLAIN not in mechanisms:
        return None
    name, text = _of_mechanism(given, listener, PLAIN, JAAS_CONFIG)
    if not text:
        full = f"{listener_prefix(listener)}plain.{JAAS_CONFIG}"
        raise ConfigError(
            f"listener {listener} has PLAIN, and nobody may log in by it: set {full} to a PlainLoginModule "
            "with user_NAME options, the passwords as references"
        )
    return Secret(text, name)


def _of_listener(given: Mapping[str, str], listener: str, setting: str) -> tuple[str, str]:
    """The full name under which a listener's setting is given, and its value."""
    own = listener_prefix(listener) + setting
    name = own if own in given else setting
    return name, given.get(name, _DEFAULTS[setting]).strip()


def _of_mechanism(given: Mapping[str, str], listener: str, mechanism: str, setting: str) -> tuple[str, str]:
    own = f"{listener_prefix(listener)}{mechanism.lower()}.{setting}"
    if own in given:
        return own, given[own].strip()
    return _of_listener(given, listener, setting)
