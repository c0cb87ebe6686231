"""A client's properties of security, by Kafka's names: ``security.*``, ``ssl.*``, ``sasl.*``.

A name that no client has is refused, as is what would not be kept: a connection in the clear, or without a
login, must be nobody's surprise.
"""

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from sparklog.client.property_names import CLIENT_PROPERTIES
from sparklog.model.cluster_facts import SecurityProtocol
from sparklog.model.errors import ConfigError

if TYPE_CHECKING:
    from sparklog.model.settings.login_settings import ClientLoginSettings
    from sparklog.model.settings.tls_settings import TlsSettings

SECURITY_PROTOCOL: Final = "security.protocol"
SECURITY_PROVIDERS: Final = "security.providers"
TLS_PREFIX: Final = "ssl."
LOGIN_PREFIX: Final = "sasl."
_PREFIXES: Final = (TLS_PREFIX, LOGIN_PREFIX, "security.")
_NAMES: Final = tuple(sorted(name for name in CLIENT_PROPERTIES if name.startswith(_PREFIXES)))

MECHANISM: Final = "sasl.mechanism"
JAAS_CONFIG: Final = "sasl.jaas.config"
_LOGIN_NAMES: Final = frozenset({MECHANISM, JAAS_CONFIG})
_JAVA_CLASSES: Final = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
)


def security_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of a client's properties that say how it connects."""
    return {name: text for name, text in properties.items() if name.startswith(_PREFIXES)}


def resolved(name: str, text: str) -> str:
    """A property's value, with what its references name; ConfigError says what is missing, and for what."""
    if "${" not in text:
        return text
    # start time: few values have references
    from sparklog.credentials.references import resolve

    try:
        return resolve(text)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def protocol_of(properties: Mapping[str, str]) -> SecurityProtocol:
    """How a client connects; ConfigError for what is unknown, or cannot be kept."""
    for name in security_properties(properties):
        _refuse_unknown(name)
    text = properties.get(SECURITY_PROTOCOL, "")
    name = resolved(SECURITY_PROTOCOL, text).strip().upper() or SecurityProtocol.PLAINTEXT.name
    if name not in SecurityProtocol.__members__:
        known = ", ".join(SecurityProtocol.__members__)
        near = difflib.get_close_matches(name, SecurityProtocol.__members__, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{SECURITY_PROTOCOL}={text!r} is no security protocol; there are {known}{hint}")
    protocol = SecurityProtocol[name]
    if protocol.has_tls and properties.get(SECURITY_PROVIDERS, "").strip():
        raise ConfigError(f"{SECURITY_PROVIDERS}: Java's providers cannot run here; leave it out")
    return protocol


def tls_settings_of(properties: Mapping[str, str]) -> "TlsSettings | None":
    """What ``ssl.*`` asks of a client that connects over TLS; None in the clear. Reads no file.

    ConfigError as ``protocol_of``, and for settings that cannot be, or not together.
    """
    if not protocol_of(properties).has_tls:
        return None
    # start time: a client in the clear has no need of it
    from sparklog.model.settings.tls_settings import tls_settings_of_client

    return tls_settings_of_client(
        {name: text for name, text in properties.items() if name.startswith(TLS_PREFIX)}
    )


def login_settings_of(properties: Mapping[str, str]) -> "ClientLoginSettings | None":
    """How a client logs in; None if it does not. Reads no file.

    ConfigError as ``protocol_of``, and for a mechanism that sparklog lacks, or a JAAS string that is missing.
    """
    protocol = protocol_of(properties)
    if not protocol.has_login:
        return None
    # start time: as above
    from sparklog.model.settings.login_settings import MECHANISMS, ClientLoginSettings
    from sparklog.model.settings.secrets import Secret

    for name in _JAVA_CLASSES:
        if properties.get(name, "").strip():
            raise ConfigError(f"{name}: Java's classes cannot run here; leave it out")
    text = properties.get(MECHANISM, "")
    mechanism = resolved(MECHANISM, text).strip()
    if mechanism not in MECHANISMS:
        problem = (
            f"{MECHANISM}={text!r}" if text else f"{SECURITY_PROTOCOL}={protocol.name} needs {MECHANISM}"
        )
        raise ConfigError(f"{problem}: sparklog's clients log in by {', '.join(MECHANISMS)}; choose one")
    jaas = properties.get(JAAS_CONFIG, "").strip()
    if not jaas:
        raise ConfigError(
            f"{SECURITY_PROTOCOL}={protocol.name} needs {JAAS_CONFIG}: the login module with username and "
            "password, as Kafka's clients have it"
        )
    return ClientLoginSettings(mechanism, Secret(jaas, JAAS_CONFIG))


def without_effect(properties: Mapping[str, str]) -> str | None:
    """What a user may take for safety and does not get, in words; None if there is nothing."""
    protocol = protocol_of(properties)
    names = [name for name, text in properties.items() if text.strip() and not _is_read(name, protocol)]
    if not names:
        return None
    what = "has no effect" if len(names) == 1 else "have no effect"
    how = "over TLS" if protocol.has_tls else "in the clear"
    logged_in = f"with a login by {MECHANISM} alone" if protocol.has_login else "without a login"
    return (
        f"{', '.join(sorted(names))} {what}: connections are {how} and {logged_in}, as {SECURITY_PROTOCOL} "
        f"is {protocol.name}"
    )


def _is_read(name: str, protocol: SecurityProtocol) -> bool:
    if name.startswith(TLS_PREFIX):
        return protocol.has_tls
    if name.startswith(LOGIN_PREFIX):
        return protocol.has_login and name in _LOGIN_NAMES
    return True


def _refuse_unknown(name: str) -> None:
    if name in CLIENT_PROPERTIES:
        return
    near = difflib.get_close_matches(name, _NAMES, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(f"{name}: no client of Kafka has a property of that name{hint}")
