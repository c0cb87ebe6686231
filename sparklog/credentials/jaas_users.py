"""Users and passwords out of JAAS strings, whose references are resolved anew at each use.

A string that is one reference is resolved first and read then. Otherwise its passwords are resolved, so that
a password may have quotes and backslashes. Only those are that are asked for: a broker's string has the users
of PLAIN beside its own.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from sparklog.credentials.references import NoSuchSecret, Resolver
from sparklog.credentials.secret_files import ReadFile, read_file
from sparklog.model.errors import ConfigError
from sparklog.model.settings.jaas import JaasEntry, parse_jaas
from sparklog.model.settings.login_checks import PASSWORD_OPTION, USER_OPTION_PREFIX
from sparklog.model.settings.secrets import Secret, is_reference

_OF_A_CLIENT: Final = frozenset({"username", PASSWORD_OPTION, "tokenauth"})


@dataclass(frozen=True, slots=True)
class UserAndPassword:
    """Shown without the password."""

    user: str
    password: str = field(repr=False)


def plain_users(jaas: Secret, read: ReadFile = read_file) -> Mapping[str, str]:
    """The passwords of PLAIN's users by name; ConfigError if the string, or a reference in it, is wrong."""
    options = _resolved(jaas, read, lambda name: name.startswith(USER_OPTION_PREFIX)).options
    return {name.removeprefix(USER_OPTION_PREFIX): password for name, password in options.items()}


def present_plain_users(jaas: Secret, read: ReadFile = read_file) -> Mapping[str, str]:
    """The same without those whose secret is gone from its place: they were removed. ConfigError if a place
    cannot be read.
    """
    text, resolver = jaas.reveal(), Resolver(read)
    if is_reference(text):
        return plain_users(jaas, read)
    found = {}
    try:
        for name, value in parse_jaas(text).options.items():
            if name.startswith(USER_OPTION_PREFIX):
                with suppress(NoSuchSecret):
                    found[name.removeprefix(USER_OPTION_PREFIX)] = resolver.resolve(value)
    except ConfigError as error:
        raise ConfigError(f"{jaas.setting}: {error}") from None
    return found


def user_and_password(jaas: Secret, read: ReadFile = read_file) -> UserAndPassword:
    """Whom this process logs in as; ConfigError as above, or if the string names nobody."""
    entry = _resolved(jaas, read, _OF_A_CLIENT.__contains__)
    if entry.options.get("tokenauth", "").lower() == "true":
        raise ConfigError(
            f"{jaas.setting}: it has a delegation token, which sparklog has not; use a password"
        )
    missing = [name for name in ("username", PASSWORD_OPTION) if not entry.options.get(name)]
    if missing:
        raise ConfigError(f"{jaas.setting}: it has no {' and no '.join(missing)}; add it")
    return UserAndPassword(entry.options["username"], entry.options[PASSWORD_OPTION])


def _resolved(jaas: Secret, read: ReadFile, is_wanted: Callable[[str], bool]) -> JaasEntry:
    text, resolver = jaas.reveal(), Resolver(read)
    try:
        is_whole = is_reference(text)
        entry = parse_jaas(resolver.resolve(text) if is_whole else text)
        wanted = {name: value for name, value in entry.options.items() if is_wanted(name)}
        if not is_whole:
            wanted = {name: resolver.resolve(value) for name, value in wanted.items()}
    except ConfigError as error:
        raise ConfigError(f"{jaas.setting}: {error}") from None
    return JaasEntry(entry.module, wanted)
