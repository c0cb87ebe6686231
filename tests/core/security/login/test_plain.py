"""PLAIN: one token, and the same answer for an unknown user as for a wrong password."""

import pytest

from sparklog.core.security.login.mechanism import CredentialsRefused
from sparklog.core.security.login.plain import PlainServer, plain_token

USERS = {"alice": "wonder\0land"[:6], "empty": "", "Zoë": "pässword"}
INVALID = "Authentication failed: Invalid username or password"


def answer(token: bytes) -> str | None:
    return PlainServer(lambda: USERS).on_token(token).user


@pytest.mark.parametrize("token", [plain_token("alice", "wonder"), b"alice\0alice\0wonder"])
def test_who_knows_the_password_is_in(token: bytes) -> None:
    assert answer(token) == "alice"


def test_names_and_passwords_are_utf_8() -> None:
    assert answer(plain_token("Zoë", "pässword")) == "Zoë"


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (plain_token("alice", "wrong"), INVALID),
        (plain_token("nobody", "wonder"), INVALID),
        (plain_token("empty", "x"), INVALID),
        (b"admin\0alice\0wrong", INVALID),
        (
            b"admin\0alice\0wonder",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (plain_token("", "x"), "Authentication failed: username not specified"),
        (plain_token("alice", ""), "Authentication failed: password not specified"),
        (b"", "Authentication failed: Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0a\0b\0c", "Authentication failed: Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\xff\0x", "Authentication failed: the token is not UTF-8"),
    ],
)
def test_a_wrong_token_is_refused_in_kafkas_words(token: bytes, message: str) -> None:
    with pytest.raises(CredentialsRefused) as refused:
        answer(token)
    assert str(refused.value) == message


def test_there_is_no_second_token() -> None:
    server = PlainServer(lambda: USERS)
    server.on_token(plain_token("alice", "wonder"))
    with pytest.raises(CredentialsRefused, match="one token"):
        server.on_token(plain_token("alice", "wonder"))
