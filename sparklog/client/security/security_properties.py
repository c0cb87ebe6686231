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
    from sparklog.model.settings.tls_settings import TlsSettings

SECURITY_PROTOCOL: Final = "security.protocol"
SECURITY_PROVIDERS: Final = "security.providers"
TLS_PREFIX: Final = "ssl."
LOGIN_PREFIX: Final = "sasl."
_PREFIXES: Final = (TLS_PREFIX, LOGIN_PREFIX, "security.")
_NAMES: Final = tuple(sorted(name for name in CLIENT_PROPERTIES if name.startswith(_PREFIXES)))

_KEPT: Final = (SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL)
_IN_THE_CLEAR: Final = "PLAINTEXT inside a network that you trust"


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
        known = ", ".join(protocol.name for protocol in _KEPT)
        near = difflib.get_close_matches(name, [protocol.name for protocol in _KEPT], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{SECURITY_PROTOCOL}={text!r} is no security protocol; there are {known}{hint}")
    protocol = SecurityProtocol[name]
    if protocol not in _KEPT:
        without_login = "SSL" if protocol is SecurityProtocol.SASL_SSL else _IN_THE_CLEAR
        raise ConfigError(
            f"{SECURITY_PROTOCOL}={text!r}: sparklog's clients cannot log in yet; use {without_login}"
        )
    if protocol is SecurityProtocol.SSL and properties.get(SECURITY_PROVIDERS, "").strip():
        raise ConfigError(f"{SECURITY_PROVIDERS}: Java's providers cannot run here; leave it out")
    return protocol


def tls_settings_of(properties: Mapping[str, str]) -> "TlsSettings | None":
    """What ``ssl.*`` asks of a client that connects over TLS; None in the clear. Reads no file.

    ConfigError as ``protocol_of``, and for settings that cannot be, or not together.
    """
    if protocol_of(properties) is SecurityProtocol.PLAINTEXT:
        return None
    # start time: a client in the clear has no need of it
    from sparklog.model.settings.tls_settings import tls_settings_of_client

    return tls_settings_of_client(
        {name: text for name, text in properties.items() if name.startswith(TLS_PREFIX)}
    )


def without_effect(properties: Mapping[str, str]) -> str | None:
    """What a user may take for safety and does not get, in words; None if there is nothing."""
    protocol = protocol_of(properties)
    unread = (LOGIN_PREFIX,) if protocol is SecurityProtocol.SSL else (LOGIN_PREFIX, TLS_PREFIX)
    names = [name for name, text in properties.items() if name.startswith(unread) and text.strip()]
    if not names:
        return None
    what = "has no effect" if len(names) == 1 else "have no effect"
    how = "in the clear" if protocol is SecurityProtocol.PLAINTEXT else "without a login"
    return (
        f"{', '.join(sorted(names))} {what}: connections are {how}, as {SECURITY_PROTOCOL} is {protocol.name}"
    )


def _refuse_unknown(name: str) -> None:
    if name in CLIENT_PROPERTIES:
        return
    near = difflib.get_close_matches(name, _NAMES, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(f"{name}: no client of Kafka has a property of that name{hint}")
