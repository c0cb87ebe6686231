"""Users and passwords of JAAS strings, with what their references name at the time of use."""

from pathlib import Path

import pytest

from sparklog.credentials.jaas_users import plain_users, user_and_password
from sparklog.credentials.secret_files import SecretFile, read_file
from sparklog.model.errors import ConfigError
from sparklog.model.settings.jaas import PLAIN_MODULE, SCRAM_MODULE
from sparklog.model.settings.secrets import Secret
from tests.closed_files import write_closed

HARD = 'q"\\;${env:NOT}'


def of(text: str) -> Secret:
    return Secret(text, "sasl.jaas.config")


def test_passwords_may_have_any_character_behind_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARD", HARD)
    jaas = of(f'{PLAIN_MODULE} required username=broker password="${{env:HARD}}" user_alice="${{env:HARD}}";')
    assert plain_users(jaas) == {"alice": HARD}
    found = user_and_password(jaas)
    assert (found.user, found.password) == ("broker", HARD)
    assert HARD not in repr(found)


def test_a_whole_string_may_stand_in_a_file_and_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    jaas = of(f"${{file:{file}:broker}}")
    for password in ("one", "two"):
        write_closed(file, f'broker={SCRAM_MODULE} required username="b" password="{password}";')
        assert user_and_password(jaas).password == password


def test_a_file_of_many_users_is_read_once_and_each_user_alone_is_resolved(tmp_path: Path) -> None:
    """A login, which a stranger may ask for, must not cost the square of the users."""
    file = tmp_path / "users.properties"
    names = [f"u{number}" for number in range(50)]
    write_closed(file, "".join(f"{name}=password of {name}\n" for name in names))
    users = " ".join(f'user_{name}="${{file:{file}:{name}}}"' for name in names)
    jaas = of(f'{PLAIN_MODULE} required username=b password="${{env:BROKERS_OWN}}" {users};')
    reads: list[str] = []

    def read(path: str) -> SecretFile:
        reads.append(path)
        return read_file(path)

    assert plain_users(jaas, read) == {name: f"password of {name}" for name in names}
    assert reads == [str(file)]


def test_who_logs_in_needs_no_other_users_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS_OWN", "secret")
    jaas = of(f'{PLAIN_MODULE} required username=b password="${{env:BROKERS_OWN}}" user_a="${{env:GONE}}";')
    assert user_and_password(jaas).password == "secret"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("username=a", "it has no password; add it"),
        ("", "it has no username and no password"),
        ('username=a password=""', "it has no password"),
        ("username=a password=b tokenauth=true", "it has a delegation token, which sparklog has not"),
        ('username=a password="${env:NOWHERE_AT_ALL}"', "NOWHERE_AT_ALL"),
    ],
)
def test_what_is_missing_is_named_with_the_setting(options: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        user_and_password(of(f"{SCRAM_MODULE} required {options};"))
    assert str(refused.value).startswith("sasl.jaas.config: ")
