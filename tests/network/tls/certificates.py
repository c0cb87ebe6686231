"""Authorities, certificates and settings for tests: the good ones of trustme, others made to be wrong."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from sparklog.model.settings.tls_settings import TlsSettings, tls_settings_of_client, tls_settings_of_listener
from tests.closed_files import CLOSED

AUTHORITY = trustme.CA()
OTHER_AUTHORITY = trustme.CA()
NOW = datetime.now(UTC).replace(microsecond=0)
YESTERDAY = NOW - timedelta(days=1)
TOMORROW = NOW + timedelta(days=1)
PASSWORD = "planted-password"


def issued(*hosts: str, authority: trustme.CA = AUTHORITY, **dates: datetime) -> trustme.LeafCert:
    return authority.issue_cert(
        *(hosts or ("localhost", "127.0.0.1")), key_type=trustme.KeyType.ECDSA, **dates
    )


def pem_of(leaf: trustme.LeafCert) -> bytes:
    return leaf.private_key_and_cert_chain_pem.bytes()


def encrypted_pem_of(leaf: trustme.LeafCert, password: str = PASSWORD) -> bytes:
    """As ``openssl pkcs8 -topk8`` writes the key, and the certificates after it."""
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    ) + b"".join(one.bytes() for one in leaf.cert_chain_pems)


def pkcs12_of(leaf: trustme.LeafCert, password: str = PASSWORD) -> bytes:
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    own, *others = (x509.load_pem_x509_certificate(one.bytes()) for one in leaf.cert_chain_pems)
    return pkcs12.serialize_key_and_certificates(
        b"broker", key, own, others, serialization.BestAvailableEncryption(password.encode())
    )


def pkcs12_of_authority(authority: trustme.CA = AUTHORITY, password: str = PASSWORD) -> bytes:
    certificate = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    return pkcs12.serialize_key_and_certificates(
        None, None, None, [certificate], serialization.BestAvailableEncryption(password.encode())
    )


def self_signed(purpose: x509.ObjectIdentifier, host: str = "localhost") -> bytes:
    """A key and its certificate, for one purpose alone, and without alternative names; PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    owner = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    serial = x509.random_serial_number()
    certificate = (
        x509.CertificateBuilder(owner, owner, key.public_key(), serial, YESTERDAY, TOMORROW)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)


def written(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    path.chmod(CLOSED)
    return str(path)


def replace(path: str, content: bytes) -> None:
    """As careful administrators do: beside it, then in its place."""
    Path(f"{path}.new").write_bytes(content)
    Path(f"{path}.new").chmod(CLOSED)
    os.replace(f"{path}.new", path)


def of_listener(key_store: str, **more: str) -> TlsSettings:
    return tls_settings_of_listener({"ssl.keystore.location": key_store, **_named(more)}, "SSL")


def of_client(**more: str) -> TlsSettings:
    return tls_settings_of_client(_named(more))


def _named(settings: dict[str, str]) -> dict[str, str]:
    return {f"ssl.{name.replace('_', '.')}": text for name, text in settings.items()}
