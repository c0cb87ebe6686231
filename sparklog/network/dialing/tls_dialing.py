"""The dialling side's handshake, and what a user needs to know when it fails.

A certificate that is not accepted is looked at once more, over a connection that verifies nothing and sends
nothing: OpenSSL does not show what it has refused, and the error is to list the certificate's names or dates.
A broker that hangs up is asked in the clear for the versions of its APIs: an answer shows that its port has
no TLS.
"""

import select
import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING, Final

from sparklog.model.cluster_facts import host_port
from sparklog.network.dialing.peer_refused import TlsRefused
from sparklog.network.dialing.tls_errors import CLEAR_TEXT_ADVICE, broken_or_refused
from sparklog.network.streams.tls_stream import TlsStream
from sparklog.network.tls.sides import TlsClient

if TYPE_CHECKING:
    from cryptography import x509

_SECOND_LOOK_S: Final = 2.0
"""Spent at most on finding out why a handshake has failed."""

_NAMES_LENGTH_MAX: Final = 1_000

_HOSTNAME_MISMATCH: Final = 62
_IP_ADDRESS_MISMATCH: Final = 64
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21})
"""X509_V_ERR_… of OpenSSL."""

_API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 0, -1)
"""The request that any broker of Kafka answers: version 0, correlation id 0, no client id."""

_ANSWER_HEAD: Final = struct.Struct(">ii")


def secure(
    sock: socket.socket,
    host: str,
    port: int,
    *,
    tls: TlsClient,
    context: ssl.SSLContext,
    deadline: float,
) -> TlsStream:
    """TLS over ``sock``, which is closed if that fails; raises as ``dial`` does."""
    peer = host_port(host, port)
    try:
        if tls.checks_host_names and not context.check_hostname:
            raise ValueError("host names are to be checked, and the context does not check them")
        name = host.rstrip(".").partition("%")[0]  # certificates have neither a final dot nor a scope
        stream = TlsStream(sock, context, explain=broken_or_refused, dialled=name)
        _shake_hands(stream, deadline)
    except OSError as error:
        sock.close()
        kind, why = _why(error, host, port)
        raise kind(f"cannot connect to {peer} over TLS: {why}") from error
    except BaseException:
        sock.close()
        raise
    return stream


def _shake_hands(stream: TlsStream, deadline: float) -> None:
    poll = select.poll()
    while not stream.shake_hands():
        wait_s = deadline - time.monotonic()
        if wait_s <= 0:
            raise ConnectionError("it did not end the handshake in time: is this a port with TLS?")
        poll.register(stream, select.POLLOUT | select.POLLIN if stream.unsent_bytes else select.POLLIN)
        poll.poll(wait_s * 1_000)


def _why(error: OSError, host: str, port: int) -> tuple[type[ConnectionError], str]:
    """The kind of error to raise, and its text."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return TlsRefused, _why_not_verified(cause, host, port)
    if isinstance(error, ConnectionResetError) and _answers_in_the_clear(host, port):
        return TlsRefused, f"it speaks no TLS, and answers in the clear: {CLEAR_TEXT_ADVICE}"
    return TlsRefused if isinstance(error, TlsRefused) else ConnectionError, str(error)


def why_refused(error: ssl.SSLError, host: str, port: int) -> str:
    """Why a handshake with what is no broker failed, in words for the dialling side."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _why_not_verified(error, host, port)
    return str(broken_or_refused(error, b""))


def _why_not_verified(error: ssl.SSLCertVerificationError, host: str, port: int) -> str:
    shown = _certificate_shown(host, port)
    if error.verify_code in (_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH):
        names = "other names" if shown is None else _names(shown)
        return (
            f"its certificate is for {names}, not for {host}: use a name that the certificate has, or give"
            " the broker a certificate with this one (an empty ssl.endpoint.identification.algorithm checks"
            " none)"
        )
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return _why_out_of_date(error, shown)
    if error.verify_code in _UNKNOWN_AUTHORITY:
        issuer = "" if shown is None else _issuer(shown)
        return (
            f"its certificate is from an authority{issuer} that is not trusted here: put the authority's"
            f" certificate into ssl.truststore.location ({error.verify_message})"
        )
    return f"its certificate is not accepted: {error.verify_message}"


def _why_out_of_date(error: ssl.SSLCertVerificationError, shown: "x509.Certificate | None") -> str:
    is_expired = error.verify_code == _EXPIRED
    if shown is not None:
        until, since = shown.not_valid_after_utc, shown.not_valid_before_utc
        if is_expired and until.timestamp() < time.time():
            return f"its certificate expired on {until:%Y-%m-%d %H:%M} UTC: give the broker a new one"
        if not is_expired and since.timestamp() > time.time():
            return f"its certificate is valid from {since:%Y-%m-%d %H:%M} UTC on: compare the clocks"
    state = "has expired" if is_expired else "is not valid yet"
    return f"a certificate in its chain {state}: give the broker a new chain, or compare the clocks"


def _names(certificate: "x509.Certificate") -> str:
    """The hosts that it is for. It is a stranger's, and may have anything in it."""
    # A heavy library, of which a failure alone has need.
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return "no host at all"
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return "other names"
    found = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    return _printable(", ".join(found)) or "no host at all"


def _issuer(certificate: "x509.Certificate") -> str:
    try:
        return f" ({_printable(certificate.issuer.rfc4514_string())})"
    except ValueError:
        return ""


def _printable(text: str) -> str:
    """Without what would begin a line of a log, or command a terminal; cut where it is long."""
    return "".join(one if one.isprintable() else "?" for one in text[:_NAMES_LENGTH_MAX])


def _certificate_shown(host: str, port: int) -> "x509.Certificate | None":
    """The certificate that a broker shows, unverified (nothing is sent to it); None if it shows none that can
    be read.
    """
    # A heavy library, of which a failure alone has need.
    from cryptography import x509

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), _SECOND_LOOK_S) as sock,
            context.wrap_socket(sock, server_hostname=host) as stream,
        ):
            shown = stream.getpeercert(binary_form=True)
        return None if shown is None else x509.load_der_x509_certificate(shown)
    except (OSError, ValueError):
        return None


def _answers_in_the_clear(host: str, port: int) -> bool:
    try:
        with (
            socket.create_connection((host, port), _SECOND_LOOK_S) as sock,
            sock.makefile("rb") as answer,
        ):
            sock.sendall(_API_VERSIONS)
            head = answer.read(_ANSWER_HEAD.size)
    except OSError:
        return False
    if len(head) < _ANSWER_HEAD.size:
        return False
    correlation_id: int = _ANSWER_HEAD.unpack(head)[1]
    return correlation_id == 0
