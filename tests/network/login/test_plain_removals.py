"""Removed users of PLAIN lose their connections, and nobody else does."""

import logging
from pathlib import Path

import pytest

from sparklog.core.security.login.plain import PLAIN
from sparklog.model.loops import Pause
from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog.model.settings.secrets import Secret
from sparklog.network.login.plain_removals import LOOK_INTERVAL_MS, PlainRemovals
from sparklog.network.login.sessions import LoginSessions
from tests.closed_files import write_closed

USERS = ("alice", "bob")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users.properties"
    write_closed(path, "alice=a\nbob=b\n")
    return path


@pytest.fixture
def closed() -> list[str]:
    return []


@pytest.fixture
def sessions(closed: list[str]) -> LoginSessions:
    """Alice, bob, and carol by SCRAM."""
    made = LoginSessions()
    for number, user in enumerate(USERS):
        made.enter((user, PLAIN), number, lambda user=user: closed.append(user))
    made.enter(("carol", "SCRAM-SHA-256"), 9, lambda: closed.append("carol"))
    return made


@pytest.fixture
def removals(file: Path, sessions: LoginSessions) -> PlainRemovals:
    options = " ".join(f'user_{user}="${{file:{file}:{user}}}"' for user in USERS)
    return PlainRemovals(Secret(f"{PLAIN_MODULE} required {options};"), sessions)


def look(removals: PlainRemovals, times: int) -> None:
    for _ in range(times):
        removals.look()


def test_a_user_whose_secret_is_gone_is_disconnected_at_the_second_look(
    removals, file, closed, caplog
) -> None:
    caplog.set_level(logging.INFO)
    look(removals, 3)
    assert closed == []
    file.write_text("bob=b\n")
    look(removals, 1)
    assert closed == []
    look(removals, 3)
    assert closed == ["alice"]
    assert "'alice' may not log in by PLAIN any more; 1 connections are closed" in caplog.text


def test_a_file_that_is_written_over_disconnects_nobody(removals, file, closed) -> None:
    for text in ("", "alice=a\nbob=b\n", "al", "alice=a\nbob=b\n"):
        file.write_text(text)
        look(removals, 1)
    assert closed == []


def test_a_file_that_cannot_be_read_disconnects_nobody(removals, file, closed) -> None:
    file.unlink()
    look(removals, 3)
    file.write_bytes(b"\xff\xfe")
    look(removals, 3)
    assert closed == []


def test_a_changed_password_disconnects_nobody(removals, file, closed) -> None:
    file.write_text("alice=another\nbob=b\n")
    look(removals, 3)
    assert closed == []


def test_a_whole_string_in_a_file_may_lose_a_user(file, sessions, closed) -> None:
    file.write_text(f'jaas={PLAIN_MODULE} required user_alice="a" user_bob="b";\n')
    removals = PlainRemovals(Secret(f"${{file:{file}:jaas}}"), sessions)
    look(removals, 2)
    file.write_text(f'jaas={PLAIN_MODULE} required user_alice="a";\n')
    look(removals, 2)
    assert closed == ["bob"]


def test_nobody_reads_the_file_while_no_user_of_plain_is_connected(tmp_path: Path) -> None:
    """A pipe would hold up whoever opens it to read; here nothing is opened, and nothing raised."""
    removals = PlainRemovals(Secret("no jaas string at all"), LoginSessions())
    look(removals, 2)


def test_it_looks_each_second(removals, file, closed) -> None:
    file.write_text("bob=b\n")
    loop = removals.loop()
    assert next(loop) == Pause(LOOK_INTERVAL_MS)
    for _ in range(2):
        assert loop.send(None) == Pause(LOOK_INTERVAL_MS)
    assert closed == ["alice"]
