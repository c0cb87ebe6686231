"""Both sides of TLS, made of settings.

A side with a key store has a certificate that is valid now, and a server's has shaken hands in memory, before
anybody meets it. The name in a client's certificate becomes its principal by the listener's rules.
"""

import ssl
from typing import Final

from sparklog.core.security.requester import ANONYMOUS, PRINCIPAL_BYTES_MAX
from sparklog.credentials.secret_files import ReadFile
from sparklog.model.errors import ConfigError
from sparklog.model.settings.tls_settings import TlsSettings
from sparklog.model.time import Clock, WallMs
from sparklog.network.clock import SystemClock
from sparklog.network.tls.certificate_facts import CertificateFacts, facts_of
from sparklog.network.tls.certificate_names import subject_of
from sparklog.network.tls.contexts import client_context, server_context
from sparklog.network.tls.reloading import FollowedContext, Loaded
from sparklog.network.tls.stores import Identity, authorities_of, identity_of
from sparklog.network.tls.trial import try_server

_USER: Final = "User:"


class ListenerTls:
    """``TlsServer`` of a listener whose files may change. For any thread."""

    def __init__(self, settings: TlsSettings, clock: Clock) -> None:
        self._rules = settings.principal_rules
        self._context = FollowedContext(lambda read: _load_server(settings, read, clock.wall_ms()), clock)

    def context(self) -> ssl.SSLContext:
        return self._context.loaded().context

    def principal_of(self, certificate: bytes | None) -> str:
        if certificate is None:
            return ANONYMOUS
        name = self._rules.name_of(subject_of(certificate))
        if not name:
            raise ValueError("the certificate has no name of an owner")
        principal = _USER + name
        if not principal.isprintable():
            raise ValueError(f"the name {name!r} has characters that cannot be printed")
        size_bytes = len(principal.encode("utf-8", "surrogatepass"))
        if size_bytes > PRINCIPAL_BYTES_MAX:
            raise ValueError(f"the name has {size_bytes} bytes, at most {PRINCIPAL_BYTES_MAX} are allowed")
        return principal

    def expires_at_ms(self) -> WallMs | None:
        """The last moment of the certificate that is in use."""
        return self._context.loaded().expires_at_ms


class DialledTls:
    """``TlsClient`` whose files may change. For any thread."""

    def __init__(self, settings: TlsSettings, clock: Clock) -> None:
        self.checks_host_names = settings.checks_host_names
        self._context = FollowedContext(lambda read: _load_client(settings, read, clock.wall_ms()), clock)

    def context(self) -> ssl.SSLContext:
        return self._context.loaded().context


def server_side(settings: TlsSettings, clock: Clock | None = None) -> ListenerTls:
    """The accepting side; ConfigError if its stores do not work now."""
    return ListenerTls(settings, clock or SystemClock())


def client_side(settings: TlsSettings, clock: Clock | None = None) -> DialledTls:
    """The dialling side; ConfigError if its stores do not work now."""
    return DialledTls(settings, clock or SystemClock())


def _load_server(settings: TlsSettings, read: ReadFile, now_ms: WallMs) -> Loaded:
    identity = identity_of(settings, read)
    if identity is None:
        raise ConfigError("a listener that speaks TLS needs ssl.keystore.location, or a key in the settings")
    facts = _valid_facts(identity, now_ms)
    context = server_context(settings, identity, authorities_of(settings, read))
    try_server(context, identity)
    return Loaded(context, facts.expires_at_ms, identity.exposure)


def _load_client(settings: TlsSettings, read: ReadFile, now_ms: WallMs) -> Loaded:
    identity = identity_of(settings, read)
    facts = None if identity is None else _valid_facts(identity, now_ms)
    context = client_context(settings, identity, authorities_of(settings, read))
    if identity is None or facts is None:
        return Loaded(context, None)
    return Loaded(context, facts.expires_at_ms, identity.exposure)


def _valid_facts(identity: Identity, now_ms: WallMs) -> CertificateFacts:
    facts = facts_of(identity)
    problem = facts.time_problem(now_ms)
    if problem is not None:
        raise ConfigError(f"{identity.place}: {problem}")
    return facts
