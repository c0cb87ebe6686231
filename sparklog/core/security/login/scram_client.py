"""The client's side of SCRAM. It proves the password without sending it, and checks the server's proof.

A server that knows no credential of the user cannot make the final message, so that a client never talks to
one that merely accepts everybody.
"""

import hmac
from collections.abc import Callable
from typing import Final

from sparklog.core.security.login.scram import (
    ITERATIONS_MIN,
    ScramMechanism,
    client_key,
    server_key,
    xor,
)
from sparklog.core.security.login.scram_messages import (
    MalformedMessage,
    base64_text,
    client_first_bare,
    parse_server_final,
    parse_server_first,
    unproven_final,
)

ACCEPTED_ITERATIONS_MAX: Final = 1_000_000
"""More would let a server take a client's CPU for many seconds."""

_HEADER: Final = "n,,"

Salt = Callable[[bytes, int], bytes]
"""Salts the user's password with a salt and iterations. A caller may keep the result (RFC 5802 §5.1)."""


class ServerRefused(Exception):  # noqa: N818 (it states a fact)
    """The server's messages are not those of a server that knows the user's password."""


class ScramClient:
    """One login: ``first``, then ``final`` with the answer, then ``check`` with the last one."""

    __slots__ = ("_bare", "_mechanism", "_nonce", "_salted", "_signature")

    def __init__(self, mechanism: ScramMechanism, user: str, salted: Salt, nonce: str) -> None:
        """``nonce`` has this login's randomness: printable, and without commas."""
        self._mechanism = mechanism
        self._salted = salted
        self._nonce = nonce
        self._bare = client_first_bare(user, nonce)
        self._signature = b""

    def first(self) -> bytes:
        return f"{_HEADER}{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof; ServerRefused for a first message of the server that none may have."""
        try:
            offer = parse_server_first(server_first)
        except MalformedMessage as error:
            raise ServerRefused(f"the broker's first message is wrong: {error}") from None
        if not offer.nonce.startswith(self._nonce) or offer.nonce == self._nonce:
            raise ServerRefused("the broker answers another login than this one")
        if not ITERATIONS_MIN <= offer.iterations <= ACCEPTED_ITERATIONS_MAX:
            raise ServerRefused(
                f"the broker asks for {offer.iterations} iterations; {ITERATIONS_MIN} to "
                f"{ACCEPTED_ITERATIONS_MAX} are accepted: store the user's password with others"
            )
        mechanism, salted = self._mechanism, self._salted(offer.salt, offer.iterations)
        key = client_key(mechanism, salted)
        unproven = unproven_final(_HEADER, offer.nonce)
        signed = f"{self._bare},{server_first.decode()},{unproven}".encode()
        proof = xor(key, mechanism.keyed(mechanism.hashed(key), signed))
        self._signature = mechanism.keyed(server_key(mechanism, salted), signed)
        return f"{unproven},p={base64_text(proof)}".encode()

    def check(self, server_final: bytes) -> None:
        """ServerRefused unless the server has proven that it knows the user's credential."""
        try:
            found = parse_server_final(server_final)
        except MalformedMessage as error:
            raise ServerRefused(f"the broker's last message is wrong: {error}") from None
        if isinstance(found, str):
            raise ServerRefused(f"the broker refuses: {found!r}")
        if not self._signature or not hmac.compare_digest(found, self._signature):
            raise ServerRefused("the broker does not know this user's password, and may be another's")
