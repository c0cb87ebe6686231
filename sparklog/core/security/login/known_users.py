"""Who may log in by SCRAM: the credentials of all users, as they were last read.

An unknown user has a credential too: its salt is made of the name and of a secret of the cluster, so that it
is the same at all brokers and after each restart, and nobody's password fits it. A stranger sees the salt and
the iterations of a credential: those of unknown users have the shape that most known ones have.
"""

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from sparklog.core.security.login.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism

_SALT_BYTES: Final = 20
"""As many as ``sparklog users`` draws."""

_KAFKAS_SALT: Final = re.compile(rb"[0-9a-z]{22,26}")
"""Kafka's tools draw a number of 130 bits, and write it in letters and digits."""

_KAFKAS_SALT_BITS: Final = 130
_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"

Credentials = Mapping[str, ScramCredential]
"""One user's, by mechanism."""


class _Shape(NamedTuple):
    """What a stranger sees of a credential. No ``salt_bytes``: the salt is such as Kafka's tools make."""

    iterations: int = ITERATIONS_MIN
    salt_bytes: int | None = _SALT_BYTES


class ScramUsers:
    """For any thread: all users are replaced at once."""

    def __init__(self, secret: bytes = b"") -> None:
        self.secret = secret
        """The cluster's alone; given before anybody logs in."""
        self._by_user: dict[str, Credentials] = {}
        self._shapes: Mapping[str, _Shape] = {}
        """Those of unknown users, by mechanism: as most known users have."""

    def replace_all(self, users: Mapping[str, Credentials]) -> list[tuple[str, str]]:
        """Know these users alone. Returns users and mechanisms whose credential is gone."""
        self._shapes = _most_common_shapes(users)
        before, self._by_user = self._by_user, dict(users)
        return [
            (user, mechanism)
            for user, credentials in before.items()
            for mechanism in credentials
            if mechanism not in users.get(user, {})
        ]

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """The user's credential, or one with which nobody logs in."""
        nobodys = self._nobodys(mechanism, user)  # for known users too, because it takes time
        return self._by_user.get(user, {}).get(mechanism.name, nobodys)

    def has(self, user: str, mechanism: str) -> bool:
        return mechanism in self._by_user.get(user, {})

    def _nobodys(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        def drawn(what: str) -> bytes:
            data = f"{what}\0{mechanism.name}\0{user}".encode("utf-8", "surrogatepass")
            return hmac.digest(self.secret, data, mechanism.digest)

        shape = self._shapes.get(mechanism.name, _Shape())
        salt = _salt(drawn("salt"), shape.salt_bytes)
        return ScramCredential(salt, drawn("stored key"), drawn("server key"), shape.iterations)


def _most_common_shapes(users: Mapping[str, Credentials]) -> Mapping[str, _Shape]:
    counts: dict[str, Counter[_Shape]] = {}
    for credentials in users.values():
        for mechanism, credential in credentials.items():
            counts.setdefault(mechanism, Counter())[_shape_of(credential)] += 1
    return {name: max(sorted(counted, key=str), key=counted.__getitem__) for name, counted in counts.items()}


def _shape_of(credential: ScramCredential) -> _Shape:
    is_kafkas = _KAFKAS_SALT.fullmatch(credential.salt) is not None
    return _Shape(credential.iterations, None if is_kafkas else len(credential.salt))


def _salt(drawn: bytes, salt_bytes: int | None) -> bytes:
    if salt_bytes is not None:
        return hashlib.shake_256(drawn).digest(salt_bytes)
    number, digits = int.from_bytes(drawn, "big") % (1 << _KAFKAS_SALT_BITS), bytearray()
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))
