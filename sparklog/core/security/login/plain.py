"""PLAIN (RFC 4616): the password itself, in one token: ``authorization id NUL user NUL password``, in UTF-8.

An unknown user gets the same answer after the same work as a wrong password.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Final

from sparklog.core.security.login.mechanism import Answer, CredentialsRefused

PLAIN: Final = "PLAIN"

_PARTS: Final = 3


class PlainServer:
    """``ServerMechanism`` of one login. ``passwords`` is asked for all users at each login."""

    __slots__ = ("_is_over", "_passwords")

    name = PLAIN

    def __init__(self, passwords: Callable[[], Mapping[str, str]]) -> None:
        self._passwords = passwords
        self._is_over = False

    def on_token(self, token: bytes) -> Answer:
        if self._is_over:
            raise CredentialsRefused("Authentication failed: PLAIN has one token")
        self._is_over = True
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise CredentialsRefused("Authentication failed: the token is not UTF-8") from None
        if len(parts) != _PARTS:
            raise CredentialsRefused(
                f"Authentication failed: Invalid SASL/PLAIN response: expected {_PARTS} tokens, "
                f"got {len(parts)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise CredentialsRefused("Authentication failed: username not specified")
        if not password:
            raise CredentialsRefused("Authentication failed: password not specified")
        if not self._is_right(user, password):
            raise CredentialsRefused("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise CredentialsRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Answer(b"", user)

    def _is_right(self, user: str, password: str) -> bool:
        expected = self._passwords().get(user, "")
        return hmac.compare_digest(_fixed_length(password), _fixed_length(expected))


def _fixed_length(password: str) -> bytes:
    """A comparison takes the same time for passwords of all lengths."""
    return hashlib.sha256(password.encode("utf-8", "surrogatepass")).digest()


def plain_token(user: str, password: str) -> bytes:
    """A client's one token."""
    return f"\0{user}\0{password}".encode()
