"""The login of one connection, from its first request to the end of its session, as a machine of states.

    FIRST      ApiVersions, at most once, or a handshake
    HANDSHAKE  a handshake
    TOKENS     a mechanism's tokens: bare after handshake 0, in SaslAuthenticate after handshake 1 (KIP-152)
    IN         any request; a handshake begins a login anew (KIP-368). Once the session's time is over it is
               the only request that may come
    OVER       refused: the connection ends

Who logs in anew must do so by the same mechanism, as the same user. A request that has no place where it
comes ends the connection, as in Kafka; a wrong password is answered after the listener's delay, and ends it
then.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sparklog.core.security.login.mechanism import CredentialsRefused, ServerMechanism
from sparklog.core.security.login.scram_server import invalid_credentials
from sparklog.core.security.requester import ANONYMOUS, PRINCIPAL_BYTES_MAX
from sparklog.model.time import MonotonicMs

NEVER_MS: Final = MonotonicMs(1 << 62)

_USER: Final = "User:"

NewMechanism = Callable[[str], ServerMechanism]
"""Begins a login, with a nonce for it."""


class LoginState(enum.Enum):
    FIRST = enum.auto()
    HANDSHAKE = enum.auto()
    TOKENS = enum.auto()
    IN = enum.auto()
    OVER = enum.auto()


@dataclass(frozen=True, slots=True)
class LoginTerms:
    """What a listener asks of logins. ``session_max_ms``: by mechanism, 0 for sessions without an end."""

    mechanisms: Mapping[str, NewMechanism]
    session_max_ms: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Pass:
    """The request goes to its handler."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection is closed without an answer."""

    why: str


@dataclass(frozen=True, slots=True)
class AnswerHandshake:
    """``is_known``: whether the listener has the mechanism; if not, the connection ends after the answer."""

    is_known: bool


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """The server's token. With ``principal`` the login is complete; the session lasts ``session_ms``, 0 for
    ever.
    """

    token: bytes
    is_bare: bool
    principal: str = ""
    session_ms: int = 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """The login has failed. ``message`` is for the client; bare tokens end without one."""

    message: str
    is_bare: bool


class ServerLogin:
    """One connection's login. One request at a time; ``user`` and ``mechanism`` are those of the session."""

    __slots__ = ("_ends_ms", "_is_bare", "_terms", "_under_way", "mechanism", "state", "user")

    def __init__(self, terms: LoginTerms) -> None:
        self._terms = terms
        self._under_way: ServerMechanism | None = None
        self._is_bare = False
        self._ends_ms = NEVER_MS
        self.state = LoginState.FIRST
        self.user = ""
        self.mechanism = ""

    @property
    def awaits_bare_token(self) -> bool:
        """Whether the next frame is a token without a header."""
        return self.state is LoginState.TOKENS and self._is_bare

    @property
    def is_in(self) -> bool:
        """Whether somebody has logged in; it stays so while the user logs in anew."""
        return bool(self.user)

    def on_versions(self, now_ms: MonotonicMs, *, is_served: bool) -> Pass | HangUp:
        """ApiVersions. One of a version that is not served may be followed by another (KIP-511)."""
        if self.state is LoginState.FIRST:
            if is_served:
                self.state = LoginState.HANDSHAKE
            return Pass()
        if self.state is LoginState.IN:
            return self.on_request("ApiVersions", now_ms)
        return self._hang_up("it asks for versions of APIs within its login")

    def on_request(self, api: str, now_ms: MonotonicMs) -> Pass | HangUp:
        """Any request that is no part of a login."""
        if self.state is not LoginState.IN:
            return self._hang_up(f"it sends {api} before its login is complete")
        if now_ms >= self._ends_ms:
            return self._hang_up(
                f"it sends {api} after the end of its session, which connections.max.reauth.ms bounds: "
                "clients must log in anew before that"
            )
        return Pass()

    def on_handshake(self, mechanism: str, nonce: str, *, is_bare: bool) -> AnswerHandshake | HangUp:
        """The client's choice of a mechanism. ``is_bare``: its tokens come without headers."""
        if self.state not in (LoginState.FIRST, LoginState.HANDSHAKE, LoginState.IN):
            return self._hang_up("it chooses a mechanism within its login")
        if self.is_in and mechanism != self.mechanism:
            return self._hang_up("it logs in anew by another mechanism than before")
        begin = self._terms.mechanisms.get(mechanism)
        if begin is None:
            self.state = LoginState.OVER
            return AnswerHandshake(is_known=False)
        self._under_way, self._is_bare, self.state = begin(nonce), is_bare, LoginState.TOKENS
        return AnswerHandshake(is_known=True)

    def on_token(self, token: bytes, now_ms: MonotonicMs, *, is_bare: bool) -> AnswerToken | Refuse | HangUp:
        """A token of the mechanism. ``is_bare``: whether it came without a header."""
        mechanism = self._under_way
        if self.state is not LoginState.TOKENS or mechanism is None or is_bare != self._is_bare:
            return self._hang_up("it sends a token that no handshake has announced")
        try:
            answer = mechanism.on_token(token)
        except CredentialsRefused as error:
            return self._refuse(str(error))
        if answer.user is None:
            return AnswerToken(answer.token, is_bare)
        principal = principal_of_user(answer.user)
        if principal is None or principal == ANONYMOUS:
            return self._refuse(invalid_credentials(mechanism.name))
        if self.is_in and answer.user != self.user:
            return self._refuse("Cannot change principals during re-authentication")
        session_ms = self._terms.session_max_ms.get(mechanism.name, 0)
        self._ends_ms = MonotonicMs(now_ms + session_ms) if session_ms else NEVER_MS
        self.user, self.mechanism = answer.user, mechanism.name
        self._under_way, self.state = None, LoginState.IN
        return AnswerToken(answer.token, is_bare, principal, session_ms)

    def _refuse(self, message: str) -> Refuse:
        self._under_way, self.state = None, LoginState.OVER
        return Refuse(message, self._is_bare)

    def _hang_up(self, why: str) -> HangUp:
        self._under_way, self.state = None, LoginState.OVER
        return HangUp(why)


def principal_of_user(user: str) -> str | None:
    """The principal of a user who has logged in; None for a name that no principal may have."""
    principal = _USER + user
    if not user or not principal.isprintable():
        return None
    return principal if len(principal.encode("utf-8", "surrogatepass")) <= PRINCIPAL_BYTES_MAX else None
