"""The server's side of SCRAM: two tokens of the client, and the proof that it knows the password.

An unknown user is answered as a known one is with a wrong password: with a salt, after the same rounds and
the same work, by the same words. The caller gives the salt and a key that nobody's password has.
"""

import enum
import hmac
from collections.abc import Callable

from sparklog.core.security.login.mechanism import Answer, CredentialsRefused
from sparklog.core.security.login.scram import ScramCredential, ScramMechanism, xor
from sparklog.core.security.login.scram_messages import (
    ClientFirst,
    MalformedMessage,
    base64_text,
    parse_client_final,
    parse_client_first,
    server_first_text,
)


class _State(enum.Enum):
    FIRST = enum.auto()
    FINAL = enum.auto()
    OVER = enum.auto()


class ScramServer:
    """``ServerMechanism`` of one login. ``credential_of`` answers for every name, also for unknown ones."""

    __slots__ = ("_credential", "_credential_of", "_first", "_mechanism", "_nonce", "_server_first", "_state")

    def __init__(
        self, mechanism: ScramMechanism, credential_of: Callable[[str], ScramCredential], nonce: str
    ) -> None:
        """``nonce`` has this login's randomness: printable, and without commas."""
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._nonce = nonce
        self._state = _State.FIRST
        self._first: ClientFirst | None = None
        self._credential: ScramCredential | None = None
        self._server_first = ""

    @property
    def name(self) -> str:
        return self._mechanism.name

    def on_token(self, token: bytes) -> Answer:
        state, self._state = self._state, _State.OVER
        try:
            if state is _State.FIRST:
                return self._on_first(parse_client_first(token))
            if state is _State.FINAL:
                return self._on_final(token)
        except MalformedMessage:
            raise self._refused() from None
        raise self._refused()

    def _on_first(self, first: ClientFirst) -> Answer:
        if first.authorization_id not in ("", first.user):
            raise CredentialsRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._first = first
        self._nonce = first.nonce + self._nonce
        credential = self._credential = self._credential_of(first.user)
        self._server_first = server_first_text(self._nonce, credential.salt, credential.iterations)
        self._state = _State.FINAL
        return Answer(self._server_first.encode())

    def _on_final(self, token: bytes) -> Answer:
        first, credential, mechanism = self._first, self._credential, self._mechanism
        assert first is not None, "a final message follows a first one"
        assert credential is not None, "a first message has chosen the credential"
        final = parse_client_final(token)
        # As in Kafka: older versions of librdkafka put their own nonce before it once more, and sign that.
        if not final.nonce.endswith(self._nonce) or final.header != first.header:
            raise self._refused()
        if len(final.proof) != mechanism.key_bytes:
            raise self._refused()
        signed = f"{first.bare},{self._server_first},{final.unproven}".encode()
        key = xor(final.proof, mechanism.keyed(credential.stored_key, signed))
        if not hmac.compare_digest(mechanism.hashed(key), credential.stored_key):
            raise self._refused()
        signature = mechanism.keyed(credential.server_key, signed)
        return Answer(f"v={base64_text(signature)}".encode(), first.user)

    def _refused(self) -> CredentialsRefused:
        return CredentialsRefused(invalid_credentials(self.name))


def invalid_credentials(mechanism: str) -> str:
    """Kafka's words for a login that failed by SCRAM."""
    return (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism "
        + mechanism
    )
