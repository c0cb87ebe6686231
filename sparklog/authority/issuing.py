"""Certificates for TLS, issued by an authority of one's own.

Keys are elliptic (P-256, in PKCS8), which every client of Kafka reads. A certificate is made for servers and
clients alike, because brokers show each other theirs. Names of hosts are alternative names: a common name
counts for no host where there are some.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sparklog.model.errors import ConfigError

AUTHORITY_DAYS: Final = 3_650
CERTIFICATE_DAYS: Final = 365

_CLOCKS_DIFFER: Final = timedelta(hours=1)
"""By so much a certificate is valid before it is made: hosts whose clocks lag accept it at once."""

_LABEL: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_NUMBERS: Final = re.compile(r"[0-9.]+")
_HOST_LENGTH_MAX: Final = 253


@dataclass(frozen=True, slots=True)
class Issued:
    """A key and its certificate, as PEM."""

    certificate: str
    key: str = field(repr=False)


def check_host(host: str) -> None:
    """ConfigError if ``host`` is neither an IP address nor a host's name."""
    if _is_address(host):
        return
    labels = host.removeprefix("*.").split(".")
    is_name = len(host) <= _HOST_LENGTH_MAX and all(map(_LABEL.fullmatch, labels))
    if not is_name or _NUMBERS.fullmatch(host):
        raise ConfigError(
            f"{host!r} is no name and no address of a host; give them as clients write them, without a port: "
            "broker-1.example.com, 10.0.0.7 or ::1"
        )


def new_authority(name: str, now: datetime) -> Issued:
    """An authority that issues certificates, and no authorities below it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = _builder(subject, subject, key.public_key(), now, now + timedelta(days=AUTHORITY_DAYS))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    return _issued(builder.sign(key, hashes.SHA256()), key)


def issue(authority: Issued, name: str, hosts: Sequence[str], now: datetime) -> Issued:
    """A certificate for ``name``, which is ``User:CN=NAME`` to brokers, at ``hosts``; with a new key.

    It ends with the authority's own, if that ends first. ConfigError if the authority's has expired, or its
    files cannot be read.
    """
    signer, signer_key = _read(authority)
    ends = min(now + timedelta(days=CERTIFICATE_DAYS), signer.not_valid_after_utc)
    if ends <= now:
        raise ConfigError(
            f"the authority has expired on {ends:%Y-%m-%d %H:%M:%S} UTC, and issues nothing any more; make "
            "a new one in another folder, and let all trust both until every certificate is the new one's"
        )
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = _builder(_name(name), signer.subject, key.public_key(), now, ends)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    of_signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key())
    builder = builder.add_extension(of_signer, critical=False)
    if hosts:
        alternative = x509.SubjectAlternativeName(list(map(_alternative_name, hosts)))
        builder = builder.add_extension(alternative, critical=False)
    return _issued(builder.sign(signer_key, hashes.SHA256()), key)


def _read(authority: Issued) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate(authority.certificate.encode())
        key = serialization.load_pem_private_key(authority.key.encode(), None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"the authority's certificate or key is damaged: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise ConfigError("the authority's key does not belong to its certificate; bring back its files")
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(begins - _CLOCKS_DIFFER).not_valid_after(ends)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative_name(host: str) -> x509.GeneralName:
    if _is_address(host):
        return x509.IPAddress(ipaddress.ip_address(host))
    return x509.DNSName(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Issued(certificate.public_bytes(pem).decode(), secret.decode())


def utc_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
