"""SCRAM's formulas (RFC 5802, RFC 7677): what a password becomes, and what each side proves with it.

    salted password = PBKDF2(password, salt, iterations)          the client's, and worth a password
    client key = HMAC(salted password, "Client Key")              stored key = H(client key)
    server key = HMAC(salted password, "Server Key")
    proof = client key XOR HMAC(stored key, auth message)         the client has the password
    signature = HMAC(server key, auth message)                    the server has the credential

A cluster stores salt, iterations, stored key and server key, from which nobody can log in. As Kafka's, names
and passwords are UTF-8 as they are, without SASLprep.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""What a stored credential may have: a client needs some milliseconds for so many."""

_CREDENTIAL: Final = re.compile(
    r"salt=([A-Za-z0-9+/=]+),stored_key=([A-Za-z0-9+/=]+),server_key=([A-Za-z0-9+/=]+),iterations=(\d{1,9})"
)


@dataclass(frozen=True, slots=True)
class ScramMechanism:
    """One of SCRAM's mechanisms. ``number`` stands for it in Kafka's APIs."""

    name: str
    number: int
    digest: str

    @property
    def key_bytes(self) -> int:
        return hashlib.new(self.digest).digest_size

    def salted(self, password: bytes, salt: bytes, iterations: int) -> bytes:
        """The salted password; it takes the CPU that the iterations cost."""
        return hashlib.pbkdf2_hmac(self.digest, password, salt, iterations)

    def hashed(self, data: bytes) -> bytes:
        return hashlib.new(self.digest, data).digest()

    def keyed(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.digest)


SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512")

SCRAM_MECHANISMS: Final[Mapping[str, ScramMechanism]] = MappingProxyType(
    {one.name: one for one in (SHA_256, SHA_512)}
)
"""By name."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a cluster stores of a user's password, for one mechanism. Its keys are shown nowhere."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def credential_of(
    mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential of a password that is salted already."""
    stored_key = mechanism.hashed(client_key(mechanism, salted_password))
    return ScramCredential(salt, stored_key, server_key(mechanism, salted_password), iterations)


def client_key(mechanism: ScramMechanism, salted_password: bytes) -> bytes:
    return mechanism.keyed(salted_password, b"Client Key")


def server_key(mechanism: ScramMechanism, salted_password: bytes) -> bytes:
    return mechanism.keyed(salted_password, b"Server Key")


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def credential_text(credential: ScramCredential) -> str:
    """A credential as ZooKeeper holds it, in Kafka's format."""
    return (
        f"salt={_base64(credential.salt)},stored_key={_base64(credential.stored_key)},"
        f"server_key={_base64(credential.server_key)},iterations={credential.iterations}"
    )


def parse_credential(mechanism: ScramMechanism, text: str) -> ScramCredential | None:
    """The credential in ZooKeeper's text; None if it is none with which anybody may log in."""
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        return None
    try:
        salt, stored, server = (base64.b64decode(found[number], validate=True) for number in (1, 2, 3))
    except binascii.Error:
        return None
    iterations = int(found[4])
    if {len(stored), len(server)} != {mechanism.key_bytes} or iterations < ITERATIONS_MIN or not salt:
        return None
    return ScramCredential(salt, stored, server, iterations)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
