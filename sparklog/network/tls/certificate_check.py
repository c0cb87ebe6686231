"""What is wrong with the certificate of a listener, for the start of a broker: better no broker than one that
every client refuses.
"""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from sparklog.credentials.secret_files import read_file
from sparklog.model.errors import ConfigError
from sparklog.model.settings.tls_settings import ClientAuth, TlsSettings
from sparklog.model.time import WallMs
from sparklog.network.tls.certificate_facts import CertificateFacts, date, facts_of
from sparklog.network.tls.contexts import client_context, server_context
from sparklog.network.tls.stores import Identity, authorities_of, identity_of
from sparklog.network.tls.trial import names_host, try_handshake, try_server, words_of

EXPIRY_WARNING_MS: Final = 30 * 24 * 3_600_000
"""How long before its end a certificate is warned of."""


@dataclass(frozen=True, slots=True)
class CertificateCheck:
    """``problems``: reasons not to start, each with its remedy. ``exposure``: others may open the key's file,
    in words.
    """

    problems: tuple[str, ...]
    expires_at_ms: WallMs
    exposure: str | None


def check_certificate(
    settings: TlsSettings, hosts: Iterable[str], now_ms: WallMs, *, is_for_brokers: bool = False
) -> CertificateCheck:
    """Judge a listener's certificate. ``hosts``: what the broker advertises for the listener.

    ``is_for_brokers``: brokers dial the listener with these settings, so that each must accept the other.
    Raises ConfigError if the stores cannot be read.
    """
    identity = identity_of(settings, read_file)
    if identity is None:
        raise ConfigError("a listener that speaks TLS needs ssl.keystore.location, or a key in the settings")
    authorities = authorities_of(settings, read_file)
    facts = facts_of(identity)
    wrong_time = facts.time_problem(now_ms)
    if wrong_time is not None:
        return CertificateCheck((f"{identity.place}: {wrong_time}",), facts.expires_at_ms, identity.exposure)
    open_server = server_context(replace(settings, client_auth=ClientAuth.NONE), identity, authorities)
    try_server(open_server, identity)
    problems = _of_hosts(settings, identity, facts, open_server, hosts)
    if is_for_brokers:
        problems += _among_brokers(settings, identity, authorities)
    return CertificateCheck(tuple(problems), facts.expires_at_ms, identity.exposure)


def expiry_warning(expires_at_ms: WallMs, now_ms: WallMs) -> str | None:
    """A line for the log, if a certificate ends within thirty days."""
    if expires_at_ms - now_ms > EXPIRY_WARNING_MS:
        return None
    verb = "expires" if now_ms <= expires_at_ms else "has expired"
    return f"the certificate {verb} on {date(expires_at_ms)}: renew it, and replace its file"


def _of_hosts(
    settings: TlsSettings,
    identity: Identity,
    facts: CertificateFacts,
    server: ssl.SSLContext,
    hosts: Iterable[str],
) -> list[str]:
    if not settings.checks_host_names:
        return []
    missing = [host for host in hosts if not names_host(server, identity, host)]
    if not missing:
        return []
    return [
        f"{identity.place}: the certificate of {facts.owner} is for {', '.join(facts.hosts) or 'no host'}, "
        f"and not for {', '.join(missing)}, which the broker advertises; issue one for it, advertise another "
        "name, or leave ssl.endpoint.identification.algorithm empty, so that any certificate stands for any "
        "host"
    ]


def _among_brokers(
    settings: TlsSettings, identity: Identity, authorities: tuple[str, ...] | None
) -> list[str]:
    server = server_context(settings, identity, authorities)
    client = client_context(replace(settings, checks_host_names=False), identity, authorities)
    try:
        try_handshake(server, client)
    except ssl.SSLError as error:
        return [
            f"{identity.place}: brokers would not accept this certificate of each other ({words_of(error)}): "
            "the trust store must have its authority, and it must be made for servers and clients alike"
        ]
    return []
