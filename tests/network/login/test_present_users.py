"""The users of PLAIN follow their file within a second, and logins read it no more often than that."""

from pathlib import Path

import pytest

from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog.model.settings.secrets import Secret
from sparklog.network.login.present_users import KEPT_S, PresentUsers
from tests.closed_files import write_closed


class Now:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_changed_file_counts_after_a_second_and_is_not_read_before(tmp_path: Path) -> None:
    file, now = tmp_path / "users.properties", Now()
    users = PresentUsers(Secret(f'{PLAIN_MODULE} required user_alice="${{file:{file}:alice}}";'), now)
    write_closed(file, "alice=one")
    assert users() == {"alice": "one"}
    write_closed(file, "alice=two")
    now.seconds += KEPT_S - 0.1
    assert users() == {"alice": "one"}
    now.seconds += 0.1
    assert users() == {"alice": "two"}


def test_a_string_that_cannot_be_read_is_logged_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    now = Now()
    users = PresentUsers(
        Secret(f'{PLAIN_MODULE} required user_alice="${{env:NO_SUCH_USER}}";', "of.plain"), now
    )
    assert [users() for _ in range(100)] == [{}] * 100
    assert [record.getMessage()[:41] for record in caplog.records] == [
        "nobody can log in by PLAIN: of.plain: ${e"
    ]
    now.seconds += KEPT_S
    assert users() == {}
    assert len(caplog.records) == 2
