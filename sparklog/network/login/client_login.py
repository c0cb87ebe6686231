"""How this process logs in at a broker or controller: SaslHandshake, then the mechanism's tokens (KIP-152).

User and password are read at each login, so that a changed file counts from the next one on. A salted
password is kept for its salt, so that its cost is paid once and not at each connection (RFC 5802 §5.1).
"""

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, Self

from sparklog.core.security.login.plain import PLAIN, plain_token
from sparklog.core.security.login.scram import SCRAM_MECHANISMS, ScramMechanism
from sparklog.core.security.login.scram_client import ScramClient, ServerRefused
from sparklog.credentials.jaas_users import UserAndPassword, user_and_password
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.login_settings import ClientLoginSettings
from sparklog.model.settings.secrets import STARS
from sparklog.network.dialing.peer_refused import LoginRefused
from sparklog.wire.codec import Message
from sparklog.wire.messages.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from sparklog.wire.messages.security.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 2
"""Kafka's brokers have it since 2.5."""

_NONCE_BYTES: Final = 24
_SHOWN_MAX: Final = 300

Ask = Callable[[Message, int], Any]
"""Sends a request in a version, and waits for its response."""


class _Salted(NamedTuple):
    password: str
    salt: bytes
    iterations: int
    result: bytes

    def __repr__(self) -> str:
        return f"_Salted({STARS})"


class ClientLogin:
    """For any thread, and any number of connections."""

    def __init__(self, settings: ClientLoginSettings) -> None:
        """ConfigError if the settings name no user and password now."""
        self._mechanism = settings.mechanism
        self._salted: _Salted | None = None
        self._read_user: Callable[[], UserAndPassword] = partial(user_and_password, settings.jaas)
        self._read_user()

    @classmethod
    def of_user(cls, mechanism: str, user: UserAndPassword) -> Self:
        """The login of somebody who has said who they are. What they say is taken as it is: a reference in
        it would read our files for a stranger.
        """
        login = cls.__new__(cls)
        login._mechanism, login._salted, login._read_user = mechanism, None, lambda: user
        return login

    def log_in(self, ask: Ask) -> int:
        """Log in by means of ``ask``; returns for how many milliseconds, 0 for ever.

        LoginRefused if the peer refuses; ConfigError if user and password cannot be read now.
        """
        user = self._read_user()
        handshake: SaslHandshakeResponse = ask(
            SaslHandshakeRequest(mechanism=self._mechanism), HANDSHAKE_VERSION
        )
        self._check_handshake(handshake)
        if self._mechanism == PLAIN:
            token = plain_token(user.user, user.password)
            return self._send(ask, token, user).session_lifetime_ms
        return self._log_in_by_scram(ask, SCRAM_MECHANISMS[self._mechanism], user)

    def _log_in_by_scram(self, ask: Ask, mechanism: ScramMechanism, user: UserAndPassword) -> int:
        def salted(salt: bytes, iterations: int) -> bytes:
            return self._salted_password(mechanism, user.password, salt, iterations)

        client = ScramClient(mechanism, user.user, salted, secrets.token_urlsafe(_NONCE_BYTES))
        first = self._send(ask, client.first(), user)
        try:
            final = self._send(ask, client.final(bytes(first.auth_bytes)), user)
            client.check(bytes(final.auth_bytes))
        except ServerRefused as error:
            raise LoginRefused(f"the login by {mechanism.name} ends: {error}") from None
        return final.session_lifetime_ms

    def _salted_password(
        self, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
    ) -> bytes:
        kept = self._salted
        if kept is None or kept[:3] != (password, salt, iterations):
            result = mechanism.salted(password.encode(), salt, iterations)
            kept = self._salted = _Salted(password, salt, iterations, result)
        return kept.result

    def _check_handshake(self, response: SaslHandshakeResponse) -> None:
        if response.error_code is ErrorCode.illegal_sasl_state:
            raise LoginRefused("nobody logs in at this port: set security.protocol=SSL, or PLAINTEXT")
        if response.error_code is not ErrorCode.none:
            there_are = _shown(", ".join(response.mechanisms[:_SHOWN_MAX])) or "none"
            raise LoginRefused(
                f"it does not take the mechanism {self._mechanism}; there are {there_are}: set sasl.mechanism"
            )

    def _send(self, ask: Ask, token: bytes, user: UserAndPassword) -> SaslAuthenticateResponse:
        response: SaslAuthenticateResponse = ask(
            SaslAuthenticateRequest(auth_bytes=token), AUTHENTICATE_VERSION
        )
        if response.error_code is not ErrorCode.none:
            message = _shown(response.error_message or response.error_code.name)
            raise LoginRefused(f"the login is refused: {message} (user {user.user!r}, {self._mechanism})")
        return response


def _shown(text: str) -> str:
    """A text of a peer that has not proven anything yet, for an error: short, and on one line."""
    text = text[:_SHOWN_MAX]
    return text if text.isprintable() else repr(text)
