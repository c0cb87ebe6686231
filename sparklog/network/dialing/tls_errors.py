"""OpenSSL's errors on the dialling side, in words that say what to do."""

import ssl
from typing import Final

from sparklog.network.dialing.peer_refused import TlsRefused

CLEAR_TEXT_ADVICE: Final = "set security.protocol=PLAINTEXT, or use the port of a listener with TLS"


_OWN_CERTIFICATE: Final = "look at the certificate in ssl.keystore.location"

_REASONS: Final = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a client certificate: set ssl.keystore.location",
    "TLSV1_ALERT_UNKNOWN_CA": (
        "it does not know the authority of this side's certificate: put the authority into the broker's"
        " ssl.truststore.location, or take a certificate of an authority that it knows"
    ),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": (
        f"it refuses this side's certificate, which has expired: renew it, and {_OWN_CERTIFICATE}"
    ),
    "SSLV3_ALERT_CERTIFICATE_REVOKED": f"this side's certificate is revoked: {_OWN_CERTIFICATE}",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": f"it does not accept this side's certificate: {_OWN_CERTIFICATE}",
    "SSLV3_ALERT_BAD_CERTIFICATE": (
        f"it does not accept this side's certificate, or misses one: {_OWN_CERTIFICATE}"
    ),
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": (
        f"this side's certificate is of a kind, or for a use, that it does not accept: {_OWN_CERTIFICATE}"
    ),
    "TLSV1_ALERT_DECRYPT_ERROR": (
        "this side's certificate and key do not belong together, as it finds: look at ssl.keystore.location"
    ),
    "TLSV1_ALERT_ACCESS_DENIED": "it grants no access to this side's certificate",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (
        "both sides have no cipher suite in common, or it asks for a client certificate: compare"
        " ssl.cipher.suites, and set ssl.keystore.location"
    ),
    "TLSV1_ALERT_INSUFFICIENT_SECURITY": (
        "it takes none of this side's cipher suites: compare ssl.cipher.suites"
    ),
    "TLSV1_ALERT_PROTOCOL_VERSION": (
        "it takes none of this side's versions of TLS: compare ssl.enabled.protocols"
    ),
    "UNSUPPORTED_PROTOCOL": (
        "it speaks a version of TLS that this side does not take: compare ssl.enabled.protocols"
    ),
    "NO_PROTOCOLS_AVAILABLE": "ssl.enabled.protocols and ssl.cipher.suites leave no version of TLS",
    "NO_CIPHERS_AVAILABLE": "ssl.enabled.protocols and ssl.cipher.suites leave no cipher suite",
    "WRONG_CIPHER_RETURNED": "it has chosen a cipher suite that this side does not have",
    "EE_KEY_TOO_SMALL": "the key of its certificate is too small: make a certificate with a larger one",
    "CA_KEY_TOO_SMALL": "the key of its authority is too small: make certificates with a larger one",
    "CA_MD_TOO_WEAK": "its certificate is signed with a weak digest: make one with SHA-256",
    "DH_KEY_TOO_SMALL": "its Diffie-Hellman key is too small: compare ssl.cipher.suites",
}
"""By the mnemonic that OpenSSL has. One that is missing is a broken connection, which may be tried again."""

_TLS_RECORDS: Final = (0x15, 0x16)
"""The first byte of an alert, and of a handshake."""


def broken_or_refused(error: ssl.SSLError, greeting: bytes) -> ConnectionError:
    """What this side raises for ``error``; the broker's first bytes are ``greeting``."""
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return ConnectionResetError("it closed the connection during the TLS handshake")
    if greeting and greeting[0] not in _TLS_RECORDS:
        return TlsRefused(f"it speaks no TLS: {CLEAR_TEXT_ADVICE}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsRefused(f"its certificate is not accepted: {error.verify_message}")
    why = _REASONS.get(error.reason or "")
    return ConnectionError(f"TLS failed: {error}") if why is None else TlsRefused(why)
