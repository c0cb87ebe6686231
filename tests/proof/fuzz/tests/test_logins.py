"""The fuzz of logins breaks no rule, gets in often enough to mean something, and finds planted bugs."""

import random

import pytest

from fuzz.logins import Connection, play
from sparklog.core.security.login import server_login


def play_all() -> None:
    for number in range(3_000):
        play(1, number)


def test_no_rule_is_broken() -> None:
    play_all()


def test_connections_get_in_by_each_mechanism_and_some_again() -> None:
    entrances: dict[str, int] = {}
    again = 0
    for number in range(3_000):
        connection = Connection(random.Random(number))
        for _ in range(20):
            was_in = connection.logged_in != "" and connection.login.state is server_login.LoginState.TOKENS
            connection.step()
            if connection.login.state is server_login.LoginState.IN and connection.logged_in:
                entrances[connection.login.mechanism] = entrances.get(connection.login.mechanism, 0) + 1
                again += was_in
    assert entrances.keys() == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
    assert again > 50


@pytest.mark.parametrize("bug", ["proof", "states", "user"])
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug == "proof":
        monkeypatch.setattr("sparklog.core.security.login.scram_server.hmac.compare_digest", lambda *_: True)
    elif bug == "states":
        monkeypatch.setattr(
            server_login.ServerLogin, "on_request", lambda self, api, now_ms: server_login.Pass()
        )
    else:
        refuse = server_login.ServerLogin._refuse

        def lenient(self: server_login.ServerLogin, message: str) -> server_login.Refuse:
            refused = refuse(self, message)
            self.state = server_login.LoginState.IN
            return refused

        monkeypatch.setattr(server_login.ServerLogin, "_refuse", lenient)
    with pytest.raises(AssertionError):
        play_all()
