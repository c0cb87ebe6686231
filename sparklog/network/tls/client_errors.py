"""OpenSSL's errors on the accepting side, in words for the broker's log."""

import ssl
from typing import Final


class ClientRefused(ConnectionError):  # noqa: N818 (it states a fact)
    """The handshake has failed, by which side ever; the alert that says why has been sent or received."""


_REASONS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": (
        "it has no certificate, which ssl.client.auth asks for; set ssl.keystore.location at the client"
    ),
    "NO_SHARED_CIPHER": "it has no cipher suite in common with this listener; compare ssl.cipher.suites",
    "UNSUPPORTED_PROTOCOL": "it has no version of TLS in common; compare ssl.enabled.protocols",
    "VERSION_TOO_LOW": "it has no version of TLS in common; compare ssl.enabled.protocols",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it has no version of TLS in common; compare ssl.enabled.protocols",
    "TLSV1_ALERT_UNKNOWN_CA": (
        "it does not know the authority of this broker's certificate; add it to the client's trust store"
    ),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it finds that this broker's certificate has expired; renew it",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": (
        "it does not accept this broker's certificate; look at the client's log and trust store"
    ),
    "SSLV3_ALERT_BAD_CERTIFICATE": (
        "it does not accept this broker's certificate (perhaps it lacks the host's name); look at the"
        " client's log"
    ),
}
"""By the mnemonic that OpenSSL has."""

_HANDSHAKE: Final = 0x16
_ALERT: Final = 0x15
_IN_OLD_HELLO: Final = 0x80
"""The first byte of a client's first record: today, refused at once, and in SSL 2's way."""


def broken_or_refused(error: ssl.SSLError, greeting: bytes) -> ConnectionError:
    """What the accepting side raises for ``error``; the client's first bytes are ``greeting``."""
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return ConnectionResetError("it left in the middle of its handshake")
    if greeting and greeting[0] not in (_HANDSHAKE, _ALERT) and greeting[0] < _IN_OLD_HELLO:
        return ClientRefused(
            "it sent bytes in the clear to a port with TLS; set security.protocol=SSL at the client"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return ClientRefused(f"its certificate is not accepted: {error.verify_message}")
    return ClientRefused(_REASONS.get(error.reason or "", str(error)))
