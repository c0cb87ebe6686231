"""The login of an accepted connection: which of its requests are served, and the answers of the login itself.

The channel asks it before each request's handler. It decodes what belongs to the login, lets ``ServerLogin``
decide, and answers. Any other request passes once the client is in.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from sparklog.core.apis.api_table import APIS
from sparklog.core.security.login.server_login import (
    AnswerHandshake,
    AnswerToken,
    HangUp,
    LoginTerms,
    Pass,
    Refuse,
    ServerLogin,
)
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.parts import Part
from sparklog.network.exchange import Exchange
from sparklog.network.login.sessions import LoginSessions
from sparklog.wire.codec import RequestHeader, UnsupportedVersion, decode_request, encode_response
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from sparklog.wire.messages.security.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from sparklog.wire.versions import API_VERSIONS_KEY

_NONCE_BYTES: Final = 24
_KEY_BYTES: Final = 2


class LoginSettings(Protocol):
    """What a listener says of the logins at it."""

    @property
    def terms(self) -> LoginTerms: ...

    @property
    def sessions(self) -> LoginSessions: ...

    @property
    def failure_delay_ms(self) -> int:
        """How long a refusal waits before it is sent: guesses take their time."""
        ...

    @property
    def request_bytes_max(self) -> int:
        """The size of a request before the login is complete."""
        ...

    def is_known(self, user: str, mechanism: str) -> bool:
        """Whether the credential is still there by which this user has logged in."""
        ...


class ConnectionLogin:
    """One connection's; one request at a time."""

    def __init__(
        self, settings: LoginSettings, disconnect: Callable[[], None], on_refused: Callable[[str], None]
    ) -> None:
        """``on_refused``: takes the reason for which the client is refused or hung up on, for the log."""
        self._settings = settings
        self._disconnect = disconnect
        self._on_refused = on_refused
        self._login = ServerLogin(settings.terms)
        self._connection_id = 0
        self._has_ended = False

    @property
    def is_in(self) -> bool:
        """Whether the client has logged in."""
        return self._login.is_in

    def admits(self, exchange: Exchange) -> bool:
        """Whether the request goes to its handler; otherwise it is answered here, or the connection ends."""
        if self._login.awaits_bare_token:
            self._take_token(exchange, bytes(exchange.frame), header=None)
            return False
        key = int.from_bytes(exchange.frame[:_KEY_BYTES], "big")
        if key == SaslHandshakeRequest.API_KEY or key == SaslAuthenticateRequest.API_KEY:
            self._take_step(exchange)
            return False
        action: Pass | HangUp
        if key == API_VERSIONS_KEY:
            action = self._on_versions(exchange)
        else:
            api = APIS.get(key)
            name = f"a request of API {key}" if api is None else api.name
            action = self._login.on_request(name, exchange.context.received_ms)
        if isinstance(action, Pass):
            return True
        self._hang_up(exchange, action)
        return False

    def note_refusal(self, why: str) -> None:
        """The client is hung up on, for a reason outside of the login."""
        self._on_refused(why)

    def close(self) -> None:
        """The connection has ended; perhaps while a token is worked on elsewhere."""
        self._has_ended = True
        self._leave()

    def _leave(self) -> None:
        if self._login.is_in:
            self._settings.sessions.leave((self._login.user, self._login.mechanism), self._connection_id)

    def _on_versions(self, exchange: Exchange) -> Pass | HangUp:
        is_served = True
        try:
            decode_request(exchange.frame)
        except UnsupportedVersion:
            is_served = False
        except WireError as error:
            return HangUp(f"its request cannot be read: {error}")
        return self._login.on_versions(exchange.context.received_ms, is_served=is_served)

    def _take_step(self, exchange: Exchange) -> None:
        """A request of the login itself."""
        try:
            header, body = decode_request(exchange.frame)
        except WireError as error:
            self._hang_up(exchange, HangUp(f"its request cannot be read: {error}"))
            return
        exchange.api_key = header.api_key
        if isinstance(body, SaslAuthenticateRequest):
            self._take_token(exchange, bytes(body.auth_bytes), header)
            return
        nonce = secrets.token_urlsafe(_NONCE_BYTES)
        action = self._login.on_handshake(body.mechanism, nonce, is_bare=header.api_version == 0)
        if isinstance(action, HangUp):
            self._hang_up(exchange, action)
        else:
            self._answer_handshake(exchange, header, body.mechanism, action)

    def _answer_handshake(
        self, exchange: Exchange, header: RequestHeader, mechanism: str, action: AnswerHandshake
    ) -> None:
        error = ErrorCode.none if action.is_known else ErrorCode.unsupported_sasl_mechanism
        mechanisms = list(self._settings.terms.mechanisms)
        response = SaslHandshakeResponse(error_code=error, mechanisms=mechanisms)
        exchange.errors = (error,)
        parts = encode_response(response, header.api_version, header.correlation_id)
        if action.is_known:
            exchange.reply(parts)
            return
        self._on_refused(
            f"it asks for the mechanism {mechanism[:40]!r}; here are {', '.join(mechanisms)} "
            "(sasl.enabled.mechanisms)"
        )
        exchange.reply_last(parts, self._settings.failure_delay_ms)

    def _take_token(self, exchange: Exchange, token: bytes, header: RequestHeader | None) -> None:
        """``header``: that of the request; None for a bare token."""
        action = self._login.on_token(token, exchange.context.received_ms, is_bare=header is None)
        if isinstance(action, HangUp):
            self._hang_up(exchange, action)
        elif isinstance(action, Refuse):
            self._refuse(exchange, action, header)
        else:
            if action.principal:
                self._enter(exchange, action.principal)
            exchange.reply(_encode_token(action, header))

    def _enter(self, exchange: Exchange, principal: str) -> None:
        settings, login = self._settings, self._login
        exchange.identify(principal)
        self._connection_id = exchange.context.connection_id
        settings.sessions.enter((login.user, login.mechanism), self._connection_id, self._disconnect)
        if not settings.is_known(login.user, login.mechanism):
            self._disconnect()  # it was deleted since it was read
        if self._has_ended:
            self._leave()  # whoever closed the connection came before it was among the sessions

    def _refuse(self, exchange: Exchange, action: Refuse, header: RequestHeader | None) -> None:
        self._on_refused(action.message)
        delay_ms = self._settings.failure_delay_ms
        if header is None:
            exchange.reply_last((), delay_ms)
            return
        response = SaslAuthenticateResponse(
            error_code=ErrorCode.sasl_authentication_failed, error_message=action.message
        )
        exchange.errors = (response.error_code,)
        exchange.reply_last(encode_response(response, header.api_version, header.correlation_id), delay_ms)

    def _hang_up(self, exchange: Exchange, action: HangUp) -> None:
        self._on_refused(action.why)
        exchange.close()


def _encode_token(action: AnswerToken, header: RequestHeader | None) -> Sequence[Part]:
    if header is None:
        return [FRAME_PREFIX.pack(len(action.token)) + action.token]
    response = SaslAuthenticateResponse(auth_bytes=action.token, session_lifetime_ms=action.session_ms)
    return encode_response(response, header.api_version, header.correlation_id)
