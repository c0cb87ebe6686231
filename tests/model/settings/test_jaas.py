"""JAAS strings as Kafka reads them, and none of their values in an error."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.jaas import PLAIN_MODULE, SCRAM_MODULE, TEXT_LENGTH_MAX, parse_jaas

PLANTED = "planted"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('username="alice" password="secret"', {"username": "alice", "password": "secret"}),
        ("username=alice\n   password='se;cr=et'", {"username": "alice", "password": "se;cr=et"}),
        (r'password="a\"b\\c\u00e9\n"', {"password": 'a"b\\cé\n'}),
        ('username = "a"password="b"', {"username": "a", "password": "b"}),
        ("", {}),
        ("/* of alice */ username=a // until 2030\n password=b", {"username": "a", "password": "b"}),
        ('user_admin="${file:/secrets:admin}"', {"user_admin": "${file:/secrets:admin}"}),
        ('password=""', {"password": ""}),
    ],
)
def test_options_by_name(options: str, expected: dict[str, str]) -> None:
    entry = parse_jaas(f"{SCRAM_MODULE} required {options};")
    assert (entry.module, dict(entry.options)) == (SCRAM_MODULE, expected)


@pytest.mark.parametrize("flag", ["required", "REQUIRED", "optional", "requisite", "sufficient"])
def test_flags_and_a_vendors_prefix(flag: str) -> None:
    assert parse_jaas(f"kafkashaded.{PLAIN_MODULE} {flag} username=a ;").module == PLAIN_MODULE


def test_values_are_not_shown() -> None:
    assert PLANTED not in repr(parse_jaas(f"{PLAIN_MODULE} required password={PLANTED};"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "lacks the name of a login module"),
        (PLANTED, "login module is none that sparklog has"),
        ("com.sun.security.auth.module.Krb5LoginModule required;", "none that sparklog has"),
        (PLAIN_MODULE, "lacks required"),
        (f"{PLAIN_MODULE} {PLANTED};", "must have one of required"),
        (f"{PLAIN_MODULE} required password={PLANTED}", "lacks an option or a semicolon"),
        (f"{PLAIN_MODULE} required {PLANTED};", "an option without a value"),
        (f"{PLAIN_MODULE} required password=;", "an option without a value"),
        (f'{PLAIN_MODULE} required password="{PLANTED};', "a quote that does not end"),
        (f'{PLAIN_MODULE} required password="{PLANTED}\n";', "a quote that does not end"),
        (f'{PLAIN_MODULE} required password="\\u12{PLANTED}";', "without the four digits"),
        (
            f"{PLAIN_MODULE} required password={PLANTED}; {PLAIN_MODULE} required;",
            "more than one login module",
        ),
        (f"{PLAIN_MODULE} required = {PLANTED};", "lacks an option or a semicolon"),
        ("x" * (TEXT_LENGTH_MAX + 1), "1000001 characters"),
    ],
)
def test_what_is_wrong_is_said_without_a_value(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        parse_jaas(text)
    assert PLANTED not in str(refused.value)
