"""OpenSSL contexts of one side, made of its settings and stores.

A context is always new: a failed call leaves one that lives without a certificate. The system's authorities
count only without a trust store. A certificate in a trust store is trusted itself, whether an authority or
not, as in Java. Renegotiation, which lets a peer make a server work, is refused.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from sparklog.model.errors import ConfigError
from sparklog.model.settings.tls_settings import ClientAuth, TlsSettings
from sparklog.network.tls.stores import Identity

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY_MODES: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_DESCRIPTORS: Final = "/proc/self/fd"


def server_context(
    settings: TlsSettings, identity: Identity, authorities: tuple[str, ...] | None
) -> ssl.SSLContext:
    """For connections that are accepted. Raises ConfigError."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings)
    _load_identity(context, identity)
    if settings.client_auth is not ClientAuth.NONE:
        _load_authorities(context, settings, authorities, ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = _VERIFY_MODES[settings.client_auth]
    return context


def client_context(
    settings: TlsSettings, identity: Identity | None, authorities: tuple[str, ...] | None
) -> ssl.SSLContext:
    """For connections that are opened. Raises ConfigError."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings)
    context.check_hostname = settings.checks_host_names
    context.verify_mode = ssl.CERT_REQUIRED
    if identity is not None:
        _load_identity(context, identity)
    _load_authorities(context, settings, authorities, ssl.Purpose.SERVER_AUTH)
    return context


def _context(protocol: int, settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = _VERSIONS[settings.versions[0]]
    context.maximum_version = _VERSIONS[settings.versions[-1]]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.cipher_suites:
        suites = ":".join(settings.cipher_suites)
        try:
            context.set_ciphers(suites)
        except ssl.SSLError as error:
            raise ConfigError(
                f"ssl.cipher.suites: OpenSSL here has none of {suites} ({error.reason})"
            ) from None
    return context


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    with _as_file("".join((identity.key, *identity.chain))) as path:
        try:
            context.load_cert_chain(path, password=_ask_nobody)
        except ssl.SSLError as error:
            raise ConfigError(f"{identity.place}: {_refusal(error)}") from None


def _refusal(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return (
            "the private key is not that of the first certificate; name a pair, the owner's certificate first"
        )
    return f"OpenSSL refuses the certificates or the key ({error.reason or error.strerror})"


def _load_authorities(
    context: ssl.SSLContext,
    settings: TlsSettings,
    authorities: tuple[str, ...] | None,
    purpose: ssl.Purpose,
) -> None:
    if authorities is None:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(cadata="".join(authorities))
    except ssl.SSLError as error:
        store = settings.trust_store
        place = store.setting if store is not None else "ssl.truststore"
        raise ConfigError(
            f"{place}: OpenSSL refuses a certificate ({error.reason or error.strerror})"
        ) from None


def _ask_nobody() -> NoReturn:
    """OpenSSL would ask for a password at the terminal."""
    raise ConfigError("the private key is encrypted in a way that was not seen; write it as PKCS8")


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """The path of a file with ``text``: in memory where the system can, else one that only we may read."""
    if hasattr(os, "memfd_create") and os.path.isdir(_DESCRIPTORS):
        descriptor = os.memfd_create("tls", os.MFD_CLOEXEC)
        path = f"{_DESCRIPTORS}/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="tls-")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            yield path
    finally:
        if not path.startswith(_DESCRIPTORS):
            os.unlink(path)
