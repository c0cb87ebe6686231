"""What the settings of logins mean together with the listeners. Brokers that use none do not import it.

Settings of brokers travel to their processes, through Spark's tasks, and are seen on command lines. So the
passwords in a JAAS string are references, or the whole string is one.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.listeners import Listeners
from sparklog.model.settings.jaas import PLAIN_MODULE, JaasEntry, parse_jaas
from sparklog.model.settings.kafka_names import listener_prefix, without_listener
from sparklog.model.settings.login_rows import JAAS_CONFIG, PLAIN_WITHOUT_TLS, is_login_setting
from sparklog.model.settings.login_settings import (
    MECHANISMS,
    PLAIN,
    login_settings_of_brokers,
    login_settings_of_listener,
)
from sparklog.model.settings.secrets import is_reference

PASSWORD_OPTION: Final = "password"
USER_OPTION_PREFIX: Final = "user_"
_WITHOUT_SECRET: Final = ("username", "tokenauth")
"""Options of login modules that everybody may see."""


def check_logins(given: Mapping[str, str], listeners: Listeners) -> tuple[str, ...]:
    """Warnings for the settings of logins among ``given``; ConfigError if they cannot work."""
    for name in sorted(filter(is_login_setting, given)):
        _refuse_without_listener(name, listeners)
        if without_listener(name) == JAAS_CONFIG:
            _refuse_literal_passwords(name, given[name])
    with_login = listeners.with_login()
    for listener in with_login:
        _check_listener(given, listener, has_tls=listener in listeners.with_tls())
    if listeners.inter_broker in with_login:
        login_settings_of_brokers(given, listeners.inter_broker)
    return tuple(_without_effect(given, listeners))


def is_secret_option(name: str) -> bool:
    """Whether the option of a login module is a password."""
    return name == PASSWORD_OPTION or name.startswith(USER_OPTION_PREFIX)


def _check_listener(given: Mapping[str, str], listener: str, *, has_tls: bool) -> None:
    settings = login_settings_of_listener(given, listener)
    may_be_clear = given.get(PLAIN_WITHOUT_TLS, "").strip().lower() == "true"
    if PLAIN in settings.mechanisms and not has_tls and not may_be_clear:
        raise ConfigError(
            f"listener {listener} has PLAIN, which sends passwords as they are, and no encryption: map it to "
            f"SASL_SSL, take SCRAM-SHA-512, or set {PLAIN_WITHOUT_TLS}=true if the network is yours alone"
        )
    users = settings.plain_users
    if users is not None and not is_reference(users.reveal()):
        entry = parse_jaas(users.reveal())
        if entry.module != PLAIN_MODULE:
            raise ConfigError(f"{users.setting}: the users of PLAIN stand in a {PLAIN_MODULE}")


def _refuse_literal_passwords(name: str, text: str) -> None:
    if not text.strip():
        return
    try:
        if is_reference(text):
            return
        entry = parse_jaas(text)
        literal = [option for option in _passwords(entry) if not is_reference(entry.options[option])]
        _refuse_unknown_options(entry)
    except ConfigError as error:
        raise ConfigError(f"{name}=[hidden]: {error}") from None
    if literal:
        raise ConfigError(
            f"{name}=[hidden]: {literal[0]} is a secret, and settings of brokers travel and are shown; put "
            "it into a file, and write ${file:PATH:KEY}, ${directory:DIR:FILE} or ${env:NAME}"
        )


def _refuse_unknown_options(entry: JaasEntry) -> None:
    """An unknown name may be a misspelt ``password``, whose literal value would travel."""
    for option, value in entry.options.items():
        if option in _WITHOUT_SECRET or is_secret_option(option) or is_reference(value):
            continue
        near = difflib.get_close_matches(option, (*_WITHOUT_SECRET, PASSWORD_OPTION), n=1)
        hint = f"did you mean {near[0]}?" if near else "leave it out"
        raise ConfigError(
            f"its login module has no option {option!r}, which may be a misspelt password; {hint}"
        )


def _passwords(entry: JaasEntry) -> Iterator[str]:
    return (option for option in entry.options if is_secret_option(option))


def _refuse_without_listener(name: str, listeners: Listeners) -> None:
    base = without_listener(name)
    if base == name:
        return
    prefix = name.removesuffix(base)
    prefixes = {listener_prefix(one): one for one in listeners.bound}
    if any(prefix in (one, *(f"{one}{mechanism.lower()}." for mechanism in MECHANISMS)) for one in prefixes):
        return
    raise ConfigError(
        f"{name}: no listener and mechanism have this prefix; listeners have {', '.join(prefixes)}, and "
        f"mechanisms are {', '.join(one.lower() for one in MECHANISMS)}; correct it"
    )


def _without_effect(given: Mapping[str, str], listeners: Listeners) -> Iterator[str]:
    with_login = tuple(map(listener_prefix, listeners.with_login()))
    for name in sorted(filter(is_login_setting, given)):
        is_of_listener = without_listener(name) != name
        if not with_login or (is_of_listener and not name.startswith(with_login)):
            yield (
                f"{name} has no effect, because no client logs in there: map a listener to SASL_SSL in "
                "listener.security.protocol.map, or leave the setting out"
            )
