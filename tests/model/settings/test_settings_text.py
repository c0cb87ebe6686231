"""Settings files mean here what they mean in Java."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.settings_text import parse_properties, parse_spark_properties


def test_properties_have_comments_joined_lines_and_equals_signs_in_values() -> None:
    text = "# c\n! c\n\n a = 1 \nb=x\\\n   y\nc=d=e\n"
    assert parse_properties(text) == {"a": "1", "b": "xy", "c": "d=e"}


@pytest.mark.parametrize(
    ("line", "parsed"),
    [("a.b   c d", ("a.b", "c d")), ("a.b=c", ("a.b", "c")), ("a.b : c", ("a.b", "c")), ("a=", ("a", ""))],
)
def test_sparks_files_put_blanks_colons_or_equals_signs_after_a_name(
    line: str, parsed: tuple[str, str]
) -> None:
    assert parse_spark_properties(line) == dict([parsed])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"-----BEGIN\nMIIB\n-----END", "-----BEGIN\nMIIB\n-----END"),
        (r"a\\b", r"a\b"),
        (r"c\:\=\ d", "c:= d"),
        (r"caf\u00e9", "café"),
        (r"tab\tend", "tab\tend"),
        ("ends with one\\\\", "ends with one\\"),
    ],
)
def test_a_backslash_means_what_it_means_in_java(written: str, meant: str) -> None:
    assert parse_properties(f"a={written}\nb=1") == {"a": meant, "b": "1"}
    assert parse_spark_properties(f"a {written}\nb 1") == {"a": meant, "b": "1"}


def test_lines_of_a_pem_key_may_be_joined_with_the_blanks_before_each_backslash() -> None:
    text = "ssl.keystore.key=-----BEGIN PRIVATE KEY----- \\\n  MIIB \\\n  -----END PRIVATE KEY-----\n"
    assert parse_properties(text) == {
        "ssl.keystore.key": "-----BEGIN PRIVATE KEY----- MIIB -----END PRIVATE KEY-----"
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a=1\nnonsense", "line 2: 'nonsense' is not of the form name=value"),
        ("a=1\\", "the last line, 'a', ends with a backslash, which joins it to nothing"),
        (r"a=\u12", r"line 1: a value has '\\u' without the four digits"),
    ],
)
def test_a_line_that_is_no_setting_is_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_properties(text)


@pytest.mark.parametrize("line", ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "ssl.key.password Sesame", "Sesame \\"])
def test_a_wrong_line_shows_no_more_than_a_name_of_what_may_be_secret(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_properties(line)
    assert "Sesame" not in str(caught.value)
    assert "MIIE" not in str(caught.value)
