"""Users and passwords out of JAAS strings, whose references are resolved anew at each use.

A string that is one reference is resolved first and read then. Otherwise its passwords are resolved, so that
a password may have quotes and backslashes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparklog.credentials.references import ReadFile, read_file, resolve
from sparklog.model.errors import ConfigError
from sparklog.model.settings.jaas import JaasEntry, parse_jaas
from sparklog.model.settings.login_checks import PASSWORD_OPTION, USER_OPTION_PREFIX
from sparklog.model.settings.secrets import Secret, is_reference


@dataclass(frozen=True, slots=True)
class UserAndPassword:
    """Shown without the password."""

    user: str
    password: str = field(repr=False)


def plain_users(jaas: Secret, read: ReadFile = read_file) -> Mapping[str, str]:
    """The passwords of PLAIN's users by name; ConfigError if the string, or a reference in it, is wrong."""
    options = _resolved(jaas, read).options
    return {
        name.removeprefix(USER_OPTION_PREFIX): password
        for name, password in options.items()
        if name.startswith(USER_OPTION_PREFIX)
    }


def user_and_password(jaas: Secret, read: ReadFile = read_file) -> UserAndPassword:
    """Whom this process logs in as; ConfigError as above, or if the string names nobody."""
    entry = _resolved(jaas, read)
    if entry.options.get("tokenauth", "").lower() == "true":
        raise ConfigError(
            f"{jaas.setting}: it has a delegation token, which sparklog has not; use a password"
        )
    missing = [name for name in ("username", PASSWORD_OPTION) if not entry.options.get(name)]
    if missing:
        raise ConfigError(f"{jaas.setting}: it has no {' and no '.join(missing)}; add it")
    return UserAndPassword(entry.options["username"], entry.options[PASSWORD_OPTION])


def _resolved(jaas: Secret, read: ReadFile) -> JaasEntry:
    text = jaas.reveal()
    try:
        if is_reference(text):
            return parse_jaas(resolve(text, read))
        entry = parse_jaas(text)
        options = {name: resolve(value, read) for name, value in entry.options.items()}
    except ConfigError as error:
        raise ConfigError(f"{jaas.setting}: {error}") from None
    return JaasEntry(entry.module, options)
