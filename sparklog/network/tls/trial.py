"""A handshake in memory: whether a context serves, before clients meet it.

The client of the trial trusts the server's own certificate, so that all else is judged as clients judge it:
key, versions, cipher suites, what the certificate may be used for, and its names.
"""

import ssl
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.network.tls.stores import Identity

_IGNORES_TIME: Final = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: dates have their own check, with better words."""

_WRONG_HOST: Final = frozenset({62, 64})
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""

_ROUNDS_MAX: Final = 20


def try_server(server: ssl.SSLContext, identity: Identity) -> None:
    """ConfigError if clients that trust the certificate are refused; it asks for none of theirs."""
    mode = server.verify_mode
    server.verify_mode = ssl.CERT_NONE
    try:
        try_handshake(server, _trusting_client(identity, server, checks_host_name=False))
    except ssl.SSLError as error:
        raise ConfigError(f"{identity.place}: no client accepts it: {words_of(error)}") from None
    finally:
        server.verify_mode = mode


def words_of(error: ssl.SSLError) -> str:
    """Why a handshake failed, in OpenSSL's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or str(error)).lower().replace("_", " ")


def try_handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str | None = None) -> None:
    """Raises ssl.SSLError of the side that refuses the other. ``host``: the name that the client dials."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_side=False, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(_ROUNDS_MAX):
        sides = [side for side in sides if not _is_done(side)]
        if not sides:
            return
    raise ConfigError("a handshake in memory does not end")


def names_host(server: ssl.SSLContext, identity: Identity, host: str) -> bool:
    """Whether the certificate is for ``host``, as its clients judge. The server asks for none of theirs."""
    client = _trusting_client(identity, server, checks_host_name=True)
    try:
        try_handshake(server, client, host.partition("%")[0])
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _WRONG_HOST:
            return False
        raise
    return True


def _trusting_client(identity: Identity, like: ssl.SSLContext, *, checks_host_name: bool) -> ssl.SSLContext:
    """A client that trusts the server's own certificate. ``like``: the server's context."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_host_name
    context.minimum_version, context.maximum_version = like.minimum_version, like.maximum_version
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _IGNORES_TIME
    context.load_verify_locations(cadata=identity.chain[0])
    context.set_ciphers(":".join(one["name"] for one in like.get_ciphers()))
    return context


def _is_done(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
