"""Key stores and trust stores in PKCS12, as ``keytool`` and ``openssl pkcs12`` write them."""

from collections.abc import Sequence

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import Certificate

from sparklog.model.errors import ConfigError


def key_and_chain(content: bytes, password: str) -> tuple[str, tuple[str, ...]]:
    """The private key of a key store and its certificates, the owner's first, as PEM."""
    store = _opened(content, password)
    if store.key is None or store.cert is None:
        raise ConfigError("it has no private key with its certificate")
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
    others = [one.certificate for one in store.additional_certs]
    return key, tuple(_pem(one) for one in _ordered(store.cert.certificate, others))


def authorities(content: bytes, password: str) -> tuple[str, ...]:
    """The certificates of a trust store, as PEM."""
    store = _opened(content, password)
    if store.key is not None:
        raise ConfigError("it has a private key; a trust store has the authorities' certificates alone")
    return tuple(_pem(one.certificate) for one in store.additional_certs)


def decrypted_key(pem: str, password: str) -> str:
    """The private key of an encrypted block of PEM, without encryption."""
    try:
        key = load_pem_private_key(pem.encode("ascii"), password.encode())
    except (ValueError, TypeError):  # the latter for an empty password
        raise ConfigError("the password does not open the private key, or the key is damaged") from None
    except UnsupportedAlgorithm as error:
        raise ConfigError(
            f"the private key is encrypted in a way that is too old: {error}; encrypt it anew"
        ) from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")


def _opened(content: bytes, password: str) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(content, password.encode() or None)
    except ValueError:
        without = "" if password else " (there is none)"
        raise ConfigError(
            f"its password does not open it{without}, or it is damaged, or still being written"
        ) from None
    except UnsupportedAlgorithm as error:
        raise ConfigError(f"it is encrypted in a way that is too old: {error}; write it anew") from None


def _pem(certificate: Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def _ordered(owner: Certificate, others: Sequence[Certificate]) -> list[Certificate]:
    """The chain from the owner to its authorities; certificates of other chains are left out."""
    chain = [owner]
    left = list(others)
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((one for one in left if one.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        chain.append(issuer)
        left.remove(issuer)
    return chain
