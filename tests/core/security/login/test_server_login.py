"""The states of a connection's login: which request may come when, and what ends the connection."""

from dataclasses import dataclass

import pytest

from sparklog.core.security.login.mechanism import Answer, CredentialsRefused
from sparklog.core.security.login.server_login import (
    AnswerHandshake,
    AnswerToken,
    HangUp,
    LoginState,
    LoginTerms,
    Pass,
    Refuse,
    ServerLogin,
    principal_of_user,
)
from sparklog.model.time import MonotonicMs

NOW = MonotonicMs(1_000)
SESSION_MS = 60_000


@dataclass
class TwoTokens:
    """A mechanism whose second token names the user who is in."""

    name: str
    tokens: int = 0

    def on_token(self, token: bytes) -> Answer:
        self.tokens += 1
        if token == b"wrong":
            raise CredentialsRefused("wrong password")
        return Answer(b"", token.decode()) if self.tokens == 2 else Answer(b"and?")


@pytest.fixture
def login() -> ServerLogin:
    begin = {name: lambda _, name=name: TwoTokens(name) for name in ("A", "B")}
    return ServerLogin(LoginTerms(begin, {"A": SESSION_MS, "B": 0}))


def log_in(
    login: ServerLogin, user: str = "alice", mechanism: str = "A", now: MonotonicMs = NOW
) -> AnswerToken:
    assert login.on_handshake(mechanism, "nonce", is_bare=False) == AnswerHandshake(is_known=True)
    assert login.on_token(b"first", now, is_bare=False) == AnswerToken(b"and?", is_bare=False)
    answer = login.on_token(user.encode(), now, is_bare=False)
    assert isinstance(answer, AnswerToken), answer
    return answer


def test_versions_a_handshake_and_tokens_lead_in(login: ServerLogin) -> None:
    assert login.on_versions(NOW, is_served=True) == Pass()
    assert not login.is_in
    assert log_in(login) == AnswerToken(b"", False, "User:alice", SESSION_MS)
    assert (login.is_in, login.user, login.mechanism) == (True, "alice", "A")
    assert login.on_request("Metadata", NOW) == login.on_versions(NOW, is_served=True) == Pass()


def test_versions_are_asked_once_but_for_one_that_is_not_served(login: ServerLogin) -> None:
    assert login.on_versions(NOW, is_served=False) == login.on_versions(NOW, is_served=True) == Pass()
    assert login.on_versions(NOW, is_served=True) == HangUp("it asks for versions of APIs within its login")


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_another_request_before_the_login_is_complete_ends_it(login: ServerLogin, steps: int) -> None:
    if steps > 0:
        login.on_versions(NOW, is_served=True)
    if steps > 1:
        login.on_handshake("A", "nonce", is_bare=False)
    if steps > 2:
        login.on_token(b"first", NOW, is_bare=False)
    assert login.on_request("Produce", NOW) == HangUp("it sends Produce before its login is complete")
    assert login.on_handshake("A", "nonce", is_bare=False) == HangUp(
        "it chooses a mechanism within its login"
    )


def test_a_mechanism_that_is_off_is_answered_and_no_token_follows(login: ServerLogin) -> None:
    assert login.on_handshake("GSSAPI", "nonce", is_bare=False) == AnswerHandshake(is_known=False)
    assert isinstance(login.on_token(b"x", NOW, is_bare=False), HangUp)


def test_tokens_come_in_the_form_that_the_handshake_has_announced(login: ServerLogin) -> None:
    login.on_handshake("A", "nonce", is_bare=True)
    assert login.awaits_bare_token
    assert isinstance(login.on_token(b"x", NOW, is_bare=False), HangUp)
    assert not login.awaits_bare_token


def test_a_token_without_a_handshake_ends_the_connection(login: ServerLogin) -> None:
    assert isinstance(login.on_token(b"x", NOW, is_bare=False), HangUp)
    log_in_again = login.on_handshake("A", "nonce", is_bare=False)
    assert isinstance(log_in_again, HangUp)


@pytest.mark.parametrize("is_bare", [False, True])
def test_a_wrong_password_is_refused_and_is_the_end(login: ServerLogin, is_bare: bool) -> None:
    login.on_handshake("A", "nonce", is_bare=is_bare)
    assert login.on_token(b"wrong", NOW, is_bare=is_bare) == Refuse("wrong password", is_bare)
    assert login.state is LoginState.OVER
    assert isinstance(login.on_request("Metadata", NOW), HangUp)


@pytest.mark.parametrize("user", ["ANONYMOUS", "a\nb", "x" * 1_025])
def test_a_name_that_no_principal_may_have_does_not_get_in(login: ServerLogin, user: str) -> None:
    login.on_handshake("A", "nonce", is_bare=False)
    login.on_token(b"first", NOW, is_bare=False)
    assert isinstance(login.on_token(user.encode(), NOW, is_bare=False), Refuse)
    assert not login.is_in


def test_the_longest_name_of_a_principal() -> None:
    assert principal_of_user("x" * 1_019) == "User:" + "x" * 1_019
    assert principal_of_user("x" * 1_020) is None
    assert principal_of_user("") is None


# Sessions


def test_after_the_end_of_the_session_only_a_new_login_may_come(login: ServerLogin) -> None:
    log_in(login)
    end = MonotonicMs(NOW + SESSION_MS)
    assert login.on_request("Produce", MonotonicMs(end - 1)) == Pass()
    log_in(login, now=end)
    assert login.on_request("Produce", MonotonicMs(end + SESSION_MS - 1)) == Pass()
    late = login.on_request("Produce", MonotonicMs(end + SESSION_MS))
    assert isinstance(late, HangUp)
    assert "after the end of its session" in late.why


def test_the_end_of_the_session_counts_for_versions_of_apis_too(login: ServerLogin) -> None:
    log_in(login)
    end = MonotonicMs(NOW + SESSION_MS)
    assert login.on_versions(MonotonicMs(end - 1), is_served=True) == Pass()
    assert isinstance(login.on_versions(end, is_served=True), HangUp)


def test_a_session_without_an_end(login: ServerLogin) -> None:
    assert log_in(login, mechanism="B").session_ms == 0
    assert login.on_request("Produce", MonotonicMs(1 << 60)) == Pass()


def test_another_user_or_mechanism_at_a_new_login_ends_the_connection(login: ServerLogin) -> None:
    log_in(login)
    assert login.on_handshake("B", "nonce", is_bare=False) == HangUp(
        "it logs in anew by another mechanism than before"
    )


def test_another_user_at_a_new_login_is_refused(login: ServerLogin) -> None:
    log_in(login)
    login.on_handshake("A", "nonce", is_bare=False)
    login.on_token(b"first", NOW, is_bare=False)
    assert login.on_token(b"bob", NOW, is_bare=False) == Refuse(
        "Cannot change principals during re-authentication", is_bare=False
    )
    assert (login.user, login.is_in) == ("alice", True)
    assert isinstance(login.on_request("Produce", NOW), HangUp)


def test_other_requests_within_a_new_login_end_the_connection(login: ServerLogin) -> None:
    log_in(login)
    login.on_handshake("A", "nonce", is_bare=False)
    assert isinstance(login.on_request("Produce", NOW), HangUp)
